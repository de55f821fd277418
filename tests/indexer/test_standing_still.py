"""Nothing stands still for good: files lost beside the index, folders read again, long readings and their passes."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Iterator

import pytest

from relay.contract.requests import SearchRequest
from relay.index import opening
from relay.indexer import appending, backlog, owner
from relay.search.engine import Engine
from tests.indexer.conftest import REPOSITORY, Box, root_only, until


@pytest.mark.parametrize("lost", ["-wal", "-shm"])
@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_beside_the_index_may_be_lost(box: Box, tmp_path: Path, lost: str, how: str) -> None:
    box.say("a.jsonl", "one")
    indexer, follower = box.current(), box.start()
    before = box.incarnation()
    if how == "replaced":
        Path(box.path + lost + ".new").write_bytes(b"")
        os.replace(box.path + lost + ".new", box.path + lost)
    else:
        os.remove(box.path + lost)
    box.say("a.jsonl", "two")
    until(lambda: box.incarnation() != before and box.texts() == ["one", "two"], indexer.status)
    until(lambda: indexer.ready and follower.ready and indexer.status()["phase"] == "current", indexer.status)
    follower.close()
    indexer.close()
    box.is_whole(tmp_path)


def test_a_pipe_in_the_place_of_the_index_holds_nobody_up(box: Box, tmp_path: Path) -> None:
    box.say("a.jsonl", "one")
    Path(box.state).mkdir(parents=True)
    os.mkfifo(box.path)
    indexer = box.current()
    assert box.texts() == ["one"]
    os.remove(box.path)
    os.mkfifo(box.path)
    until(lambda: os.path.isfile(box.path) and box.texts() == ["one"], indexer.status)
    indexer.close()
    box.is_whole(tmp_path)


_REPLACED = """
import os, sqlite3, sys
from relay.index import opening
from relay.index.faults import IndexUnavailable
path = sys.argv[1]
index = opening.open_for_writing(path)
index.connection.execute("INSERT INTO meta VALUES('a', 'b')")
other = sqlite3.connect(path + ".other")
other.execute("PRAGMA journal_mode = WAL")
other.execute("CREATE TABLE t(x)")
other.close()
os.replace(path + ".other", path)
try:
    opening.open_for_reading(path)
except IndexUnavailable as fault:
    print(fault)
print(index.connection.execute("SELECT value FROM meta WHERE name = 'a'").fetchone()[0])
index.close()
print(sorted(os.listdir(os.path.dirname(path))))
"""


def test_the_memory_shared_with_a_replaced_file_is_not_cut(tmp_path: Path) -> None:
    """A process that maps it would end with SIGBUS."""
    path = opening.database_path(str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", _REPLACED, path], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True
    )
    assert done.stdout.splitlines() == ["The index was replaced; it is opened anew.", "b", "['index.db']"]


@root_only()
def test_a_search_sees_what_is_written_once_a_read_only_folder_takes_writes(box: Box) -> None:
    box.say("a.jsonl", "one")
    box.index()
    subprocess.run(["mount", "--bind", box.state, box.state], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", box.state], check=True)
        engine = Engine(box.path)
        assert [hit["sessionId"] for hit in engine.search(SearchRequest("one"))["hits"]] == ["a"]
        subprocess.run(["mount", "-o", "remount,bind,rw", box.state], check=True)
        box.say("b.jsonl", "another")
        indexer = box.current()
        assert [hit["sessionId"] for hit in engine.search(SearchRequest("another"))["hits"]] == ["b"]
        engine.close()
        indexer.close()
    finally:
        subprocess.run(["umount", box.state], check=True)


def test_a_folder_that_can_be_read_again_is_read_without_an_event(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "POLL_LEAST", 0.05)
    monkeypatch.setattr(owner, "POLL_FACTOR", 0.0)
    box.say("p/a.jsonl", "one")
    real = os.scandir

    def scandir(path: str) -> object:  # root may read everything: the error is the kernel's, the cause is ours
        if str(path).endswith("/p"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scandir)
        indexer = box.start()
        until(lambda: indexer.status()["phase"] == "degraded", indexer.status)
        assert box.texts() == []
    until(lambda: box.texts() == ["one"] and indexer.status()["phase"] == "current", indexer.status)


def test_an_append_behind_a_long_reading_does_not_rest(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "REST_FACTOR", 1e6)
    monkeypatch.setattr(backlog, "REST_LIMIT", 600.0)
    indexer = box.current()
    box.say("a.jsonl", *(f"text {n}" for n in range(2000)))
    until(lambda: len(box.texts()) == 2000, indexer.status)
    box.say("a.jsonl", "appended")
    until(lambda: len(box.texts()) == 2001, indexer.status)


def test_a_pass_waits_for_a_source_that_is_being_read(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design: ``wait-until-current`` is honoured, or answered with ``truncated.freshness``; here the rest is found."""
    monkeypatch.setattr(owner, "SHORT_READING", 0.0)
    monkeypatch.setattr(appending, "SLICE", 200)
    going, answers = threading.Event(), []  # type: ignore[var-annotated]
    real = appending.Fold.slices

    def slices(fold: appending.Fold, size: int) -> Iterator[object]:
        for number, piece in enumerate(real(fold, size)):
            yield piece
            if number == 0 and not fold.done:
                until(lambda: box.indexers[0]._owner.passes.owed)  # type: ignore[union-attr]
            elif number == 1 and not fold.done:
                going.wait(20)

    monkeypatch.setattr(appending.Fold, "slices", slices)
    box.say("a.jsonl", *(f"text {n}" for n in range(40)))
    indexer = box.start()
    until(lambda: indexer._owner is not None)
    box.say("b.jsonl", "besides")
    assert indexer.reconcile(1.0) is False
    waiting = threading.Thread(target=lambda: answers.append(indexer.reconcile(20)))
    waiting.start()
    until(lambda: "besides" in box.texts(), indexer.status)
    assert "text 39" not in box.texts() and answers == []
    going.set()
    waiting.join()
    assert answers == [True] and "text 39" in box.texts()


def test_another_programs_database_is_set_aside_as_it_was(box: Box) -> None:
    box.say("a.jsonl", "one")
    Path(box.state).mkdir(parents=True)
    other = sqlite3.connect(box.path)
    other.execute("CREATE TABLE t(x)")
    other.close()
    before = Path(box.path).read_bytes()
    box.index()
    assert box.texts() == ["one"]
    assert Path(box.path + opening.FOREIGN).read_bytes() == before


@pytest.mark.parametrize("why", ["damaged", "asked for"])
def test_an_index_that_is_rebuilt_says_so_from_its_first_moment(tmp_path: Path, why: str) -> None:
    path = opening.database_path(str(tmp_path))
    if why == "damaged":
        Path(path).write_bytes(b"no database" * 1000)
    index = opening.open_for_writing(path, rebuilding=why == "asked for")
    assert index.connection.execute("SELECT value FROM meta WHERE name = 'rebuilding'").fetchone() == ("1",)
    index.close()
