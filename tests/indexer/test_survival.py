"""What may happen to an index: each has one answer, nothing dies of it, and it recovers by itself."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Iterator

import pytest

from relay.index import opening
from relay.index.faults import IndexDamaged, IndexForeign, IndexUnavailable
from relay.indexer import owner
from tests.indexer.conftest import Box, ask, root_only, until

TEXTS = [f"text number {n}" for n in range(400)]


@pytest.fixture
def filled(box: Box) -> Box:
    for n in range(8):
        box.say(f"f{n}.jsonl", *TEXTS[n * 50 : n * 50 + 50])
    box.index()
    return box


def recovers(box: Box, tmp: Path) -> None:
    """A start over whatever stands at the index's path ends with the whole index."""
    indexer = box.start()
    until(lambda: indexer.status()["phase"] == "current" and indexer.ready, indexer.status)
    until(lambda: len(box.texts()) == 400, lambda: len(box.texts()))
    indexer.close()
    box.is_whole(tmp)


@pytest.mark.parametrize("seed", range(6))
def test_a_kill_at_any_instant_loses_nothing(box: Box, tmp_path: Path, seed: int) -> None:
    """Invariant 2 of the design: after any kill the next start ends with the rows of a clean rebuild."""
    for n in range(8):
        box.say(f"f{n}.jsonl", *TEXTS[n * 50 : n * 50 + 50])
    process = box.process()
    time.sleep(0.15 + seed * 0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    recovers(box, tmp_path)


@pytest.mark.parametrize("what", ["header", "truncated", "empty", "text", "middle", "wal"])
def test_a_damaged_file_is_set_aside_and_rebuilt(filled: Box, tmp_path: Path, what: str) -> None:
    """Invariant 2 of the design: a damaged database file is set aside and rebuilt."""
    path = Path(filled.path)
    size = path.stat().st_size
    with open(path, "r+b") as file:
        if what == "header":
            file.write(b"\0" * 100)
        elif what == "truncated":
            file.truncate(size // 3)
        elif what == "empty":
            file.truncate(0)
        elif what == "text":
            file.truncate(0)
            file.write(b"this is no database\n" * 100)
        elif what == "middle":
            file.seek(4096)
            file.write(os.urandom(size - 8192))
        else:
            Path(filled.path + "-wal").write_bytes(os.urandom(50_000))
    recovers(filled, tmp_path)
    assert not os.path.exists(filled.path + opening.DAMAGED)  # gone once the new index is whole


@pytest.mark.parametrize("what", ["newer", "foreign"])
def test_another_programs_or_versions_file_is_set_aside_and_kept(filled: Box, tmp_path: Path, what: str) -> None:
    """Invariant 2 of the design: a newer or foreign file is set aside."""
    connection = sqlite3.connect(filled.path)
    connection.execute("PRAGMA user_version = 999" if what == "newer" else "PRAGMA application_id = 1")
    connection.commit()
    connection.close()
    with pytest.raises(IndexForeign):
        opening.open_for_reading(filled.path)
    recovers(filled, tmp_path)
    assert os.path.exists(filled.path + opening.FOREIGN)


def test_the_index_can_be_deleted_at_any_moment(filled: Box, tmp_path: Path) -> None:
    """Invariant 2 of the design: it can be deleted at any moment and comes back the same."""
    indexer = filled.current()
    before = filled.incarnation()
    for name in os.listdir(filled.state):
        if name.startswith("index.db"):
            os.remove(os.path.join(filled.state, name))
    until(lambda: filled.incarnation() != before and len(filled.texts()) == 400, indexer.status)
    until(lambda: indexer.status()["phase"] == "current", indexer.status)
    indexer.close()
    filled.is_whole(tmp_path)


def test_the_whole_state_folder_can_be_deleted_under_a_running_agent(filled: Box, tmp_path: Path) -> None:
    indexer = filled.current()
    shutil.rmtree(filled.state)
    until(lambda: len(filled.texts()) == 400 and indexer.status()["phase"] == "current", indexer.status)
    indexer.close()
    filled.is_whole(tmp_path)


@pytest.mark.parametrize("what", ["other", "text", "header"])
def test_a_file_replaced_or_overwritten_under_a_running_agent_is_rebuilt(
    filled: Box, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, "PROBE", 0.5)
    indexer = filled.current()
    before = filled.incarnation()
    if what == "header":
        with open(filled.path, "r+b") as file:
            file.write(b"\0" * 4096)
    else:
        other = str(tmp_path / "other")
        if what == "text":
            Path(other).write_text("no database")
        else:
            connection = sqlite3.connect(other)
            connection.execute("CREATE TABLE t(x)")
            connection.close()
        os.replace(other, filled.path)
    until(lambda: filled.incarnation() != before and len(filled.texts()) == 400, indexer.status)
    until(lambda: indexer.status()["phase"] == "current" and indexer.ready, indexer.status)
    indexer.close()
    filled.is_whole(tmp_path)


def test_garbage_that_only_a_search_meets_is_told_to_the_writer(filled: Box, tmp_path: Path) -> None:
    writer, follower = filled.current(), filled.start()
    until(lambda: follower.status()["phase"] == "current", follower.status)
    before = filled.incarnation()
    connection = sqlite3.connect(filled.path)
    connection.execute("UPDATE words_data SET block = x'00112233' WHERE id > 10")
    connection.commit()
    connection.close()
    follower.report_damage()
    until(lambda: filled.incarnation() != before, writer.status)
    until(lambda: writer.status()["phase"] == "current" and follower.ready, writer.status)
    follower.close()
    writer.close()
    filled.is_whole(tmp_path)


def test_while_it_is_rebuilt_the_index_is_not_ready(filled: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 2 of the design: the agent answers ``not-ready`` meanwhile."""
    import threading

    from relay.indexer import reading

    gate, real = threading.Event(), reading.read

    def slow(*arguments: object) -> bool:
        gate.wait(10)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(reading, "read", slow)
    Path(filled.path).write_text("no database")
    indexer, follower = filled.start(), filled.start()
    until(lambda: indexer.status()["filesDue"] == 8, indexer.status)
    assert not indexer.ready and not follower.ready
    gate.set()
    until(lambda: indexer.ready and follower.ready, indexer.status)


@pytest.fixture
def small_disk(box: Box) -> Iterator[Path]:
    """The state folder on a file system of 2 MB."""
    folder = Path(box.state)
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", str(folder)], check=True)
    yield folder
    box.close()
    subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """A file that takes all the room there is."""
    descriptor = os.open(folder / "filler", os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(descriptor, b"x" * 4096)
    except OSError:
        os.close(descriptor)
    return folder / "filler"


@root_only()
def test_a_full_disk_is_said_and_survived(box: Box, small_disk: Path, tmp_path: Path) -> None:
    filler = fill(small_disk)
    for n in range(8):
        box.say(f"f{n}.jsonl", *TEXTS[n * 50 : n * 50 + 50])
    indexer = box.start()
    until(lambda: indexer.status()["phase"] == "degraded", indexer.status)
    reasons = [root["reason"] for root in indexer.status()["degradedRoots"]]
    assert reasons == ["The disk is full; indexing goes on when there is room."]
    filler.unlink()
    until(lambda: indexer.status()["phase"] == "current" and len(box.texts()) == 400, indexer.status)
    assert indexer.status()["degradedRoots"] == []
    indexer.close()
    assert sorted(box.texts()) == sorted(TEXTS)


@root_only()
def test_a_disk_that_fills_under_a_running_agent_keeps_what_was_there(box: Box, small_disk: Path) -> None:
    box.say("a.jsonl", "one")
    indexer = box.current()
    filler = fill(small_disk)
    for n in range(8):
        box.say(f"f{n}.jsonl", *TEXTS[n * 50 : n * 50 + 50])
    until(lambda: indexer.status()["phase"] == "degraded", indexer.status)
    assert box.texts("a") == ["one"] and indexer.ready
    filler.unlink()
    until(lambda: indexer.status()["phase"] == "current" and len(box.texts()) == 401, indexer.status)


@root_only()
def test_a_read_only_state_folder_is_searched_and_said(filled: Box) -> None:
    folder = filled.state
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        filled.say("a.jsonl", "later")
        indexer = filled.start()
        until(lambda: indexer.status()["phase"] == "degraded", indexer.status)
        assert indexer.ready and len(filled.texts()) == 400
        assert "cannot be written" in indexer.status()["degradedRoots"][0]["reason"]
        subprocess.run(["mount", "-o", "remount,bind,rw", folder], check=True)
        until(lambda: len(filled.texts()) == 401, indexer.status)
        until(lambda: indexer.status()["phase"] == "current", indexer.status)
        indexer.close()
    finally:
        subprocess.run(["umount", folder], check=True)


@root_only()
def test_a_read_only_state_folder_without_an_index_is_not_ready(box: Box) -> None:
    Path(box.state).mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", box.state], check=True)
    try:
        indexer = box.start()
        until(lambda: indexer.status()["phase"] == "degraded", indexer.status)
        assert not indexer.ready
        indexer.close()
    finally:
        subprocess.run(["umount", box.state], check=True)


@pytest.mark.parametrize("when", ["from the start", "later"])
def test_where_a_write_ahead_log_cannot_work_a_journal_does(box: Box, tmp_path: Path, when: str) -> None:
    if when == "later":
        box.say("a.jsonl", "one")
        box.index()
    else:
        Path(box.state).mkdir(parents=True)
    # SQLite cannot make its shared memory where a folder stands.
    (Path(box.path + "-shm")).mkdir()
    box.say("b.jsonl", "two")
    indexer = box.current()
    assert box.texts("b") == ["two"]
    assert box.value("PRAGMA journal_mode") == "delete"
    box.say("b.jsonl", "three")
    until(lambda: box.texts("b") == ["two", "three"], box.texts)
    indexer.close()
    os.rmdir(box.path + "-shm")
    box.is_whole(tmp_path)
    indexer = box.current()  # the cause is gone
    assert box.value("PRAGMA journal_mode") == "wal"


def test_a_clock_that_jumps_changes_no_pace(box: Box) -> None:
    """Waiting and cadence follow the monotonic clock: a jump of the wall clock is only seen in times that are told."""
    from unittest import mock

    real = time.time
    indexer = box.current()
    with mock.patch("time.time", lambda: real() - 10 * 365 * 86_400):
        box.say("a.jsonl", "past")
        until(lambda: box.texts() == ["past"], box.texts)
        assert indexer.reconcile(10) is True
    with mock.patch("time.time", lambda: real() + 10 * 365 * 86_400):
        box.say("a.jsonl", "future")
        until(lambda: box.texts() == ["past", "future"], box.texts)
        assert indexer.reconcile(10) is True
    assert indexer.status()["phase"] in ("current", "indexing")


def test_a_socket_that_cannot_be_made_costs_freshness_alone(box: Box) -> None:
    Path(box.state).mkdir(parents=True)
    os.mkdir(os.path.join(box.state, "writer.sock"))
    box.say("a.jsonl", "one")
    writer, follower = box.current(), box.start()
    until(lambda: follower.ready, follower.status)
    assert follower.reconcile(0.3) is False
    box.say("a.jsonl", "two")
    until(lambda: box.texts() == ["one", "two"], writer.status)


def test_a_state_folder_with_a_long_path_has_a_socket(box: Box, tmp_path: Path) -> None:
    box.state = str(tmp_path / ("deep" * 30) / ("er" * 60))
    box.path = opening.database_path(box.state)
    box.say("a.jsonl", "one")
    box.current()
    follower = box.start()
    until(lambda: follower.status()["phase"] == "current", follower.status)
    assert follower.reconcile(10) is True


def test_reading_gives_faults_and_no_other_errors(box: Box) -> None:
    with pytest.raises(IndexUnavailable):
        opening.open_for_reading(box.path)
    Path(box.state).mkdir(parents=True)
    Path(box.path).write_text("no database")
    with pytest.raises(IndexDamaged):
        opening.open_for_reading(box.path)
    Path(box.path).write_bytes(b"")
    with pytest.raises(IndexUnavailable):
        opening.open_for_reading(box.path)


def test_an_indexer_in_a_process_ends_when_its_input_does(box: Box) -> None:
    box.say("a.jsonl", "one")
    process = box.process()
    until(lambda: ask(process, "status")["phase"] == "current")
    out, errors = process.communicate(timeout=20)
    assert process.returncode == 0 and errors == "" and out == ""
    assert json.dumps(box.value("SELECT value FROM meta WHERE name = 'ended_well'")) == '"1"'


@pytest.mark.parametrize("where", ["the state folder", "the database"])
def test_an_index_that_cannot_be_written_is_absent_only_while_there_is_none_to_read(box: Box, where: str) -> None:
    box.say("a.jsonl", "one")
    obstacle = Path(box.state if where == "the state folder" else box.path)
    obstacle.parent.mkdir(parents=True, exist_ok=True)
    if where == "the state folder":
        obstacle.write_text("a file")
    else:
        obstacle.mkdir()  # and no place to put it aside
        Path(box.path + opening.FOREIGN, "full").mkdir(parents=True)
    indexer = box.start()
    until(lambda: indexer.absent)
    obstacle.unlink() if where == "the state folder" else obstacle.rmdir()
    until(lambda: indexer.ready)
    assert not indexer.absent
