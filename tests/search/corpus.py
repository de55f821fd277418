"""A small index of literal sessions, written by the index's own writer."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from relay.contract.requests import SearchRequest
from relay.index.opening import FILE_NAME, open_for_writing
from relay.index.rows import rows
from relay.index.upkeep import drain
from relay.index.writer import Cursor, Writer
from relay.search.engine import Engine
from relay.transcripts.types import Message, Session

#: 2026-03-01T00:00:00Z
START = 1_772_323_200_000
HOUR = 3_600_000


class Said(NamedTuple):
    """A message of a test's session."""

    role: str
    text: str
    timestamp: Optional[int] = None


class Library:
    """An index in a folder. ``add`` writes a session of one source and commits it."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / FILE_NAME)
        self.index = open_for_writing(self.path)
        self.writer = Writer(self.index)
        self._numbers = itertools.count(1)
        self._engine: Optional[Engine] = None

    def add(
        self,
        *said: "Tuple[str, str] | Said",
        agent: str = "claude",
        id: Optional[str] = None,
        commit: bool = True,
        root: str = "/home/dev/.claude/projects",
        store: str = "projects",
        rank: int = 0,
        **head: Any,
    ) -> int:
        """The key of the new session; ``head`` are fields of Session."""
        number = next(self._numbers)
        session_id = id or f"s{number}"
        head.setdefault("title", f"Session {session_id}")
        head.setdefault("cwd", "/home/dev/project")
        head.setdefault("updated_at", START + number * HOUR)
        head.setdefault("message_count", len(said))
        session = Session(session_id=session_id, **head)
        cursor = Cursor(None, agent, store, root, f"{root}/{number}-{session_id}.jsonl")
        source = self.writer.put_cursor(cursor)
        key = self.writer.put_session(None, cursor, source, session, rank)
        messages = [Message(place, *Said(*one)) for place, one in enumerate(said)]
        self.writer.add_rows(key, [row for message in messages for row in rows(message)])
        if commit:
            self.writer.commit()
        return key

    def hide(self, key: int) -> None:
        """The session stops answering; its rows stay until they are drained."""
        self.writer.hide_sessions("id = ?", (key,))
        self.writer.commit()

    def drain(self) -> None:
        """Remove the rows of everything hidden."""
        while drain(self.writer):
            pass

    @property
    def engine(self) -> Engine:
        """The one engine of this library."""
        if self._engine is None:
            self._engine = Engine(self.path)
        return self._engine

    def search(self, query: str, **fields: Any) -> Dict[str, Any]:
        """The full answer, with the debug report."""
        return self.engine.search(SearchRequest(query=query, **{"debug": True, **fields}))

    def found(self, query: str, **fields: Any) -> List[str]:
        """The session ids of the hits in order."""
        return [hit["sessionId"] for hit in self.search(query, **fields)["hits"]]

    def snippet(self, query: str, **fields: Any) -> str:
        """The snippet of the first hit."""
        return str(self.search(query, **fields)["hits"][0]["evidence"]["snippet"])

    def all_pages(self, query: str, limits: Sequence[int], **fields: Any) -> List[str]:
        """The session ids of every page, page sizes taken in turn."""
        found: List[str] = []
        cursor: Optional[str] = None
        for limit in itertools.cycle(limits):
            answer = self.search(query, limit=limit, cursor=cursor, **fields)
            found.extend(hit["sessionId"] for hit in answer["hits"])
            cursor = answer["page"]["cursor"]
            if cursor is None:
                return found
        raise AssertionError("no page was the last")

    def close(self) -> None:
        """Close engine and writer."""
        if self._engine is not None:
            self._engine.close()
        self.index.close()


def user(text: str) -> Said:
    """What the person wrote."""
    return Said("user", text, START)


def assistant(text: str) -> Said:
    """What the agent answered."""
    return Said("assistant", text, START)


def tool(text: str) -> Said:
    """A tool's call or output."""
    return Said("tool", text, START)


def add_all(library: Library, texts: Iterable[str]) -> None:
    """A session of one user message for each text."""
    for text in texts:
        library.add(user(text))
