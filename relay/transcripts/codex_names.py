"""The names people gave to Codex threads: not in the rollout, but in an index file or a database of its home."""

from __future__ import annotations

import os
import re
from typing import Dict, Optional, Tuple

from relay.transcripts import content, titles
from relay.transcripts.jsonl import records
from relay.transcripts.regular import stamp
from relay.transcripts.types import Source, Unreadable

_STATE = re.compile(r"state_([1-9]\d*|0)\.sqlite$")
_THREAD = re.compile(r"([0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})\.jsonl?(?:\.zst)?$")

#: A thread whose title is not simply the start of its first message was named.
_NAMED = (
    "SELECT id, substr(title, 1, 400) FROM threads WHERE title <> '' AND"
    " substr(ltrim(coalesce(first_user_message, '')), 1, length(trim(title))) <> trim(title)"
)

_Stamp = Tuple[Tuple[int, int, int], ...]
#: By file: its stamp when it was read, and the names by thread.
_read: Dict[str, Tuple[_Stamp, Dict[str, str]]] = {}
#: By home: its stamp, and the newest database in it.
_states: Dict[str, Tuple[Tuple[int, int, int], Optional[str]]] = {}


def name(home: str, thread: str) -> str:
    """What a person called the thread, or an empty string. The index file counts before the database."""
    index = os.path.join(home, "session_index.jsonl")
    named = _names(index, (index,)).get(thread)
    if named is not None:
        return named
    state = newest_state(home)
    return "" if state is None else _names(state, (state, state + "-wal")).get(thread, "")


def mark(source: Source) -> str:
    """The name of a rollout's thread, for ``Store.mark``: a rename changes none of the rollout's own bytes."""
    match = _THREAD.search(source.path)
    return name(source.home, match.group(1)) if match else ""


def newest_state(home: str) -> Optional[str]:
    """The path of the ``state_<n>.sqlite`` with the highest number, or None."""
    seen = stamp(home)
    known = _states.get(home)
    if known is None or known[0] != seen:
        try:
            numbers = [int(match.group(1)) for match in map(_STATE.match, os.listdir(home)) if match]
        except OSError:
            numbers = []
        known = seen, os.path.join(home, f"state_{max(numbers)}.sqlite") if numbers else None
        _states[home] = known
    return known[1]


def _names(path: str, files: Tuple[str, ...]) -> Dict[str, str]:
    """The names in a file, read again when one of ``files`` has changed."""
    seen = tuple(stamp(file) for file in files)
    known = _read.get(path)
    if known is not None and known[0] == seen:
        return known[1]
    names: Dict[str, str] = {}
    try:
        if seen[0] != (0, 0, 0):
            names = _from_index(path) if path.endswith(".jsonl") else _from_state(path)
    except (OSError, Unreadable):
        pass  # the name is a courtesy; the thread has other titles
    _read[path] = (seen, names)
    return names


def _from_index(path: str) -> Dict[str, str]:
    """The last line of a thread counts; a blank name takes the name away."""
    names: Dict[str, str] = {}
    for record in records(path):
        if isinstance(record.get("id"), str):
            names[record["id"]] = content.clean(titles.title(record.get("thread_name")))
    return names


def _from_state(path: str) -> Dict[str, str]:
    from relay.transcripts.foreign_database import ForeignDatabase

    with ForeignDatabase(path, wait=0.2) as database:
        if not {"id", "title", "first_user_message"} <= database.columns("threads"):
            return {}
        return {str(thread): content.clean(titles.title(title)) for thread, title in database.rows(_NAMED)}
