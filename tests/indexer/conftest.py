"""A home with one plain agent, and its index as a test looks at it."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest

from relay.index import opening
from relay.indexer.full_pass import Progress, run_full_pass
from relay.indexer.indexer import Indexer
from relay.transcripts import rows
from relay.transcripts.registry import Env
from scripts.lib import index_dump
from tests.support.plain_agent import PLAIN

REPOSITORY = Path(__file__).resolve().parents[2]


class Box:
    """One account: transcripts of the plain agent below ``home``, and the index of them."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.state = str(folder / "state" / "session-relay")
        self.path = opening.database_path(self.state)
        self.lines = self.home / ".plain" / "lines"
        self.documents = self.home / ".plain" / "documents"
        self.databases = self.home / ".plain" / "databases"
        self.history_days: Optional[int] = None
        self.indexers: List[Indexer] = []
        self.processes: List[subprocess.Popen[str]] = []
        for root in (self.lines, self.documents, self.databases):
            root.mkdir(parents=True)

    @property
    def env(self) -> Env:
        return Env(str(self.home))

    def write(self, name: str, *records: Any, mode: str = "a") -> Path:
        """Append records to a line store's file; a str or bytes is written as it stands."""
        path = self.lines / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, mode + "b") as file:
            for record in records:
                if isinstance(record, str):
                    record = record.encode()
                file.write(record if isinstance(record, bytes) else json.dumps(record).encode() + b"\n")
        return path

    def say(self, name: str, *texts: str) -> Path:
        """Append one message for each text."""
        return self.write(name, *({"say": text} for text in texts))

    def document(self, name: str, sessions: Dict[str, List[str]], at: Optional[int] = None) -> Path:
        path = self.documents / name
        path.write_text(json.dumps({"sessions": sessions, "at": at}))
        return path

    def database(self, name: str) -> sqlite3.Connection:
        """A foreign database in WAL mode, with its table; autocommit."""
        connection = sqlite3.connect(self.databases / name, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE IF NOT EXISTS said(session, seq, text)")
        return connection

    def index(self, progress: Callable[[Progress], None] = lambda now: None) -> Progress:
        """One full pass in this process."""
        return run_full_pass(self.state, self.env, self.history_days, progress)

    def start(self) -> Indexer:
        """An indexer in this process that has made its first sweep, or follows one."""
        indexer = Indexer(self.state, self.env, self.history_days)
        self.indexers.append(indexer)
        indexer.start()
        return indexer

    def current(self) -> Indexer:
        indexer = self.start()
        until(lambda: indexer.status()["phase"] == "current", indexer.status)
        return indexer

    def process(self) -> "subprocess.Popen[str]":
        """An indexer in a process of its own; each line on its stdin is asked of it (see ``ask``)."""
        command = [sys.executable, "-m", "tests.support.plain_process", self.state, str(self.home)]
        process = subprocess.Popen(
            command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.processes.append(process)
        return process

    def close(self) -> None:
        for indexer in self.indexers:
            indexer.close()
        for process in self.processes:
            process.kill()
            process.communicate()

    # What the index says

    def texts(self, session: Optional[str] = None) -> List[str]:
        """The texts that answer, in order (of one session)."""
        with contextlib.closing(opening.open_for_reading(self.path)) as connection:
            found = connection.execute(
                "SELECT rows.text FROM rows JOIN sessions ON sessions.id = rows.id >> 28 "
                "WHERE live = 1 AND (session_id = ?1 OR ?1 IS NULL) ORDER BY sessions.session_id, rows.id",
                (session,),
            ).fetchall()
        return [zlib.decompress(blob).decode() for (blob,) in found]

    def finds(self, word: str) -> int:
        """In how many rows of visible sessions a word stands."""
        with contextlib.closing(opening.open_for_reading(self.path)) as connection:
            found = connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (f'"{word}"',)).fetchall()
            live = {key for (key,) in connection.execute("SELECT id FROM sessions WHERE live = 1")}
        return sum(1 for (row,) in found if row >> 28 in live)

    def value(self, sql: str) -> Any:
        with contextlib.closing(opening.open_for_reading(self.path)) as connection:
            row = connection.execute(sql).fetchone()
        return None if row is None else row[0]

    def generation(self) -> int:
        return int(self.value("SELECT value FROM meta WHERE name = 'generation'"))

    def incarnation(self) -> str:
        return str(self.value("SELECT value FROM meta WHERE name = 'incarnation'"))

    def failure(self, path: Path) -> Optional[str]:
        with contextlib.closing(opening.open_for_reading(self.path)) as connection:
            row = connection.execute("SELECT failure FROM sources WHERE path = ?", (str(path),)).fetchone()
        assert row is not None
        return row[0]

    def is_whole(self, tmp: Path) -> None:
        """The index is sound and equals one that is built anew from the same files."""
        assert index_dump.faults(self.path) == []
        clean = str(tmp / "clean")
        run_full_pass(clean, self.env, self.history_days, lambda now: None)
        one, other = index_dump.dump(self.path), index_dump.dump(opening.database_path(clean))
        assert index_dump.differences(one, other) == []


def ask(process: "subprocess.Popen[str]", question: str) -> Any:
    """One question to a ``Box.process`` and its answer."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(question + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def until(condition: Callable[[], Any], told: Callable[[], Any] = lambda: "", seconds: float = 20.0) -> None:
    """Wait for a condition; index faults count as not yet."""
    from relay.index.faults import IndexUnavailable

    deadline = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except (IndexUnavailable, sqlite3.Error):
            pass
        if time.monotonic() > deadline:
            raise AssertionError(f"did not happen: {told()}")
        time.sleep(0.01)


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Box]:
    monkeypatch.setattr(rows, "AGENTS", (PLAIN,))
    made = Box(tmp_path)
    yield made
    made.close()
    assert not [process for process in made.processes if process.poll() is None]


def root_only() -> pytest.MarkDecorator:
    return pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
