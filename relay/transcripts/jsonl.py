"""Bytes to records: a JSON Lines file read line by line in bounded memory, whatever stands in it."""

from __future__ import annotations

import json
import re
from typing import Any, BinaryIO, Dict, Iterator, List, Optional, Tuple

from relay.transcripts.regular import opener
from relay.transcripts.types import Incomplete

#: A longer line is passed over (and counted), never held.
LINE_CAP = 64 << 20

#: Up to here a line is parsed as it stands; the long strings of a longer one are cut while it streams by.
_DIRECT = 4 << 20
#: What is kept of a long line, and of each string once that is used up: as text and as a record, 4 bytes a character.
_LINE_BUDGET, _STRING_BUDGET = 8 << 20, 4 << 10
#: A long line of which more is left (numbers by the million, garbage) is passed over like one beyond ``LINE_CAP``.
_KEPT_CAP = 10 << 20
#: What is kept of a string without a space in it (a base64 payload) on a long line.
_PAYLOAD_BUDGET = 64 << 10
_PIECE = 1 << 20

#: Torn records on one line behind which, and places behind each at which, a whole one is looked for.
_TORN_LIMIT = 8
_SIGNS = re.compile(r'\\[^{]|\{"|"')  # "\{" is no escape sequence: a tear

_BOM = "\ufeff"


def _int_or_float(digits: str) -> Any:
    try:
        return int(digits) if len(digits) < 100 else float(digits)
    except (ValueError, OverflowError):  # pragma: no cover - float() of digits gives inf, never an error
        return None


# strict=False: a raw control character (NUL, tab) inside a string belongs to the string.
_fast = json.JSONDecoder(strict=False).raw_decode
# Python refuses (or takes minutes for) an integer of thousands of digits; nothing here needs one exactly.
_patient = json.JSONDecoder(strict=False, parse_int=_int_or_float).raw_decode


class Lines:
    """The JSON objects of an open binary file from ``offset`` on, in order; iterate once.

    A line ends with ``\\n`` and nothing else. Blank lines, lines that cannot be decoded and values that are no objects
    are left out; records glued onto one line are all given, also one behind a record that was torn by a crash. A last
    line without ``\\n`` is given when it is whole (a complete JSON object cannot go on) and left for the next time when
    it is torn.

    ``limit`` ends the iteration at the first boundary that many bytes on; a record given may have a line mate, so let
    the iteration end by itself before ``offset`` is kept. After it:

    - ``offset``: bytes consumed, counted from the start of the file; what precedes is whole lines (or whole objects).
    - ``skipped``: lines, or torn parts of them, that held something but no object. ``oversized``: lines too long to be
      held.
    - ``torn``: bytes of an unfinished line stand behind ``offset``.
    """

    def __init__(self, file: BinaryIO, offset: int = 0, limit: Optional[int] = None) -> None:
        self.offset = offset
        self.skipped = 0
        self.oversized = 0
        self.torn = False
        self._file = file
        self._end = None if limit is None else offset + limit

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        file, end = self._file, self._end
        if self.offset:
            file.seek(self.offset)
        readline, fast = file.readline, _fast
        rest = b""  # of a long line, behind the whole objects that it begins with
        while end is None or self.offset < end:
            line = rest + readline(_DIRECT - len(rest)) if rest else readline(_DIRECT)
            rest = b""
            size = len(line)
            whole = line[-1:] == b"\n"
            if not whole:
                if size == 0:
                    return
                if size == _DIRECT:
                    start = 0
                    for stop in _ends(line):
                        self.offset += stop - start
                        (record,), _, _ = _records(line[start:stop])
                        start = stop
                        yield record
                    if start:
                        rest = line[start:]
                        continue
                    line, size, whole = self._long_line(line)
                if not whole and not line.rstrip().endswith(b"}"):
                    self.torn = bool(line.strip()) or size > LINE_CAP
                    return
            try:
                text = line.decode()
                record, stop = fast(text)
                # The C scanner stops behind the value: on an ordinary line that is right before the line's end.
                if type(record) is dict and len(text) - stop <= 1:
                    self.offset += size
                    del line, text  # a long line is held once while its record is looked at, not three times
                    yield record
                    del record
                    continue
            except (ValueError, RecursionError):
                pass
            records, lost, complete = _records(line)
            if not whole and not complete:
                self.torn = True
                return
            self.skipped += lost
            if records:
                for record in records[:-1]:
                    yield record
            self.offset += size
            if records:
                yield records[-1]

    def _long_line(self, first: bytes) -> Tuple[bytes, int, bool]:
        """The rest of a line whose start is ``first``: what is kept of it, its length, and whether it was ended."""
        file, size, piece = self._file, len(first), first
        shortener = _Shortener()
        passed_over = False
        while True:
            # An escape sequence must not lie across two pieces.
            while True:
                more = file.readline(_missing_of_escape(piece, 0, len(piece)))
                if not more:
                    break
                size += len(more)
                piece += more
            if size > LINE_CAP or len(shortener.kept) > _KEPT_CAP:
                passed_over = True
                shortener.kept.clear()
            if not passed_over:
                shortener.feed(piece)
            if piece.endswith(b"\n"):
                break
            piece = file.readline(_PIECE)
            if not piece:
                return (b"" if passed_over else bytes(shortener.kept)), size, False
            size += len(piece)
        if passed_over:
            self.oversized += 1
            return b"\n", size, True
        return bytes(shortener.kept), size, True


