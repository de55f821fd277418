"""Progress on stderr, on a terminal only."""

from __future__ import annotations

import sys
import threading

_WORDS = {
    "connecting": "connecting",
    "probed": "Python found",
    "uploading": "uploading",
    "uploaded": "verified",
    "unpacked": "unpacked and compiled",
    "placed": "in place",
    "proved": "answers",
    "switched": "switched",
}


class Progress:
    """One line that is written over as the work goes on; nothing at all where stderr is no terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr is not None and sys.stderr.isatty()
        self._lock = threading.Lock()
        self._longest = 0

    def show(self, host: str, step: str, share: float = 1.0) -> None:
        """Say that ``host`` is at ``step``, ``share`` (0 to 1) of which is done."""
        words = _WORDS.get(step, step)
        self._write(f"{host}: {words}{f' {share:.0%}' if step == 'uploading' else ''}")

    def clear(self) -> None:
        """Take the line away, before something that stays is printed."""
        self._write("")

    def _write(self, text: str) -> None:
        if not self._shown:
            return
        with self._lock:
            blank = " " * self._longest
            sys.stderr.write(f"\r{blank}\r{text}")
            sys.stderr.flush()
            self._longest = len(text)
