"""The running indexer: what happens below the roots is searchable soon after, however it happened."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path
from typing import List, Tuple

import pytest

from relay.indexer import backlog, owner, reading, watching
from tests.indexer.conftest import Box, until


def test_an_appended_line_is_found_without_asking(box: Box) -> None:
    box.say("a.jsonl", "one")
    box.current()
    for n in range(20):
        box.say("a.jsonl", f"live{n}")
    until(lambda: box.texts() == ["one", *(f"live{n}" for n in range(20))], box.texts)


def test_half_a_line_is_read_when_the_other_half_comes(box: Box) -> None:
    """Invariant 4 of the design: read when it is whole, without waiting for a further write."""
    box.say("a.jsonl", "one")
    box.current()
    box.write("a.jsonl", '{"say": "half')
    time.sleep(0.3)
    assert box.texts() == ["one"]
    box.write("a.jsonl", ' and half"}\n')
    until(lambda: box.texts() == ["one", "half and half"], box.texts)


def test_new_folders_are_watched_however_deep(box: Box) -> None:
    box.current()
    for n in range(5):
        box.say(f"p{n}/q/r/a.jsonl", f"deep{n}")
    until(lambda: len(box.texts()) == 5, box.texts)
    for n in range(5):
        box.say(f"p{n}/q/r/a.jsonl", "more")
    until(lambda: len(box.texts()) == 10, box.texts)


def test_a_root_that_appears_later_is_watched(box: Box) -> None:
    shutil.rmtree(box.home / ".plain")
    box.current()
    box.say("p/a.jsonl", "one")
    until(lambda: box.texts() == ["one"], box.texts)
    box.say("p/a.jsonl", "two")
    until(lambda: box.texts() == ["one", "two"], box.texts)


def test_a_root_that_is_made_anew_is_watched_anew(box: Box) -> None:
    box.say("a.jsonl", "one")
    box.current()
    shutil.rmtree(box.lines)
    until(lambda: box.texts() == [], box.texts)
    box.say("b.jsonl", "two")
    until(lambda: box.texts() == ["two"], box.texts)
    box.say("b.jsonl", "three")
    until(lambda: box.texts() == ["two", "three"], box.texts)


def test_a_folder_moved_in_with_its_content_is_read_and_watched(box: Box, tmp_path: Path) -> None:
    box.current()
    outside = tmp_path / "outside" / "deep"
    outside.mkdir(parents=True)
    (outside / "a.jsonl").write_text('{"say": "moved"}\n')
    for path in (outside, outside.parent):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    os.rename(tmp_path / "outside", box.lines / "inside")
    until(lambda: box.texts() == ["moved"], box.texts)
    time.sleep(1.5)  # a tick, in which the root is watched anew
    box.say("inside/deep/a.jsonl", "and on")
    until(lambda: box.texts() == ["moved", "and on"], box.texts)


def test_deleted_moved_and_replaced_files_follow(box: Box, tmp_path: Path) -> None:
    a, b = box.say("p/a.jsonl", "one"), box.say("p/b.jsonl", "two")
    box.current()
    a.unlink()
    until(lambda: box.texts() == ["two"], box.texts)
    b.rename(box.lines / "p" / "c.jsonl")
    until(lambda: box.texts("c") == ["two"] and box.texts("b") == [], box.texts)
    new = box.say("p/new.tmp", "three")
    os.replace(new, box.lines / "p" / "c.jsonl")
    until(lambda: box.texts() == ["three"], box.texts)
    shutil.rmtree(box.lines / "p")
    until(lambda: box.texts() == [], box.texts)
    until(lambda: box.value("SELECT count(*) FROM rows") == 0)
    box.is_whole(tmp_path)


def test_documents_and_databases_are_live_too(box: Box) -> None:
    database = box.database("d.db")
    box.current()
    box.document("d.json", {"x": ["document"]})
    until(lambda: box.texts("x") == ["document"], box.texts)
    database.execute("INSERT INTO said VALUES('y', 0, 'row')")
    until(lambda: box.texts("y") == ["row"], box.texts)
    database.execute("INSERT INTO said VALUES('y', 1, 'another')")
    until(lambda: box.texts("y") == ["row", "another"], box.texts)
    box.document("d.json", {"x": ["document", "again"]})
    until(lambda: box.texts("x") == ["document", "again"], box.texts)
    database.close()


def test_an_overflow_of_events_owes_a_sweep(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariants 5 and 8 of the design: the queue is bounded, and a sweep repairs what was dropped."""
    monkeypatch.setattr(backlog, "EVENT_LIMIT", 3)
    box.current()
    for n in range(50):
        box.say(f"f{n}.jsonl", f"burst{n}")
    until(lambda: len(box.texts()) == 50, lambda: len(box.texts()))


