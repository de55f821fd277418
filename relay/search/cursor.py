"""Page cursors: opaque, bound to one query, one incarnation and one generation of the index."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from typing import Any, NamedTuple, Optional

#: Longer is no cursor of ours; nothing is decoded then.
_LONGEST = 1024


class MalformedCursor(ValueError):
    """Not a cursor of this query: not decodable, forged, or of another query, scope, filter or sort."""


class Cursor(NamedTuple):
    """``offset`` hits of ``query`` (an identity) were shown at ``generation``; an old cursor has no ``incarnation``."""

    query: str
    incarnation: Optional[str]
    generation: int
    offset: int


def identity(*parts: Any) -> str:
    """What must stay the same from page to page: the query as it is understood, filters, scope and sort."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def encode(cursor: Cursor) -> str:
    """The cursor as it goes over the wire."""
    value = {"q": cursor.query, "i": cursor.incarnation, "g": cursor.generation, "o": cursor.offset}
    return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).rstrip(b"=").decode()


def decode(text: str, query: str) -> Cursor:
    """The cursor in ``text``, which must be one of ``query``. Raises MalformedCursor."""
    try:
        if len(text) > _LONGEST:
            raise ValueError(len(text))
        raw = text.encode("ascii")
        value = json.loads(base64.b64decode(raw + b"=" * (-len(raw) % 4), altchars=b"-_", validate=True))
        cursor = Cursor(value["q"], value.get("i"), value["g"], value["o"])
    except (ValueError, binascii.Error, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MalformedCursor("The cursor cannot be read.") from error
    whole = all(type(number) is int and 0 <= number < 2**53 for number in (cursor.generation, cursor.offset))
    if not whole or cursor.offset == 0 or cursor.query != query:
        raise MalformedCursor("The cursor is not one of this query.")
    if cursor.incarnation is not None and not isinstance(cursor.incarnation, str):
        raise MalformedCursor("The cursor names no index.")
    return cursor
