"""Sources as the registry makes them, for tests of readers: a home with files in it, and what is read there."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from relay.transcripts import jsonl
from relay.transcripts.registry import APPEND, DATABASE, Env, Root, roots, walk
from relay.transcripts.types import Message, Rewind, Session, Source

Read = Dict[str, Tuple[Session, List[Message]]]


def sources(
    agent: str, home: Path, variables: Optional[Mapping[str, str]] = None, platform: str = "linux"
) -> List[Source]:
    """Every source of an agent below the account's ``home``, by path."""
    found = [source for root in agent_roots(agent, home, variables, platform) for source in walk(root)]
    return sorted(found, key=lambda source: source.path)


def agent_roots(
    agent: str, home: Path, variables: Optional[Mapping[str, str]] = None, platform: str = "linux"
) -> List[Root]:
    """Every folder that is looked at for an agent."""
    return [root for root in roots(Env(str(home), variables or {}, platform)) if root.store.agent == agent]


def read(source: Source) -> Read:
    """Every session of a source with its messages, by id."""
    if source.store.kind == DATABASE:
        with source.store.load()(source) as reader:
            found = [reader.read(session_id) for session_id, _ in list(reader.sessions())]
            return {one.session.session_id: (one.session, list(one.messages)) for one in found if one is not None}
    if source.store.kind == APPEND:
        session, messages, _ = folded(source)
        return {} if session is None else {session.session_id: (session, messages)}
    return {one.session.session_id: (one.session, list(one.messages)) for one in source.store.load()(source)}


def unknown(source: Source) -> int:
    """How many records of a source the reader did not know."""
    if source.store.kind == DATABASE:
        with source.store.load()(source) as reader:
            found = [reader.read(session_id) for session_id, _ in list(reader.sessions())]
            return sum(one.unknown for one in found if one is not None)
    if source.store.kind == APPEND:
        return folded(source)[2]
    return sum(one.unknown for one in source.store.load()(source))


def folded(source: Source) -> Tuple[Optional[Session], List[Message], int]:
    """What an append reader makes of a file: head, messages, unknown records.

    Reading it at once and reading it record by record, each with the state of the one before, must give the same.
    """
    make = source.store.load()
    reader = make(source)
    at_once: Dict[int, Message] = {}
    for record in jsonl.records(source.path):
        _apply(at_once, reader.feed(record))
    by_record: Dict[int, Message] = {}
    state: Any = None
    for record in jsonl.records(source.path):
        other = make(source, state)
        _apply(by_record, other.feed(record))
        state = json.loads(json.dumps(other.state()))
    session = reader.session()
    if state is not None:
        assert (by_record, make(source, state).session()) == (at_once, session)
    return session, [at_once[seq] for seq in sorted(at_once)], reader.unknown


def _apply(messages: Dict[int, Message], events: Any) -> None:
    for event in events:
        if isinstance(event, Rewind):
            for seq in [seq for seq in messages if seq >= event.seq]:
                del messages[seq]
        else:
            messages[event.seq] = event


def lines(path: Path, *records: Any, at: Optional[float] = None) -> Path:
    """Write a JSON Lines file: values as JSON, text as it stands. ``at``: its time of change, in epoch seconds."""
    written = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in records)
    return text(path, written, at)


def document(path: Path, value: Any, at: Optional[float] = None) -> Path:
    """Write a JSON document."""
    return text(path, json.dumps(value), at)


def text(path: Path, written: str, at: Optional[float] = None) -> Path:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(written, encoding="utf-8")
    if at is not None:
        os.utime(path, (at, at))
    return path


def keys(source: Source) -> Dict[str, str]:
    """The change keys of a database."""
    with source.store.load()(source) as reader:
        return dict(reader.sessions())


def database(path: Path, script: str, *inserts: Tuple[str, List[Tuple[object, ...]]]) -> None:
    """Make or change a database: a script of statements, then rows for each table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(str(path))) as connection:
        connection.executescript(script)
        for table, rows in inserts:
            for row in rows:
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        connection.commit()
