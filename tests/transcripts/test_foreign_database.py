"""A database another program owns: read while it is written, in whatever state it was left, and never touched."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.transcripts import foreign_database
from relay.transcripts.foreign_database import ForeignDatabase, capped, parsed, text, topmost
from relay.transcripts.types import Unreadable
from tests.support.foreign_writer import writer

SELECT = "SELECT word FROM words ORDER BY rowid"


def seen(path: Path, wait: float = 2.0) -> List[str]:
    with ForeignDatabase(str(path), wait) as database:
        return [word for (word,) in database.rows(SELECT)]


def files(folder: Path) -> Dict[str, Tuple[bytes, int]]:
    """Every file with its bytes and modification time."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.iterdir())}


def left_by_nobody(path: Path, journal: str = "WAL") -> Path:
    """A database whose program has closed it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(str(path))) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("CREATE TABLE words (word TEXT)")
        connection.execute("INSERT INTO words VALUES ('first')")
        connection.commit()
    return path


@pytest.mark.parametrize("journal", ["WAL", "DELETE", "TRUNCATE", "PERSIST"])
def test_a_closed_database_is_read_and_nothing_is_left_beside_it(tmp_path: Path, journal: str) -> None:
    path = left_by_nobody(tmp_path / "a folder?&#%25/x y.db", journal)
    before = files(path.parent)
    assert seen(path) == ["first"]
    assert files(path.parent) == before


def test_what_a_program_commits_is_seen_while_it_holds_the_database_open(tmp_path: Path) -> None:
    path = left_by_nobody(tmp_path / "live/x.db")
    with writer(path) as program:
        program("INSERT INTO words VALUES ('second')")
        before = files(path.parent)
        assert sorted(before) == ["x.db", "x.db-shm", "x.db-wal"]
        assert seen(path) == ["first", "second"]
        assert files(path.parent) == before
        program("BEGIN IMMEDIATE")
        program("INSERT INTO words VALUES ('uncommitted')")
        assert seen(path) == ["first", "second"]
        program("COMMIT")
        assert seen(path) == ["first", "second", "uncommitted"]


def test_a_link_leads_to_the_files_beside_the_database(tmp_path: Path) -> None:
    path = left_by_nobody(tmp_path / "real/x.db")
    (tmp_path / "link.db").symlink_to(path)
    with writer(path) as program:
        program("INSERT INTO words VALUES ('second')")
        assert seen(tmp_path / "link.db") == ["first", "second"]


def test_a_program_is_never_kept_waiting(tmp_path: Path) -> None:
    path = left_by_nobody(tmp_path / "x.db")
    with writer(path) as program:
        program("INSERT INTO words VALUES ('second')")
        with ForeignDatabase(str(path)) as database:
            assert len(database.rows(SELECT)) == 2
            assert program("BEGIN IMMEDIATE") == []
            assert len(database.rows(SELECT)) == 2
            assert program("INSERT INTO words VALUES ('third')") == []
            assert program("COMMIT") == []
            assert len(database.rows(SELECT)) == 3
            busy, log, done = program("PRAGMA wal_checkpoint(TRUNCATE)")[0]
            assert (busy, log, done) == (0, 0, 0)
            assert len(database.rows(SELECT)) == 3


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_a_program_that_comes_while_a_closed_database_is_read(tmp_path: Path, journal: str) -> None:
    path = left_by_nobody(tmp_path / "x.db", journal)
    with ForeignDatabase(str(path)) as database:
        assert len(database.rows(SELECT)) == 1
        with writer(path) as program:
            assert program("INSERT INTO words VALUES ('second')") == []
            assert program("BEGIN EXCLUSIVE") == []
            assert program("INSERT INTO words VALUES ('third')") == []
            assert program("COMMIT") == []
            assert len(database.rows(SELECT)) == 3
            assert program("DELETE FROM words WHERE word = 'third'") == []
            assert len(database.rows(SELECT)) == 2


def test_what_a_killed_program_left_in_its_wal_is_read(tmp_path: Path) -> None:
    path = left_by_nobody(tmp_path / "x.db")
    with writer(path) as program:
        program("INSERT INTO words VALUES ('second')")
        program.kill()
    before = files(tmp_path)
    assert "x.db-wal" in before
    assert seen(path) == ["first", "second"]
    assert files(tmp_path) == before


def test_a_wal_without_shared_memory_is_read_from_a_private_copy_that_is_removed(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = left_by_nobody(tmp_path / "mounted/x.db")
    with writer(path) as program:
        program("INSERT INTO words VALUES ('second')")
        program.kill()
    (path.parent / "x.db-shm").unlink()
    path.parent.chmod(0o555)
    before = files(path.parent)
    state = home / ".local/state/session-relay"
    dead = state / "foreign-999999999-left"
    dead.mkdir(parents=True)
    with ForeignDatabase(str(path)) as database:
        assert [word for (word,) in database.rows(SELECT)] == ["first", "second"]
        (copy,) = state.iterdir()
        assert copy.stat().st_mode & 0o777 == 0o700
    assert list(state.iterdir()) == []
    assert files(path.parent) == before
    monkeypatch.setattr(foreign_database, "COPY_LIMIT", 10)
    with pytest.raises(Unreadable, match="too big to read from a copy"):
        seen(path)
    assert list(state.iterdir()) == []
    path.parent.chmod(0o755)


def test_a_hot_journal_is_rolled_back_in_a_copy(tmp_path: Path, home: Path) -> None:
    path = left_by_nobody(tmp_path / "x.db", "DELETE")
    with writer(path) as program:
        program("PRAGMA cache_size = 1")
        program("PRAGMA cache_spill = 1")
        program("BEGIN")
        program("UPDATE words SET word = 'changed'")
        program(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
            " INSERT INTO words SELECT hex(randomblob(400)) FROM n"
        )
        program.kill()
    before = files(tmp_path)
    assert sorted(before) == ["x.db", "x.db-journal"]
    assert seen(path, wait=0.1) == ["first"]
    assert files(tmp_path) == before


def test_an_exclusive_lock_is_no_reason_to_wait_for_ever(tmp_path: Path) -> None:
    path = left_by_nobody(tmp_path / "x.db")
    with writer(path) as program:
        program("PRAGMA locking_mode = EXCLUSIVE")
        program("INSERT INTO words VALUES ('second')")
        before = sorted(os.listdir(tmp_path))
        assert seen(path, wait=0.2) == ["first", "second"]
        assert sorted(os.listdir(tmp_path)) == before
        assert program("INSERT INTO words VALUES ('third')") == []


def test_a_database_that_never_rests_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = left_by_nobody(tmp_path / "x.db", "DELETE")
    with ForeignDatabase(str(path), wait=0.1) as database:
        times = iter(range(10**6))

        def restless(self: ForeignDatabase) -> Any:
            return ((1, 8192, next(times)), (0, 0, 0), (0, 0, 0), (0, 0, 0))

        monkeypatch.setattr(ForeignDatabase, "_stamp", restless)
        with pytest.raises(Unreadable, match="in use by its program"):
            database.rows(SELECT)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: b"", "The database file is empty."),
        (lambda data: data[:5000], "The database is cut short."),
        (lambda data: data[:4096], "The database is damaged."),
        (lambda data: data[:4096] + bytes(len(data) - 4096), "The database is damaged."),
        (lambda data: b"PK\3\4" + data[4:], "The file is not a SQLite database."),
    ],
)
def test_a_damaged_database_gives_a_reason(tmp_path: Path, damage: Any, reason: Any) -> None:
    path = left_by_nobody(tmp_path / "x.db", "DELETE")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(Unreadable) as caught:
        seen(path)
    assert caught.value.reason == reason


def test_a_missing_database_and_one_behind_a_wall(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="The database is gone."):
        seen(tmp_path / "x.db")
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(Unreadable):
        seen(tmp_path / "folder.db")


def test_columns_indexes_and_values_of_any_class(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(str(path))) as connection:
        connection.execute("CREATE TABLE t (Id TEXT, body TEXT)")
        connection.execute("CREATE INDEX i ON t (id)")
        rows = [("1", b"\xffbytes"), (2, None), ("long", "x" * 100), ("3", "CAST"), (b"{}", 1.5)]
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        connection.execute("UPDATE t SET body = CAST(x'fffe41' AS TEXT) WHERE body = 'CAST'")
        connection.commit()
    with ForeignDatabase(str(path)) as database:
        assert database.columns("t") == {"id", "body"}
        assert database.columns("nothing") == frozenset()
        assert database.indexed("t", "id") and not database.indexed("t", "body")
        assert not database.is_empty()
        found = database.rows("SELECT body FROM t ORDER BY rowid")
        assert [text(value) for (value,) in found] == ["\ufffdbytes", "", "x" * 100, "\ufffd\ufffdA", "1.5"]


def test_a_long_value_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_database, "CELL_LIMIT", 10)
    path = left_by_nobody(tmp_path / "x.db")
    with writer(path) as program:
        program("INSERT INTO words VALUES ('longer than ten')")
        with ForeignDatabase(str(path)) as database:
            assert database.rows(f"SELECT {capped('word')} FROM words ORDER BY rowid") == [("first",), (None,)]


def test_waiting_for_a_fresh_file_to_settle(tmp_path: Path) -> None:
    path = left_by_nobody(tmp_path / "x.db")
    os.utime(path, ns=(0, time.time_ns() + 10**12))  # a clock that is ahead
    assert seen(path) == ["first"]


@given(st.one_of(st.none(), st.text(), st.binary(), st.integers(), st.floats()))
def test_any_value_is_text_and_maybe_json(value: object) -> None:
    assert isinstance(text(value), str)
    parsed(value)


@given(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["", *"abcdefg"])), st.sampled_from("abcdef"))
def test_the_topmost_parent_ends_in_any_graph(parents: Dict[str, str], start: str) -> None:
    found = topmost(parents, start)
    assert found != "" and (found is None) == (not parents.get(start))
