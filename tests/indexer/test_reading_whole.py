"""Documents and foreign databases: only what differs is written, and what they no longer hold stops answering."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.indexer.conftest import Box


def test_a_document_gives_its_sessions(box: Box, tmp_path: Path) -> None:
    box.document("d.json", {"x": ["one", "two"], "y": ["three"]})
    box.index()
    assert box.texts("x") == ["one", "two"] and box.texts("y") == ["three"]
    box.is_whole(tmp_path)


def test_a_rewritten_document_keeps_the_rows_that_are_the_same(box: Box, tmp_path: Path) -> None:
    box.document("d.json", {"x": [f"message {n}" for n in range(50)]}, at=1)
    box.index()
    first = box.value("SELECT max(id) FROM rows")
    box.document("d.json", {"x": [f"message {n}" for n in range(51)]}, at=1)
    box.index()
    assert box.value(f"SELECT count(*) FROM rows WHERE id <= {first}") == 50
    assert len(box.texts("x")) == 51
    box.is_whole(tmp_path)


def test_a_session_that_left_its_document_stops_answering(box: Box, tmp_path: Path) -> None:
    box.document("d.json", {"x": ["one"], "y": ["two"]})
    box.index()
    box.document("d.json", {"y": ["two", "more"]})
    box.index()
    assert box.texts() == ["two", "more"] and box.finds("one") == 0
    box.is_whole(tmp_path)


def test_a_document_of_several_slices_appears_at_once(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from relay.indexer import collecting

    monkeypatch.setattr(collecting, "SLICE", 500)
    box.document("d.json", {"x": [f"message {n}" for n in range(300)]})
    box.index()
    box.document("d.json", {"x": [f"other {n}" for n in range(300)]})
    box.index()
    assert box.texts("x") == [f"other {n}" for n in range(300)] and box.finds("message") == 0
    box.is_whole(tmp_path)


def test_a_broken_document_keeps_what_it_had_and_is_failed(box: Box) -> None:
    path = box.document("d.json", {"x": ["one"]})
    box.index()
    path.write_text('{"sessions": {"x": ["one", "tw')
    box.index()
    assert box.texts() == ["one"] and box.failure(path) == "The document is not valid JSON."
    box.document("d.json", {"x": ["one", "two"]})
    box.index()
    assert box.texts() == ["one", "two"] and box.failure(path) is None


def test_a_document_of_an_unforeseen_shape_costs_itself_alone(box: Box) -> None:
    path = box.documents / "odd.json"
    path.write_text('{"other": 1}')
    box.document("good.json", {"x": ["one"]})
    box.index()
    assert box.texts() == ["one"] and "KeyError" in str(box.failure(path))


def test_only_the_changed_sessions_of_a_database_are_read(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.support import plain_agent

    database = box.database("d.db")
    database.executemany("INSERT INTO said VALUES(?, ?, ?)", [("x", 0, "one"), ("y", 0, "two")])
    box.index()
    assert box.texts() == ["one", "two"]
    read = []
    original = plain_agent.Database.read
    monkeypatch.setattr(
        plain_agent.Database, "read", lambda self, session: read.append(session) or original(self, session)
    )
    database.execute("INSERT INTO said VALUES('y', 1, 'three')")  # in the write-ahead log alone
    box.index()
    assert read == ["y"] and box.texts("y") == ["two", "three"]
    database.execute("DELETE FROM said WHERE session = 'x'")
    box.index()
    assert box.texts() == ["two", "three"]
    database.close()


def test_the_foreign_database_is_left_as_it_was(box: Box) -> None:
    """Invariant 1 of the design: a foreign SQLite database is never changed."""
    database = box.database("d.db")
    database.execute("INSERT INTO said VALUES('x', 0, 'one')")
    database.close()
    path = box.databases / "d.db"
    before, listed = path.read_bytes(), sorted(os.listdir(box.databases))
    box.index()
    assert box.texts() == ["one"]
    assert path.read_bytes() == before and listed[0] == "d.db"


def test_transcripts_are_never_opened_for_writing(box: Box) -> None:
    """Invariant 1 of the design: transcripts are never opened for writing."""
    path = box.say("a.jsonl", "one")
    document = box.document("d.json", {"x": ["two"]})
    for file in (path, document):
        file.chmod(0o444)
    before = [(file.stat().st_mtime_ns, file.read_bytes()) for file in (path, document)]
    box.index()
    assert [(file.stat().st_mtime_ns, file.read_bytes()) for file in (path, document)] == before
    assert box.texts() == ["one", "two"]
