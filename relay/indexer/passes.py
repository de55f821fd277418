"""Asking for reconcile passes: whoever asks while one is running shares the next."""

from __future__ import annotations

import threading
import time
from typing import Optional

from relay.index.faults import IndexFault


class ReconcileFailed(IndexFault):
    """A reconcile pass ended with an error."""


class Passes:
    """Passes by number: asked for by any thread, made by the owner's. ``wake`` is notified at every change."""

    def __init__(self, wake: threading.Condition) -> None:
        self._wake = wake
        self._asked = 0
        self._answered = 0
        self._failure: Optional[str] = None
        self._ended = False

    @property
    def owed(self) -> bool:
        """Whether somebody waits for a pass."""
        return self._asked > self._answered

    def wait(self, timeout: float) -> Optional[bool]:
        """True when a pass that began after this call is done, False when time is over, None when no more are made.

        Raises ReconcileFailed.
        """
        deadline = time.monotonic() + timeout
        with self._wake:
            self._asked += 1
            number = self._asked
            self._wake.notify_all()
            while self._answered < number:
                if self._ended:
                    return None
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    return False
                self._wake.wait(remaining)
            if self._failure is not None:
                raise ReconcileFailed(self._failure)
            return True

    def begin(self) -> int:
        """The number up to which a pass that begins now answers."""
        with self._wake:
            return self._asked

    def end(self, number: int, failure: Optional[str] = None) -> None:
        """A pass ended, well or with a failure (a sentence)."""
        with self._wake:
            self._answered = max(self._answered, number)
            self._failure = failure
            self._wake.notify_all()

    def close(self) -> None:
        """No more passes are made here."""
        with self._wake:
            self._ended = True
            self._wake.notify_all()