class _Shortener:
    """Cuts the long strings of one line of JSON that arrives in pieces; no piece ends inside an escape sequence."""

    def __init__(self) -> None:
        self.kept = bytearray()
        self._inside = False
        self._length = 0  # of the string we are in, as kept
        self._left_out = 0
        self._payload = False

    def feed(self, piece: bytes) -> None:
        position = 0
        while position < len(piece):
            if not self._inside:
                quote = piece.find(b'"', position)
                stop = len(piece) if quote < 0 else quote + 1
                self.kept += piece[position:stop]
                position = stop
                if quote >= 0:
                    self._inside, self._length, self._left_out, self._payload = True, 0, 0, False
                continue
            quote = _closing_quote(piece, position)
            stop = len(piece) if quote < 0 else quote
            self._string(piece, position, stop)
            position = stop
            if quote >= 0:
                if self._left_out:
                    self.kept += b"[%d bytes left out]" % self._left_out
                self.kept += b'"'
                self._inside = False
                position += 1

    def _string(self, piece: bytes, start: int, stop: int) -> None:
        if self._length == 0:
            self._payload = not any(sign in piece[start : start + 256] for sign in (b" ", b"\\n"))
        room = max(_LINE_BUDGET - len(self.kept), _STRING_BUDGET - self._length)
        if self._payload:
            room = min(room, _PAYLOAD_BUDGET - self._length)
        if self._left_out:
            room = 0
        cut = stop
        if stop - start > room:
            cut = start + max(0, room)
            if room > 0:  # not inside an escape sequence, not inside a character
                while cut < stop and _missing_of_escape(piece, start, cut):
                    cut += 1
                while cut < stop and piece[cut] & 0xC0 == 0x80:
                    cut += 1
        self.kept += piece[start:cut]
        self._length += cut - start
        self._left_out += stop - cut


def _closing_quote(piece: bytes, position: int) -> int:
    """Where the string that we are in ends, or -1: the first quote behind an even number of backslashes."""
    start = position
    while True:
        quote = piece.find(b'"', position)
        if quote < 0:
            return -1
        back = quote
        while back > start and piece[back - 1] == 0x5C:
            back -= 1
        if (quote - back) % 2 == 0:
            return quote
        position = quote + 1


