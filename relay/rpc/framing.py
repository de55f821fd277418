"""Bytes in any portions to whole lines, with a limit that holds while a line streams in."""

from __future__ import annotations

from typing import List, Optional

#: Bytes of one line, its line end not counted.
LINE_LIMIT = 1 << 20


class LineDecoder:
    """Cuts a byte stream at ``\\n`` (``\\r\\n`` is taken too). A line above ``limit`` bytes is given as None, once.

    What is held never exceeds the limit: the rest of a line that is too long is dropped as it arrives.
    """

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._line = bytearray()
        self._discarding = False

    def decode(self, data: bytes) -> List[Optional[bytes]]:
        """The lines that end in ``data``."""
        lines: List[Optional[bytes]] = []
        *ended, rest = data.split(b"\n")
        for part in ended:
            self._append(part, lines)
            self._end(lines)
        self._append(rest, lines)
        return lines

    def flush(self) -> List[Optional[bytes]]:
        """The last line of a stream that ended without a line end, if there is one."""
        lines: List[Optional[bytes]] = []
        if self._line:
            self._end(lines)
        return lines

    def _append(self, part: bytes, lines: List[Optional[bytes]]) -> None:
        if self._discarding:
            return
        if len(self._line) + len(part) > self._limit + 1:  # one more, which may turn out to be the \r
            self._line.clear()
            self._discarding = True
            lines.append(None)
        else:
            self._line += part

    def _end(self, lines: List[Optional[bytes]]) -> None:
        if self._discarding:
            self._discarding = False
            return
        if self._line.endswith(b"\r"):
            del self._line[-1:]
        lines.append(bytes(self._line) if len(self._line) <= self._limit else None)
        self._line.clear()
