"""File names as SQLite can hold them: a name is bytes, and not all bytes are text.

Python writes a byte that is no UTF-8 as a lone surrogate, which SQLite takes for nothing. In the index it stands as a
character of the last private plane, which no name has, so that it can be told from all others and turned back.
"""

from __future__ import annotations

from typing import Any, Sequence, Tuple

_PLANE = 0x10FF00
_HELD = {0xDC00 + byte: _PLANE + byte for byte in range(0x80, 0x100)}
_GIVEN = {held: given for given, held in _HELD.items()}
#: Surrogates that stand for no byte, as broken JSON may hold them.
_HELD.update({code: 0xFFFD for code in range(0xD800, 0xE000) if code not in _HELD})


def held(values: Sequence[Any]) -> Tuple[Any, ...]:
    """Values for a statement, every text one that SQLite can hold."""
    return tuple(value.translate(_HELD) if isinstance(value, str) else value for value in values)


def given(text: str) -> str:
    """A path from the index, as the file system knows it."""
    return text if text.isascii() else text.translate(_GIVEN)