def _missing_of_escape(piece: bytes, start: int, stop: int) -> int:
    """How many bytes (at least) an escape sequence before ``stop`` is short of; 0 when ``stop`` is inside none."""
    last = piece.rfind(b"\\", max(start, stop - 6), stop)
    if last < 0:
        return 0
    first = last
    while first > start and piece[first - 1] == 0x5C:
        first -= 1
    if (last - first) % 2 == 1:
        return 0
    return max(0, (6 if piece[last + 1 : min(last + 2, stop)] == b"u" else 2) - (stop - last))


def _ends(line: bytes) -> Iterator[int]:
    """Where the whole objects end that a piece of a line begins with."""
    text = line.decode("latin-1")  # a character for each byte; the signs of JSON are the same
    position = 0
    while text.startswith("{", position):
        try:
            _, position = _patient(text, position)
        except (ValueError, RecursionError):
            return
        position = _behind_blanks(text, position)
        yield position


def _behind_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\0":
        position += 1
    return position


def _records(line: bytes) -> Tuple[List[Dict[str, Any]], int, bool]:
    """The objects on an unusual line (glued, torn, not UTF-8, a BOM, huge numbers).

    With them, how many parts of it (or it as a whole) held something else, and whether all of it was understood.
    """
    text = line.decode("utf-8", "replace").lstrip(_BOM).strip("\0 \t\r\n")
    records: List[Dict[str, Any]] = []
    lost = 0
    position = 0
    while position < len(text):
        try:
            value, position = _patient(text, position)
        except (ValueError, RecursionError):
            lost += 1
            found = _behind_torn(text, position) if lost <= _TORN_LIMIT else None
            if found is None:
                break
            value, position = found
        if isinstance(value, dict):
            records.append(value)
        position = _behind_blanks(text, position)
    return records, lost or int(not records and bool(line.strip())), not lost


def _behind_torn(text: str, start: int) -> Optional[Tuple[Dict[str, Any], int]]:
    """The first whole record behind one that is torn, and where it ends: a crash leaves no line end between the two.

    What stands where a value is expected is a part of the torn record, unless the tear is inside a string before it.
    """
    if text[start] != "{":
        return None
    inside = False
    tries = 0
    for sign in _SIGNS.finditer(text, start + 1):
        if sign.group()[0] == "\\":
            continue
        place = sign.start()
        before = text[max(start, place - 64) : place].rstrip()
        if sign.group() != '"' and (inside or not before.endswith((":", ",", "["))):
            tries += 1
            try:
                value, stop = _patient(text, place)
            except (ValueError, RecursionError):
                if tries == _TORN_LIMIT:
                    break
            else:
                behind = _behind_blanks(text, stop)
                if text[behind : behind + 1] in ("", "{"):
                    return value, stop
        inside = not inside
    return None


def fault(oversized: int, skipped: int, count: int, known: int = 1) -> Optional[str]:
    """What is to be said of a file with so many lines of either kind (see ``Lines``) and records, or None.

    ``known`` are the records whose kind the reader knows: a file of which it knows none is another program's.
    """
    if oversized:
        return "A line is too long to be read."
    if count and not known:
        return "It holds no record of this agent."
    return "No line of the file is JSON." if skipped and not count else None


def records(path: str) -> Iterator[Dict[str, Any]]:
    """Every record of the file at ``path``, for readers that read whole. Raises OSError."""
    with open(path, "rb", buffering=256 << 10, opener=opener) as file:
        yield from Lines(file)


def transcript(path: str) -> Iterator[Dict[str, Any]]:
    """The same of a transcript: behind the last record, Incomplete is raised when some could not be read."""
    with open(path, "rb", buffering=256 << 10, opener=opener) as file:
        lines = Lines(file)
        count = 0
        for record in lines:
            count += 1
            yield record
    problem = fault(lines.oversized, lines.skipped, count)
    if problem is not None:
        raise Incomplete(problem)
