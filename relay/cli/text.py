"""Text of a transcript or a host, made safe for a terminal."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

#: Whole control sequences: CSI with its parameters, the string kinds (title, clipboard, …) with their text, short ones.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x1b\x07\x9c]*(?:\x1b\\|\x07|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
_BREAKS = frozenset("\t\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029")
#: Joiners that words and emoji are written with; every other invisible format character goes (bidi controls, tags, …).
_JOINERS = frozenset("\u200c\u200d")


def clean(text: str) -> str:
    """``text`` without terminal escapes, control characters and direction controls; line breaks and tabs are spaces."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_safe(character) for character in _SEQUENCE.sub("", text))


def line(text: str, most: int = 400) -> str:
    """``text`` cleaned, on one line, cut at ``most`` characters."""
    words = " ".join(clean(text).split())
    return words if len(words) <= most else words[: most - 1].rstrip() + "…"


def clean_all(value: Any) -> Any:
    """A JSON value with every string in it cleaned, object keys too; line breaks stay."""
    if isinstance(value, str):
        return "\n".join(clean(part) for part in value.split("\n"))
    if isinstance(value, dict):
        return {clean_all(name): clean_all(part) for name, part in value.items()}
    if isinstance(value, list):
        return [clean_all(part) for part in value]
    return value


def _safe(character: str) -> str:
    if character in _BREAKS:
        return " "
    category = unicodedata.category(character)
    if category == "Cs":
        return "\ufffd"
    return "" if category in ("Cc", "Cf") and character not in _JOINERS else character