def test_without_inotify_folders_are_polled_and_status_says_so(
    box: Box, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Invariant 8 of the design: polling takes over, and status says so."""
    import watchdog.observers

    def no_room(*anything: object, **more: object) -> None:
        raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr(watchdog.observers.Observer, "schedule", no_room)
    monkeypatch.setattr(owner, "POLL_LEAST", 0.2)
    box.say("a.jsonl", "one")
    indexer = box.start()
    until(lambda: indexer.status()["phase"] == "degraded", indexer.status)
    reasons = {root["reason"] for root in indexer.status()["degradedRoots"]}
    assert reasons == {"Changes are found by polling: the limit of inotify watches is reached."}
    box.say("a.jsonl", "two")
    until(lambda: box.texts() == ["one", "two"], box.texts)
    said = capfd.readouterr().err
    assert said.count("some folders are watched by polling") <= 1 and str(box.home) not in said


def test_changes_that_cause_no_event_make_a_folder_polled(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 8 of the design: missing events are noticed by the sweep."""
    monkeypatch.setattr(watching.Watcher, "handle", lambda self, path, event: None)
    monkeypatch.setattr(owner, "SWEEP", 1.0)
    monkeypatch.setattr(owner, "POLL_LEAST", 0.2)
    from relay.indexer import indexing

    monkeypatch.setattr(indexing, "_MISSED_NS", 100_000_000)
    indexer = box.current()
    box.say("a.jsonl", "silent")
    until(lambda: box.texts() == ["silent"], box.texts)
    until(lambda: any("no event" in root["reason"] for root in indexer.status()["degradedRoots"]), indexer.status)
    box.say("a.jsonl", "polled")
    until(lambda: box.texts() == ["silent", "polled"], box.texts)


def test_a_dead_observer_is_replaced(box: Box) -> None:
    box.say("a.jsonl", "one")
    indexer = box.current()
    for emitter in list(indexer._owner._watcher._observer.emitters):  # type: ignore[union-attr]
        emitter.stop()
    box.say("a.jsonl", "two")
    until(lambda: box.texts() == ["one", "two"], box.texts)


def test_status_is_true_through_every_phase(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(3):
        box.say(f"f{n}.jsonl", f"text {n}")
    box.write("bad.jsonl", "no json\n")
    from relay.indexer.indexer import Indexer

    indexer = Indexer(box.state, box.env, None)
    box.indexers.append(indexer)
    assert indexer.status() == {
        "phase": "idle", "filesIndexed": 0, "filesDue": 0, "filesFailed": 0, "degradedRoots": [],
        "lastReconcileAt": None, "lastSweepCompletedAt": None, "generation": 0,
    }  # fmt: skip
    gate, real = threading.Event(), reading.read

    def slow(*arguments: object) -> bool:
        gate.wait(10)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(reading, "read", slow)
    indexer.start()
    until(lambda: indexer.status()["filesDue"] == 4, indexer.status)
    status = indexer.status()
    assert status["phase"] == "indexing" and status["lastSweepCompletedAt"] is None and status["filesIndexed"] == 0
    gate.set()
    until(lambda: indexer.status()["phase"] == "current", indexer.status)
    status = indexer.status()
    assert (status["filesIndexed"], status["filesFailed"], status["filesDue"]) == (3, 1, 0)
    assert status["generation"] == box.generation() > 0
    now = time.time() * 1000
    assert now - 60_000 < status["lastSweepCompletedAt"] <= now and status["lastReconcileAt"] <= now
    before = status["lastReconcileAt"]
    assert indexer.reconcile(10) is True
    assert indexer.status()["lastReconcileAt"] >= before
    indexer.close()
    assert indexer.status()["phase"] == "closed"


def test_reading_nothing_before_start(box: Box) -> None:
    """Invariant 1 of the design: nothing is read, and nothing written, before the owner of the policy says so."""
    from relay.indexer.indexer import Indexer

    box.say("a.jsonl", "one")
    indexer = Indexer(box.state, box.env, None)
    assert not indexer.ready and not os.path.exists(box.state)


def test_nothing_is_written_outside_the_state_folder_and_it_is_private(box: Box, tmp_path: Path) -> None:
    """Invariant 1 of the design: files 0600, the folder 0700, and nothing anywhere else."""
    box.say("a.jsonl", "one")
    os.makedirs(os.path.dirname(box.state))
    before = sorted(path for path in tmp_path.rglob("*") if not str(path).startswith(box.state))
    indexer = box.current()
    box.say("a.jsonl", "two")
    until(lambda: box.texts() == ["one", "two"])
    assert os.stat(box.state).st_mode & 0o777 == 0o700
    for name in os.listdir(box.state):
        assert os.stat(os.path.join(box.state, name)).st_mode & 0o777 == 0o600, name
    indexer.close()
    assert sorted(path for path in tmp_path.rglob("*") if not str(path).startswith(box.state)) == before


def test_waiting_for_freshness_at_once_shares_a_pass(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    from relay.indexer import indexing

    box.say("a.jsonl", "one")
    indexer = box.current()
    passes = []
    real = indexing.Indexing.reconcile

    def slow(self: indexing.Indexing) -> None:
        passes.append(1)
        time.sleep(0.2)
        real(self)

    monkeypatch.setattr(indexing.Indexing, "reconcile", slow)
    answers = []
    waiting = [threading.Thread(target=lambda: answers.append(indexer.reconcile(10))) for _ in range(10)]
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join()
    assert answers == [True] * 10 and len(passes) <= 2


def test_a_pass_that_takes_too_long_is_given_up_by_the_waiter_alone(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    from relay.indexer import indexing

    box.say("a.jsonl", "one")
    indexer = box.current()
    real = indexing.Indexing.reconcile
    done = threading.Event()

    def slow(self: indexing.Indexing) -> None:
        time.sleep(0.5)
        real(self)
        done.set()

    monkeypatch.setattr(indexing.Indexing, "reconcile", slow)
    assert indexer.reconcile(0.05) is False
    assert done.wait(10)


def test_a_pass_that_fails_is_an_error_for_the_waiter(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    from relay.index.faults import IndexUnwritable
    from relay.indexer import indexing
    from relay.indexer.indexer import ReconcileFailed

    indexer = box.current()

    def full(self: indexing.Indexing) -> None:
        raise IndexUnwritable("The disk is full; indexing goes on when there is room.")

    with monkeypatch.context() as patch:
        patch.setattr(indexing.Indexing, "reconcile", full)
        with pytest.raises(ReconcileFailed):
            indexer.reconcile(10)
    until(lambda: indexer.status()["phase"] == "current", indexer.status)
    assert indexer.reconcile(10) is True


def test_freshness_is_not_kept_waiting_by_a_large_file(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a pass would read besides is read between the slices of a long reading, whose end the pass waits for."""
    from relay.indexer import appending, indexing

    monkeypatch.setattr(appending, "SLICE", 1000)
    real = indexing.Indexing._breathe
    pace = [0.02]

    def slow(self: indexing.Indexing) -> None:
        time.sleep(pace[0])
        real(self)

    monkeypatch.setattr(indexing.Indexing, "_breathe", slow)
    box.say("big.jsonl", *(f"message number {n} " + "x" * 80 for n in range(2000)))
    indexer = box.start()
    until(lambda: indexer.status()["filesDue"] == 1 and len(box.texts()) > 0 or None, indexer.status)
    box.say("small.jsonl", "urgent")
    pace[0] = 0.2
    assert indexer.reconcile(0.5) is False
    until(lambda: box.texts("small") == ["urgent"], indexer.status)
    assert indexer.status()["phase"] == "indexing"
    pace[0] = 0.0
    assert indexer.reconcile(10) is True
    assert len(box.texts("big")) == 2000
    indexer.close()


def test_the_newest_are_read_first(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    from relay.indexer import indexing

    order = []
    real = indexing.Indexing.read

    def noting(self: indexing.Indexing, source, *more) -> None:  # type: ignore[no-untyped-def]
        order.append(Path(source.path).name)
        real(self, source, *more)

    monkeypatch.setattr(indexing.Indexing, "read", noting)
    for n, age in enumerate((30, 10, 20)):
        path = box.say(f"f{n}.jsonl", "x")
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    box.index()
    assert order == ["f1.jsonl", "f2.jsonl", "f0.jsonl"]


def test_what_is_read_and_not_committed_is_due(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(6):
        box.say(f"{n}.jsonl", "said")
    real = reading.read
    told: List[Tuple[int, int]] = []

    def telling(*arguments: object) -> bool:
        settled = real(*arguments)  # type: ignore[arg-type]
        status = box.indexers[0].status()
        told.append((status["filesIndexed"], status["filesDue"]))
        return settled

    monkeypatch.setattr(reading, "read", telling)
    box.start()
    until(lambda: box.indexers[0].status()["phase"] == "current", box.indexers[0].status)
    assert told and {indexed + due for indexed, due in told} == {6}
    status = box.indexers[0].status()
    assert (status["filesIndexed"], status["filesDue"]) == (6, 0)
