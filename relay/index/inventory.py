"""What the index holds of each agent: for ``relay agents``."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import Dict, List, NamedTuple, Optional, Tuple

from relay.index import opening
from relay.index.faults import IndexUnavailable
from relay.index.names import given

#: Failures that are listed one by one; more than these are only counted.
LISTED = 200


class Place(NamedTuple):
    """The sources of one store below one root. ``empty``: read, and nothing was said in them."""

    files: int
    bytes: int
    failed: int
    empty: int
    unknown: int


class Inventory(NamedTuple):
    """What was read, by ``(agent, store, root)``, and what came of it, by agent."""

    places: Dict[Tuple[str, str, str], Place]
    #: How many sessions (subagents aside), and when the newest was updated (epoch ms).
    sessions: Dict[str, Tuple[int, Optional[int]]]
    #: Path and reason of sources that could not be read.
    failures: Dict[str, List[Tuple[str, str]]]


def inventory(path: str) -> Inventory:
    """Read from the index at ``path``. Raises IndexUnavailable."""
    try:
        with contextlib.closing(opening.open_for_reading(path)) as connection:
            return _read(connection)
    except sqlite3.Error as error:
        raise IndexUnavailable("The index cannot be read now.") from error


def _read(connection: sqlite3.Connection) -> Inventory:
    places = {
        (agent, store, given(root)): Place(*counts)
        for agent, store, root, *counts in connection.execute(
            "SELECT agent, store, root, count(*), total(size), count(failure),"
            " sum(failure IS NULL AND NOT EXISTS"
            " (SELECT 1 FROM sessions WHERE sessions.source = sources.id AND live = 1)), sum(unknown)"
            " FROM sources GROUP BY agent, store, root"
        )
    }
    sessions = {
        agent: (count, newest)
        for agent, count, newest in connection.execute(
            "SELECT agent, count(DISTINCT CASE WHEN parent_id IS NULL THEN session_id END), max(updated_at)"
            " FROM sessions WHERE live = 1 GROUP BY agent"
        )
    }
    failures: Dict[str, List[Tuple[str, str]]] = {}
    for agent, path, reason in connection.execute(
        "SELECT agent, path, failure FROM sources WHERE failure IS NOT NULL ORDER BY agent, path LIMIT ?", (LISTED,)
    ):
        failures.setdefault(agent, []).append((given(path), reason))
    return Inventory(places, sessions, failures)
