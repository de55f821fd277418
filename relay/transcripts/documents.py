"""JSON documents read member by member, so that memory follows the largest value in a file and not the file."""

from __future__ import annotations

import codecs
import json
import os
import re
from typing import Any, BinaryIO, Callable, Dict, Iterator, Tuple

from relay.transcripts.regular import opener, stamp
from relay.transcripts.types import Unreadable

#: Characters one value of a document may have; a longer one makes the document unreadable.
VALUE_LIMIT = 32 * 1024 * 1024
#: Bytes a document that is loaded at once (a sidecar, an index of sessions) may have.
SIDECAR_LIMIT = 16 * 1024 * 1024
_CHUNK = 256 * 1024
#: A syntax error this near the end of what was read so far may only mean that the rest is not there yet.
_TORN = 16

#: By path: the file's stamp when it was read, and what it held.
_shared: Dict[str, Tuple[Tuple[int, int, int], Dict[str, Any]]] = {}
_decode = json.JSONDecoder(strict=False).raw_decode
_blank = re.compile(r"[ \t\r\n]*")
#: Nothing but what a number may go on with, up to the end of what was read.
_number_goes_on = re.compile(r"[0-9.eE+-]*\Z")


def members(path: str, *streamed: str) -> Iterator[Tuple[str, Any]]:
    """The members of the JSON object in ``path``, in file order, as ``(name, value)``.

    A member named in ``streamed`` that is an array gives one pair for each item instead; so does an array that is
    the whole document, under the name ``""``. Raises Unreadable, OSError.
    """
    with open(path, "rb", opener=opener) as stream:
        scanner = _Scanner(stream)
        first = scanner.peek()
        if first == "[":
            for item in scanner.items():
                yield "", item
        elif first == "{":
            yield from _object(scanner, streamed)
        elif first == "":
            raise Unreadable("The document is empty.")
        else:
            raise Unreadable("The document is no JSON object or array.")


def records(path: str, *streamed: str) -> Iterator[Tuple[str, Dict[str, Any]]]:
    """The streamed items of ``members`` that are objects; everything else is passed over."""
    for name, value in members(path, *streamed):
        if (name == "" or name in streamed) and isinstance(value, dict):
            yield name, value


def sidecar(path: str) -> Any:
    """The whole value of a small JSON file beside a transcript, or None when it is absent, too big or broken."""
    try:
        if os.stat(path).st_size > SIDECAR_LIMIT:
            return None
        with open(path, "rb", opener=opener) as stream:
            return json.loads(stream.read().decode("utf-8-sig", "replace"), strict=False)
    except (OSError, ValueError, RecursionError):
        return None


def sidecar_object(path: str) -> Dict[str, Any]:
    """``sidecar`` for a file that should hold an object; empty when it does not."""
    value = sidecar(path)
    return value if isinstance(value, dict) else {}


def shared(path: str, read: Callable[[str], Dict[str, Any]] = sidecar_object) -> Dict[str, Any]:
    """What ``read`` makes of a file that many sources share: it is read again only when it has changed."""
    seen = stamp(path)
    known = _shared.get(path)
    if known is None or known[0] != seen:
        known = _shared[path] = seen, read(path)
    return known[1]


def _object(scanner: "_Scanner", streamed: Tuple[str, ...]) -> Iterator[Tuple[str, Any]]:
    scanner.take("{")
    if scanner.peek() == "}":
        return
    while True:
        name = scanner.value()
        if not isinstance(name, str):
            raise Unreadable("The document is not valid JSON.")
        scanner.take(":")
        if name in streamed and scanner.peek() == "[":
            for item in scanner.items():
                yield name, item
        else:
            yield name, scanner.value()
        if scanner.take(",}") == "}":
            return


class _Scanner:
    """A cursor over the text of a JSON document that reads on as values need it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._text = ""
        self._at = 0
        self._ended = False

    def peek(self) -> str:
        """The next character that is not white space, or "" at the end of the document."""
        while True:
            self._at = _blank.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._read_on()

    def take(self, expected: str) -> str:
        """The next character, which must be one of ``expected``."""
        character = self.peek()
        if character == "":
            raise Unreadable("The document ends early.")
        if character not in expected:
            raise Unreadable("The document is not valid JSON.")
        self._at += 1
        return character

    def items(self) -> Iterator[Any]:
        """The items of the array that comes next."""
        self.take("[")
        if self.peek() == "]":
            self._at += 1
            return
        while True:
            yield self.value()
            if self.take(",]") == "]":
                return

    def value(self) -> Any:
        """The value that comes next, whole."""
        self.peek()
        while True:
            try:
                value, end = _decode(self._text, self._at)
            except json.JSONDecodeError as error:
                torn = error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - _TORN
                if not torn:
                    raise Unreadable("The document is not valid JSON.") from None
                if self._ended:
                    raise Unreadable("The document ends early.") from None
            except (ValueError, RecursionError):
                raise Unreadable("The document holds a value that cannot be decoded.") from None
            else:
                if self._ended or not _number_goes_on.match(self._text, end):
                    self._at = end
                    return value
            self._read_on()

    def _read_on(self) -> None:
        kept = self._text[self._at :]
        if len(kept) > VALUE_LIMIT:
            raise Unreadable(f"The document holds a value over {VALUE_LIMIT >> 20} MiB.")
        data = self._stream.read(max(_CHUNK, len(kept)))  # doubling: a long value is tried a few times, not hundreds
        self._ended = not data
        self._text = kept + self._decoder.decode(data, final=self._ended)
        self._at = 0
