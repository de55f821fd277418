"""One full pass in the foreground: everything that is due is read, what is gone is removed, and nothing is watched."""

from __future__ import annotations

import threading
import time
from typing import Callable, NamedTuple, Optional

from relay.index import opening
from relay.index.faults import IndexDamaged, NotOwner
from relay.index.ownership import Ownership
from relay.indexer import channel
from relay.indexer.backlog import Events
from relay.indexer.indexing import Indexing
from relay.transcripts.registry import Env

#: Seconds between two reports of progress.
_REPORT = 0.1
#: Seconds a running agent that does this pass is asked again.
_ASK = 0.5


class Progress(NamedTuple):
    """How far a pass is. Sizes in bytes, ``seconds`` since it began; totals of what was due at its start."""

    files_done: int
    files_total: int
    bytes_done: int
    bytes_total: int
    seconds: float
    finished: bool = False
    #: An agent that is running does the work; sizes are unknown.
    by_agent: bool = False


def run_full_pass(
    state_folder: str, env: Env, history_days: Optional[int], progress: Callable[[Progress], None]
) -> Progress:
    """Bring the whole index up to date and answer the last progress.

    When an agent is running, it is the writer: then this waits until the agent is through. A damaged index is rebuilt.
    Raises IndexUnwritable, NotOwner.
    """
    ownership = Ownership(state_folder)
    if not ownership.take():
        return _watch_agent(state_folder, ownership, env, history_days, progress)
    try:
        try:
            return _run(state_folder, env, history_days, progress)
        except IndexDamaged:
            opening.set_aside(opening.database_path(state_folder), opening.DAMAGED)
            return _run(state_folder, env, history_days, progress)
    finally:
        ownership.release()


def _run(
    state_folder: str, env: Env, history_days: Optional[int], progress: Callable[[Progress], None]
) -> Progress:
    started = time.monotonic()
    index = opening.open_for_writing(opening.database_path(state_folder))
    indexing: Optional[Indexing] = None
    try:
        indexing = Indexing(index, env, Events(threading.Condition()), history_days, gentle=False)
        indexing.scan(retry_failed=True)
        files_total, bytes_total = len(indexing.due), indexing.due.bytes
        reported = 0.0

        def report(finished: bool = False) -> Progress:
            left = len(indexing.due)
            now = Progress(
                files_total - left,
                files_total,
                bytes_total - indexing.due.bytes,
                bytes_total,
                time.monotonic() - started,
                finished,
            )
            progress(now)
            return now

        report()
        while indexing.read_next():
            if time.monotonic() - reported > _REPORT:
                reported = time.monotonic()
                report()
        while indexing.tidy():
            pass
        indexing.writer.execute("DELETE FROM meta WHERE name = 'rebuilding'")
        indexing.note("last_reconcile")
        indexing.note("last_sweep")
        opening.remove_damaged(index.path)
        return report(finished=True)
    finally:
        if indexing is not None:
            indexing.close()
        index.close()


def _watch_agent(
    state_folder: str,
    ownership: Ownership,
    env: Env,
    history_days: Optional[int],
    progress: Callable[[Progress], None],
) -> Progress:
    """A running agent is current or becomes so by itself: have it look now, and wait until nothing is due."""
    started = time.monotonic()
    silent = 0
    most = 0
    try:
        channel.ask(state_folder, "reconcile", 30.0)
    except TimeoutError:
        pass  # it is reading; what is due is seen below
    while True:
        if ownership.take():  # it ended meanwhile
            ownership.release()
            return run_full_pass(state_folder, env, history_days, progress)
        try:
            answer = channel.ask(state_folder, "status")
        except TimeoutError:
            answer = None
        if answer is None:
            silent += 1
            if silent > 20:
                raise NotOwner("Another process is writing the index and does not answer; try again.")
        else:
            silent = 0
            due = int(answer["filesDue"])
            most = max(most, due)
            done = answer["phase"] in ("current", "degraded", "closed") and due == 0
            now = Progress(most - due, most, 0, 0, time.monotonic() - started, done, by_agent=True)
            progress(now)
            if done:
                return now
        time.sleep(_ASK)
