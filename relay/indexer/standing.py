"""How the index stands: the contract's status, from what the database says and what its writer is doing."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import Any, Dict, Optional, Set

from relay.diagnostics import say
from relay.index import opening, upkeep
from relay.index.faults import IndexUnavailable
from relay.indexer import channel

IDLE, INDEXING, CURRENT, DEGRADED, CLOSED = "idle", "indexing", "current", "degraded", "closed"


def stored(path: str) -> Dict[str, Any]:
    """Counts, generation and times as committed; zeros and nulls when the index cannot be read."""
    status: Dict[str, Any] = {
        "filesIndexed": 0,
        "filesFailed": 0,
        "generation": 0,
        "lastReconcileAt": None,
        "lastSweepCompletedAt": None,
    }
    try:
        with contextlib.closing(opening.open_for_reading(path)) as connection:
            meta = dict(connection.execute("SELECT name, value FROM meta WHERE name NOT LIKE 'mount:%'"))
            total, failed = connection.execute("SELECT count(*), count(failure) FROM sources").fetchone()
    except (IndexUnavailable, sqlite3.Error):
        return status
    status["filesIndexed"] = total - failed
    status["filesFailed"] = failed
    status["generation"] = int(meta.get("generation", "0"))
    status["lastReconcileAt"] = _time(meta.get("last_reconcile"))
    status["lastSweepCompletedAt"] = _time(meta.get("last_sweep"))
    return status


def _time(value: Optional[str]) -> Optional[int]:
    return int(value) if value else None


def of_writer(state_folder: str) -> Dict[str, Any]:
    """The phase, what is due and the degraded roots as the writer (another process) tells; idle without one."""
    try:
        answer = channel.ask(state_folder, "status")
    except TimeoutError:
        answer = None
    if answer is None:
        return {"phase": IDLE, "filesDue": 0, "degradedRoots": []}
    return answer


def is_readable(path: str, oldest: Optional[int]) -> bool:
    """Whether searches can use the index: it opens, and is not one that is being rebuilt after damage.

    Nor one that still holds what a shorter retention than its own leaves out, from ``oldest`` (epoch ms) back: its
    writer drops that first.
    """
    try:
        with contextlib.closing(opening.open_for_reading(path)) as connection:
            meta = dict(connection.execute("SELECT name, value FROM meta WHERE name IN ('rebuilding', 'cutoff')"))
        return "rebuilding" not in meta and (
            oldest is None or int(meta.get("cutoff") or "0") > oldest - upkeep.PASSED_BY_MS
        )
    except (IndexUnavailable, sqlite3.Error):
        return False


_warned: Set[str] = set()


def warn(message: str) -> None:
    """Say something on stderr, once in the life of the process; no path in it, since stderr may leave the host."""
    if message not in _warned:
        _warned.add(message)
        say(message)
