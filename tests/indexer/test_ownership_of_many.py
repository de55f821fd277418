"""One writer among the agents of an account: the others read, and one takes over when it is gone."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any, List

import pytest

from relay.index import removal
from relay.index.faults import NotOwner
from relay.index.ownership import Ownership
from tests.indexer.conftest import Box, ask, until


def owner_of(box: Box) -> int:
    """The pid of the process that holds the writer's lock, or 0."""
    inode = os.stat(os.path.join(box.state, "writer.lock")).st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if "FLOCK" in fields and fields[5].endswith(f":{inode}") and "->" not in fields:
            return int(fields[4])
    return 0


def test_the_lock_has_one_holder(box: Box) -> None:
    """Invariant 3 of the design: one writer per index."""
    one, other = Ownership(box.state), Ownership(box.state)
    assert one.take() and not other.take()
    one.release()
    assert other.take()
    other.release()


def test_a_lock_whose_file_was_removed_is_lost(box: Box) -> None:
    one, other = Ownership(box.state), Ownership(box.state)
    assert one.take() and not one.lost()
    os.remove(os.path.join(box.state, "writer.lock"))
    assert one.lost()
    assert other.take()
    one.release()
    other.release()


def test_eight_agents_have_one_writer_and_all_are_current(box: Box, tmp_path: Path) -> None:
    """Invariant 3 of the design: the others read."""
    box.say("a.jsonl", "one")
    agents = [box.process() for _ in range(8)]
    until(lambda: all(ask(agent, "status")["phase"] == "current" for agent in agents))
    assert owner_of(box) in {agent.pid for agent in agents}
    box.say("a.jsonl", "two")
    answers = [ask(agent, "reconcile 20") for agent in agents]
    assert answers == [True] * 8 and box.texts() == ["one", "two"]
    statuses = [ask(agent, "status") for agent in agents]
    assert all(status == statuses[0] for status in statuses)
    box.is_whole(tmp_path)


def test_another_takes_over_when_the_writer_is_killed_and_no_pass_is_lost(box: Box, tmp_path: Path) -> None:
    """Invariant 3 of the design: the lock is released by the kernel, and one of the others takes over."""
    box.say("a.jsonl", "one")
    agents = [box.process() for _ in range(3)]
    until(lambda: all(ask(agent, "status")["phase"] == "current" for agent in agents))
    for round_number in range(2):
        pid = owner_of(box)
        writer = next(agent for agent in agents if agent.pid == pid)
        others = [agent for agent in agents if agent.pid != pid]
        answers: List[object] = []

        def wait(agent: Any = others[0], answers: List[object] = answers) -> None:
            answers.append(ask(agent, "reconcile 20"))

        waiting = threading.Thread(target=wait)
        os.kill(pid, signal.SIGSTOP)  # it holds the lock and answers nobody: the pass is asked of it, and lost with it
        box.say("a.jsonl", f"round {round_number}")
        waiting.start()
        time.sleep(0.2)
        os.kill(pid, signal.SIGKILL)
        waiting.join()
        assert answers == [True] and f"round {round_number}" in box.texts()
        writer.communicate()
        agents.remove(writer)
    box.is_whole(tmp_path)


def test_a_follower_has_the_writer_look(box: Box) -> None:
    """Invariant 3 of the design: a follower's wait-until-current is honoured by the writer."""
    box.say("a.jsonl", "one")
    writer = box.current()
    follower = box.start()
    until(lambda: follower.status()["phase"] == "current", follower.status)
    writer._owner._watcher.stop()  # type: ignore[union-attr]
    for n in range(3):
        box.say("a.jsonl", f"asked {n}")
        assert follower.reconcile(10) is True
        assert box.texts()[-1] == f"asked {n}"
    assert follower._owner is None and follower.ready


def test_clearing_takes_the_lock_and_removes_every_file(box: Box) -> None:
    box.say("a.jsonl", "one")
    indexer = box.current()
    before = box.incarnation()
    with pytest.raises(NotOwner):
        removal.clear(box.state, 0.2)
    indexer.close()
    for suffix in (".damaged", ".other-version"):
        Path(box.path + suffix).write_text("left from before")
    removal.clear(box.state, 5)
    assert [name for name in os.listdir(box.state) if name.startswith("index.db")] == []
    box.index()
    assert box.incarnation() != before and box.texts() == ["one"]


def test_clearing_what_is_not_there_is_no_error(box: Box) -> None:
    removal.clear(box.state, 1)
    assert not os.path.exists(box.state)


def test_readers_never_wait_for_the_writer(box: Box) -> None:
    """Invariant 6 of the design: reads never wait for a write, and no read transaction outlives its statement."""
    from relay.index import opening
    from relay.index.writer import Writer

    box.say("a.jsonl", "one")
    box.index()
    index = opening.open_for_writing(box.path)
    writer = Writer(index)
    writer.begin()
    writer.hide_sessions("agent = ?", ("claude",))
    assert box.texts() == ["one"]  # while the transaction is open
    with contextlib.closing(opening.open_for_reading(box.path)) as reader:
        reader.execute("SELECT * FROM rows").fetchall()
        writer.commit()  # with the reader still open
        assert not reader.in_transaction
    assert box.texts() == []
    index.close()


def test_a_full_pass_beside_a_running_agent_waits_for_it(box: Box) -> None:
    box.say("a.jsonl", "one")
    box.current()
    box.say("a.jsonl", "two")
    reported = []
    last = box.index(reported.append)
    assert last.by_agent and last.finished and box.texts() == ["one", "two"]
