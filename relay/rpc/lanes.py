"""Worker threads in lanes, so that calls which wait hold up none that do not."""

from __future__ import annotations

import threading
from collections import deque
from typing import Callable, Deque

#: Seconds after which a worker without work ends.
IDLE_SECONDS = 60.0


class Lane:
    """At most ``workers`` daemon threads that run jobs in the order they came; none runs before there is a job."""

    def __init__(self, name: str, workers: int) -> None:
        self._name = name
        self._workers = workers
        self._jobs: Deque[Callable[[], None]] = deque()
        self._work = threading.Condition()
        self._threads = 0
        self._idle = 0

    def submit(self, job: Callable[[], None]) -> None:
        """Run ``job``, which must not raise, as soon as a worker is free. Raises RuntimeError when none can be had."""
        with self._work:
            self._jobs.append(job)
            if len(self._jobs) <= self._idle or self._threads == self._workers:
                self._work.notify()
                return
            try:
                threading.Thread(target=self._serve, name=self._name, daemon=True).start()
                self._threads += 1
            except RuntimeError:  # the account's limit of threads: those that run already will come to it
                if self._threads == 0:
                    self._jobs.pop()
                    raise

    def _serve(self) -> None:
        while True:
            with self._work:
                self._idle += 1
                while not self._jobs:
                    if not self._work.wait(IDLE_SECONDS) and not self._jobs:
                        self._idle -= 1
                        self._threads -= 1
                        return
                self._idle -= 1
                job = self._jobs.popleft()
            job()
