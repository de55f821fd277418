"""The names people gave to Codex threads: not in the rollout, but in an index file or a database of its home."""

from __future__ import annotations

import os
import re
from typing import Dict, Optional, Tuple

from relay.transcripts import titles
from relay.transcripts.jsonl import records

_STATE = re.compile(r"state_(\d+)\.sqlite$")

_Stamp = Tuple[int, int]
#: One home's index file as it was read last: its stamp, and the names by thread.
_indexes: Dict[str, Tuple[_Stamp, Dict[str, str]]] = {}


def name(home: str, thread: str) -> str:
    """What a person called the thread, or an empty string."""
    named = _index(home).get(thread)
    return named if named is not None else _from_state(home, thread)


def _index(home: str) -> Dict[str, str]:
    """``session_index.jsonl``: the last line of a thread counts, a blank name takes the name away."""
    path = os.path.join(home, "session_index.jsonl")
    try:
        status = os.stat(path)
    except OSError:
        return {}
    stamp = (status.st_size, status.st_mtime_ns)
    known = _indexes.get(home)
    if known is not None and known[0] == stamp:
        return known[1]
    names: Dict[str, str] = {}
    try:
        for record in records(path):
            thread = record.get("id")
            if isinstance(thread, str):
                names[thread] = titles.title(record.get("thread_name"))
    except OSError:
        return {}
    _indexes[home] = (stamp, names)
    return names


def _from_state(home: str, thread: str) -> str:
    """``threads.title`` of the newest ``state_<n>.sqlite``; there it is a name when it is not the first message."""
    path = newest_state(home)
    if path is None:
        return ""
    from relay.transcripts.foreign_database import ForeignDatabase
    from relay.transcripts.types import Unreadable

    try:
        with ForeignDatabase(path, wait=0.2) as database:
            columns = database.columns("threads")
            if not {"id", "title"} <= columns:
                return ""
            first = "first_user_message" if "first_user_message" in columns else "''"
            for title, message in database.rows(f"SELECT title, {first} FROM threads WHERE id = ?", (thread,)):
                if isinstance(title, str) and not str(message or "").strip().startswith(title.strip()):
                    return titles.title(title)
    except Unreadable:
        pass  # the name is a courtesy; the thread has other titles
    return ""


def newest_state(home: str) -> Optional[str]:
    """The path of the ``state_<n>.sqlite`` with the highest number, or None."""
    try:
        names = os.listdir(home)
    except OSError:
        return None
    numbered = [(int(match.group(1)), entry) for entry in names for match in [_STATE.match(entry)] if match]
    return os.path.join(home, max(numbered)[1]) if numbered else None
