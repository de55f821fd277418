"""FTS5 expressions: every word is quoted, so nothing in it can be syntax."""

from __future__ import annotations

from typing import Iterable, Sequence

from relay.search.query import Unit

#: The columns a conversation search may look into.
CONVERSATION = "{user assistant pieces}"


def phrase(words: Sequence[str]) -> str:
    """The words one behind the other."""
    return '"' + " ".join(words).replace('"', '""') + '"'


def all_of(expressions: Iterable[str]) -> str:
    """Rows that match each of them."""
    return " AND ".join(dict.fromkeys(expressions))


def any_of(expressions: Iterable[str]) -> str:
    """Rows that match at least one."""
    return " OR ".join(dict.fromkeys(expressions))


def of_unit(unit: Unit) -> str:
    """A unit as it was typed: its words in order (or its parts), with its symbols."""
    needed = [phrase((symbol,)) for symbol in unit.symbols]
    if unit.words:
        needed.insert(0, of_words(unit))
    return f"({all_of(needed)})" if len(needed) > 1 else needed[0]


def of_words(unit: Unit) -> str:
    """A unit's words in order, or the parts of the name that it is; symbols left aside."""
    if not unit.words:
        return of_unit(unit)
    forms = [unit.words, *([unit.parts] if unit.parts else ()), *unit.alternatives]
    return f"({any_of(map(phrase, forms))})" if len(forms) > 1 else phrase(unit.words)


def scoped(expression: str, scope: str) -> str:
    """The expression within the columns of a scope (``conversation`` or ``all``)."""
    return f"{CONVERSATION} : ({expression})" if scope == "conversation" else expression
