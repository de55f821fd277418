"""A small agent of our own for tests of the index: one store of each kind, in formats a test can write in one line."""

from __future__ import annotations

import json
import os
import sqlite3
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from relay.transcripts.registry import APPEND, DATABASE, WHOLE, Agent, Env, Store
from relay.transcripts.types import Event, Message, Rewind, Session, Source, Transcript, Unreadable

HERE = "tests.support.plain_agent"


class Lines:
    """Append: ``{"say": TEXT}``, perhaps ``role``, ``at`` (ms), ``seq``; ``{"title": TEXT}``; ``{"rewind": SEQ}``."""

    def __init__(self, source: Source, state: Optional[Mapping[str, Any]] = None) -> None:
        self.source = source
        self.unknown = 0
        self.kept: Dict[str, Any] = {"seq": 0, "title": "", "at": None, **(state or {})}

    def feed(self, record: Mapping[str, Any]) -> Iterator[Event]:
        kept = self.kept
        if "title" in record:
            kept["title"] = record["title"]
        if "break" in record:
            raise KeyError("a record nobody foresaw")
        if "rewind" in record:
            kept["seq"] = record["rewind"]
            yield Rewind(record["rewind"])
        if "say" in record:
            seq = record.get("seq", kept["seq"])
            kept["seq"] = max(kept["seq"], seq + 1)
            kept["at"] = record.get("at", kept["at"])
            yield Message(seq, record.get("role", "user"), record["say"], record.get("at"))

    def session(self) -> Optional[Session]:
        if self.kept["seq"] == 0:
            return None
        name = os.path.basename(self.source.path)[: -len(".jsonl")]
        kept = self.kept
        return Session(name, kept["title"] or name, "/w", updated_at=kept["at"], message_count=kept["seq"])

    def state(self) -> Mapping[str, Any]:
        return self.kept


def read_document(source: Source) -> Iterator[Transcript]:
    """Whole: ``{"sessions": {ID: [TEXT, …]}}``, with an optional ``at`` (ms)."""
    with open(source.path, encoding="utf-8") as file:
        try:
            value = json.load(file)
        except ValueError:
            raise Unreadable("The document is not valid JSON.") from None
    for session_id, texts in value["sessions"].items():
        session = Session(session_id, session_id, updated_at=value.get("at"), message_count=len(texts))
        yield Transcript(session, (Message(seq, "user", text) for seq, text in enumerate(texts)))


class Database:
    """Database: table ``said(session, seq, text)``; the change key counts a session's rows and their characters."""

    def __init__(self, source: Source) -> None:
        self.path = source.path
        self.reads: List[str] = []

    def __enter__(self) -> "Database":
        self.connection = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)
        return self

    def __exit__(self, *exc: object) -> None:
        self.connection.close()

    def sessions(self, known: Mapping[str, str] = {}) -> Iterator[Tuple[str, str]]:  # noqa: B006
        key = "count(*) || '/' || sum(length(text))"
        return iter(self.connection.execute(f"SELECT session, {key} FROM said GROUP BY session").fetchall())

    def read(self, session_id: str) -> Optional[Transcript]:
        found = self.connection.execute("SELECT seq, text FROM said WHERE session = ? ORDER BY seq", (session_id,))
        messages = [Message(seq, "user", text) for seq, text in found]
        return Transcript(Session(session_id, session_id, updated_at=1_700_000_000_000), messages)


def _claim(ending: str) -> Any:
    def claim(relative: str) -> Optional[str]:
        if ending == ".db" and relative.endswith("-wal"):
            relative = relative[:-4]
        return relative if relative.endswith(ending) else None

    return claim


def _homes(env: Env) -> Sequence[Tuple[str, bool]]:
    return [(os.path.join(env.home, ".plain"), True)]


PLAIN = Agent(
    "claude",
    "Plain",
    _homes,
    (
        Store("claude", "lines", APPEND, "lines", f"{HERE}:Lines", _claim(".jsonl")),
        Store("claude", "documents", WHOLE, "documents", f"{HERE}:read_document", _claim(".json")),
        Store("claude", "databases", DATABASE, "databases", f"{HERE}:Database", _claim(".db"), rank=1),
    ),
)
