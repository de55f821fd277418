"""Messages to rows: tool text cut, long text split at whitespace, each row's text compressed for keeping."""

from __future__ import annotations

import zlib
from typing import Iterator, NamedTuple, Optional, Tuple

from relay.transcripts.types import TOOL, Message

#: Characters of one tool message (a call or an output) that are searchable.
TOOL_LIMIT = 3072
#: Characters of one row, about: a longer message is split at whitespace.
ROW_LIMIT = 8000
#: A row is cut inside a word only where none of its last so many characters is whitespace.
_LAST_WORD = 512

#: Fast: transcripts are mostly read once, and level 6 costs three times as much for a tenth less.
_LEVEL = 1


class Row(NamedTuple):
    """One searchable row; ``seq`` is its message's place in the session, ``timestamp`` epoch milliseconds."""

    seq: int
    role: str
    timestamp: Optional[int]
    text: str
    #: The words of the text as the index has them, and the text compressed, where these are made already.
    words: Optional[Tuple[str, ...]] = None
    kept: Optional[bytes] = None


def rows(message: Message) -> Iterator[Row]:
    """The rows of a message, at least one unless its text is blank."""
    text = storable(message.text)
    if message.role == TOOL and len(text) > TOOL_LIMIT:
        text = text[:TOOL_LIMIT]
    if len(text) <= ROW_LIMIT:
        if text and not text.isspace():
            yield Row(message.seq, message.role, message.timestamp, text)
        return
    start = 0
    while start < len(text):
        stop = start + ROW_LIMIT
        if stop < len(text):
            stop = _last_space(text, start, stop)
        piece = text[start:stop]
        if not piece.isspace():
            yield Row(message.seq, message.role, message.timestamp, piece)
        start = stop


def _last_space(text: str, start: int, stop: int) -> int:
    """Behind the last whitespace before ``stop``, or ``stop`` itself inside an endless word."""
    for position in range(stop, max(start, stop - _LAST_WORD), -1):
        if text[position - 1].isspace():
            return position
    return stop


def storable(text: str) -> str:
    """``text`` as UTF-8 can hold it: a surrogate without its partner becomes U+FFFD, a NUL a space."""
    if "\0" in text:
        text = text.replace("\0", " ")
    try:
        text.encode()
    except UnicodeEncodeError:
        # A pair of surrogates that came in two escapes is one character; what is left alone is none.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def compressed(text: str) -> bytes:
    """What ``rows.text`` keeps."""
    return zlib.compress(text.encode(), _LEVEL)


def decompressed(blob: bytes) -> str:
    """The text behind ``rows.text``. Raises zlib.error (ValueError) when the bytes are not ours."""
    return zlib.decompress(blob).decode()
