"""Sources as the registry makes them, for tests of readers: a home with files in it, and what is read there."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Tuple

from relay.transcripts.registry import DATABASE, Env, Root, roots, walk
from relay.transcripts.types import Message, Session, Source

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
    return {one.session.session_id: (one.session, list(one.messages)) for one in source.store.load()(source)}


def unknown(source: Source) -> int:
    """How many records of a source the reader did not know."""
    if source.store.kind == DATABASE:
        with source.store.load()(source) as reader:
            found = [reader.read(session_id) for session_id, _ in list(reader.sessions())]
            return sum(one.unknown for one in found if one is not None)
    return sum(one.unknown for one in source.store.load()(source))


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
