"""Hits as they are answered, under full exposure: what stands in the index about a session, and its evidence."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
from functools import lru_cache
from typing import Any, Dict, Optional, Sequence, Tuple

from relay.contract.fields import iso
from relay.index.names import given
from relay.search.query import Unit
from relay.search.ranking import Place
from relay.search.retrieval import unpacked
from relay.search.sessions import SessionTable
from relay.search.snippet import snippet


class Page:
    """Makes hits of places; counts those whose snippet could not be had."""

    def __init__(self, connection: sqlite3.Connection, table: SessionTable, units: Sequence[Unit]) -> None:
        self._table = table
        self.without_snippet = 0
        self._connection = connection
        self._units = units
        self._degraded: Optional[Tuple[str, ...]] = None

    def hit(self, place: Place) -> Dict[str, Any]:
        """The hit under full exposure."""
        entry = self._table.live[place.session]
        source = self._source(entry.source)
        hit: Dict[str, Any] = {
            "agent": entry.agent,
            "sessionId": entry.session_id,
            "title": entry.title,
            "cwd": entry.cwd,
            "branch": entry.branch,
            "updatedAt": _time(entry.updated_at),
            "messageCount": entry.message_count,
            "score": round(-place.fall, 6) + 0.0,
            "source": source,
            "evidence": None if place.row is None else self._evidence(place.row),
        }
        if place.duplicates > 1:
            hit["duplicateCount"] = place.duplicates
        if source["presence"] == "present" and entry.resume:
            hit["resumeCommand"] = resume_command(entry.resume, entry.cwd)
        return hit

    def _evidence(self, row: int) -> Optional[Dict[str, Any]]:
        found = self._connection.execute("SELECT role, timestamp, text FROM rows WHERE id = ?", (row,)).fetchone()
        if found is None:  # drained meanwhile: the generation has moved, and the answer will not be given
            self.without_snippet += 1
            return None
        role, timestamp, packed = found
        texts = unpacked(packed)
        if not texts:
            self.without_snippet += 1
            return None
        (text,) = texts
        shown, marked = snippet(text, self._units)
        if not marked:
            self.without_snippet += 1
        return {"snippet": shown, "role": role, "timestamp": _time(timestamp)}

    def _source(self, source: int) -> Dict[str, Any]:
        columns = "path, root, agent, store"
        found = self._connection.execute(f"SELECT {columns} FROM sources WHERE id = ?", (source,)).fetchone()
        if found is None:
            return {"presence": "unverifiable"}
        path, root, agent, store = given(found[0]), given(found[1]), found[2], found[3]
        presence = "unverifiable" if root in self._degraded_roots() else "present"
        answer: Dict[str, Any] = {"presence": presence, "filePath": path}
        if agent == "codex":
            home = _codex_home(root, store)
            if home is not None:
                answer["codexHome"] = home
        return answer

    def _degraded_roots(self) -> Tuple[str, ...]:
        if self._degraded is None:
            found = self._connection.execute("SELECT value FROM meta WHERE name = 'degraded_roots'").fetchone()
            self._degraded = tuple(json.loads(found[0])) if found is not None else ()
        return self._degraded


@lru_cache(maxsize=64)
def _codex_home(root: str, store: str) -> Optional[str]:
    """The folder that holds the watched root, by what the registry says lies between them."""
    from relay.transcripts.registry import agents

    agent = agents().get("codex")
    below = next((known.below for known in agent.stores if known.name == store), None) if agent is not None else None
    if not below or not root.endswith("/" + below):
        return None
    return root[: -len(below) - 1]


def resume_command(resume: str, cwd: Optional[str]) -> str:
    """The command that reopens a session, from its folder when that still exists."""
    if cwd and os.path.isdir(cwd):
        return f"cd {shlex.quote(cwd)} && {resume}"
    return resume


def _time(milliseconds: Optional[int]) -> Optional[str]:
    """Epoch milliseconds as ISO 8601; None for none and for a time no calendar has."""
    try:
        return None if milliseconds is None else iso(milliseconds)
    except OverflowError:
        return None
