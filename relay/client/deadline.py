"""A moment by which something must be done."""

from __future__ import annotations

import time


class Deadline:
    """The moment ``seconds`` from now, whatever the clock on the wall does."""

    def __init__(self, seconds: float) -> None:
        self._moment = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds until then, 0 when it is past."""
        return max(0.0, self._moment - time.monotonic())
