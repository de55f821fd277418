"""The indexer of one process: it owns the index or follows its owner, and takes over when the owner is gone."""

from __future__ import annotations

import threading
import time
from typing import Any, Dict, Optional

from relay.diagnostics import describe
from relay.index import opening, upkeep
from relay.index.faults import IndexFault, IndexUnwritable
from relay.index.ownership import Ownership
from relay.indexer import channel, priority, standing
from relay.indexer.full_pass import Progress, run_full_pass
from relay.indexer.owner import Owner
from relay.indexer.passes import ReconcileFailed
from relay.indexer.standing import warn
from relay.transcripts.registry import Env

__all__ = ["Indexer", "Progress", "ReconcileFailed", "run_full_pass"]

#: Seconds between two tries to become the owner, and between two looks at what costs next to nothing.
TICK = 1.0
#: Seconds a follower's ``ready`` is remembered.
_READY_FOR = 0.25


class Indexer:
    """Keeps the index of ``state_folder`` current while it runs. All methods may be called from any thread.

    ``history_days`` is the retention, None keeps everything. Nothing is read before ``start``.
    """

    def __init__(self, state_folder: str, env: Env, history_days: Optional[int]) -> None:
        self.database_path = opening.database_path(state_folder)
        self._state_folder = state_folder
        self._env = env
        self._history_days = history_days
        self._wake = threading.Condition()
        self._thread: Optional[threading.Thread] = None
        self._closing = False
        self._owner: Optional[Owner] = None
        self._problem: Optional[str] = None
        self._unwritable = False
        self._ready = (0.0, False)

    def start(self) -> None:
        """Begin in a thread of its own; returns at once."""
        with self._wake:
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(target=self._run, name="relay-indexer", daemon=True)
                self._thread.start()

    @property
    def ready(self) -> bool:
        """Whether the index can be searched now."""
        owner = self._owner
        if owner is not None:
            return owner.ready
        now = time.monotonic()
        asked, answer = self._ready
        if now - asked > _READY_FOR:
            answer = standing.is_readable(self.database_path, upkeep.cutoff(self._history_days))
            self._ready = (now, answer)
        return answer

    @property
    def absent(self) -> bool:
        """Whether there can be no index now: nothing is there to be searched, and nothing can be written."""
        owner = self._owner
        return not self.ready and (self._unwritable if owner is None else owner.unwritable)

    def reconcile(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds for a reconcile pass that began after this call.

        True when it finished, False when the time is over (the pass goes on). Raises ReconcileFailed when it failed.
        Several callers at once share a pass. A follower has its owner do it.
        """
        deadline = time.monotonic() + timeout
        while True:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or self._closing:
                return False
            owner = self._owner
            if owner is not None:
                done = owner.passes.wait(remaining)
                if done is not None:
                    return done
            elif self._thread is not None:
                try:
                    answer = channel.ask(self._state_folder, "reconcile", remaining)
                except TimeoutError:
                    return False
                if answer is not None and "failed" in answer:
                    raise ReconcileFailed(str(answer["failed"]))
                if answer is not None and answer.get("done"):
                    return True
            # The owner went away, or this process is about to become it.
            with self._wake:
                self._wake.wait(min(0.05, max(0.0, deadline - time.monotonic())))

    def report_damage(self) -> None:
        """Tell the owner that a search met a broken index: it is checked, and rebuilt when the check fails, too."""
        owner = self._owner
        if owner is not None:
            owner.check()
            return
        try:
            channel.ask(self._state_folder, "check")
        except TimeoutError:
            pass  # busy; the next search that meets it tells again

    def status(self) -> Dict[str, Any]:
        """The contract's status with full exposure, without ``enabled``."""
        owner = self._owner
        live = owner.status() if owner is not None else standing.of_writer(self._state_folder)
        status = {**standing.stored(self.database_path), **live}
        if owner is None and self._problem is not None:
            status["degradedRoots"] = [*live["degradedRoots"], {"root": self._state_folder, "reason": self._problem}]
            status["phase"] = standing.DEGRADED
        if self._closing:
            status["phase"] = standing.CLOSED
        return status

    def close(self, timeout: float = 5.0) -> None:
        """Stop, commit what is read and let go of the index; waits up to ``timeout`` seconds. May be called twice."""
        with self._wake:
            self._closing = True
            self._wake.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    # The thread

    def _run(self) -> None:
        priority.lower_this_thread()
        ownership = Ownership(self._state_folder)
        pause = 0.0
        while not self._wait(pause):
            pause = TICK
            try:
                if ownership.take():
                    self._own(ownership)
                self._problem = None
                self._unwritable = False
            except IndexFault as fault:
                self._problem = str(fault)
                self._unwritable = isinstance(fault, IndexUnwritable)
                warn(self._problem)
            except Exception as error:  # the agent lives on, and says that this part of it does not
                self._problem = f"Indexing stopped and begins anew ({describe(error)})."
                warn(self._problem)
            finally:
                ownership.release()

    def _own(self, ownership: Ownership) -> None:
        owner = Owner(self._state_folder, self._env, self._history_days, self._wake)
        try:
            self._owner = owner
            owner.run(lambda: self._closing or ownership.lost())
        finally:
            self._owner = None
            with self._wake:
                self._wake.notify_all()

    def _wait(self, seconds: float) -> bool:
        """Rest; True when it is time to end."""
        with self._wake:
            if not self._closing and seconds > 0:
                self._wake.wait(seconds)
            return self._closing
