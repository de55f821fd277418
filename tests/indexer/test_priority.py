"""A good guest: low priority, rests while the machine is busy, and no work without a cause."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import List

import pytest

from relay.indexer import indexing, owner, priority
from tests.indexer.conftest import Box, until


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere a thread has no priority of its own")
def test_the_indexing_thread_alone_has_low_priority() -> None:
    """Invariant 10 of the design: low CPU and I/O priority for backfill."""
    found: List[int] = []

    def run() -> None:
        priority.lower_this_thread()
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    before = os.getpriority(os.PRIO_PROCESS, 0)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [max(before, priority.NICENESS)] and os.getpriority(os.PRIO_PROCESS, 0) == before


def test_a_machine_is_busy_when_more_runs_than_it_has_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    for load, busy in ((0.5, False), (2.9, False), (3.5, True)):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        assert priority.is_busy() is busy


def test_a_backfill_rests_while_the_machine_is_busy(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 10 of the design: pauses when the machine is busy, with what was read made visible before."""
    rests: List[float] = []
    real = time.sleep

    def sleep(seconds: float) -> None:
        rests.append(seconds)
        real(min(seconds, 0.01))

    def read_slowly(self: indexing.Indexing, *anything: object) -> None:
        until_then = time.monotonic() + 0.12
        while time.monotonic() < until_then:
            pass

    monkeypatch.setattr(priority, "is_busy", lambda: True)
    monkeypatch.setattr(indexing.time, "sleep", sleep)
    monkeypatch.setattr(indexing.Indexing, "_read", read_slowly)
    for n in range(3):
        box.say(f"f{n}.jsonl", "text")
    box.current()
    assert rests and max(rests) <= 1.0


def test_idle_means_that_nothing_is_done(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 10 of the design: no busy polling."""
    box.say("a.jsonl", "one")
    indexer = box.current()
    until(lambda: indexer._owner is not None and not indexer._owner._tidy, indexer.status)
    pauses: List[float] = []
    real = owner.Owner._work

    def counting(self: owner.Owner) -> float:
        pauses.append(real(self))
        return pauses[-1]

    monkeypatch.setattr(owner.Owner, "_work", counting)
    for name in ("scan", "tidy", "read", "commit"):
        monkeypatch.setattr(indexing.Indexing, name, lambda *anything, name=name: pytest.fail(f"{name} while idle"))
    monkeypatch.setattr(indexing.Indexing, "read_events", lambda self, early=False: False)
    monkeypatch.setattr(indexing.Indexing, "read_next", lambda self: False)
    time.sleep(2.5)
    monkeypatch.undo()
    assert 1 <= len(pauses) <= 8 and indexer.status()["phase"] == "current"
