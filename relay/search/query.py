"""What a query says: operators that narrow, units of text that are looked for, and whether it looks literal."""

from __future__ import annotations

import re
from typing import List, NamedTuple, Tuple

from relay.index.words import GAP, further, tokens

#: A query beyond either is cut, and the answer says so.
MOST_CHARACTERS, MOST_TERMS = 512, 48

_OPERATOR = re.compile(r"(?i)(repo|path):(?:\"([^\"]*)\"|'([^']*)'|(\S*))")
_QUOTED = re.compile(r'["\u201c\u201d]([^"\u201c\u201d]*)["\u201c\u201d]')
_WORD = re.compile(r"\S+")
_SPACE = re.compile(r"\s*")

_CAMEL = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_SNAKE = re.compile(r"\w_\w")
_PATH = re.compile(r"\w[/\\]\w|(?:^|\s)[~.]{0,2}/\w|^[A-Za-z]:\\")
_DOTTED = re.compile(r"\w\.\w|(?:^|\s)\.\w")
_TICKET = re.compile(r"#\d+|\b[A-Z][A-Z0-9]+-\d+\b")
_CODE = re.compile(r"[(){}\[\]<>=;|&$`@]|::|->|\+\+|\w#|!=|(?:^|\s)--?\w|\w:\s|\w:$")
_ERROR = re.compile(
    r"\b(?i:errors?|exception|traceback|panic(?:ked)?|fatal|errno|segfault|stacktrace|failed|failure|denied|abort(?:ed)?)\b"
    r"|\bE[A-Z]{4,}\b"
)
#: A version is written with and without its ``v``.
_VERSION = re.compile(r"[vV]?[0-9]+(?:\.[0-9]+)+(?![\w.])")
_LITERAL_SHAPES = (_CAMEL, _SNAKE, _PATH, _DOTTED, _TICKET, _CODE, _ERROR)


class Unit(NamedTuple):
    """A word or a quoted phrase of the query.

    ``words`` are its tokens, to be found in this order; ``parts`` those of a camelCase name; ``symbols`` the tokens of
    words with symbols (``--no``, ``c++``) and, when there is no other word in it, of operators. ``alternatives`` are
    other words that may stand for it.
    """

    words: Tuple[str, ...]
    parts: Tuple[str, ...] = ()
    symbols: Tuple[str, ...] = ()
    quoted: bool = False
    alternatives: Tuple[Tuple[str, ...], ...] = ()

    def joined(self) -> "re.Pattern[str] | None":
        """How the unit stands in a text as one name, when it was typed as one (``aB``, ``a_b``, ``a/b.c``)."""
        words = self.parts or self.words
        if self.quoted or len(words) < 2 or any(_unspaced(word) for word in words):
            return None
        return re.compile("[^\\w\\s]{0,2}_?".join(map(re.escape, words)), re.IGNORECASE)

    def separate(self) -> List["Unit"]:
        """The words of the unit, each on its own; of a script without spaces, its pairs of characters."""
        if len(self.words) < 2:
            return [self._replace(symbols=())] if self.words else []
        parts: List[Unit] = []
        for place, word in enumerate(self.words):
            following = self.words[place + 1] if place + 1 < len(self.words) else ""
            before = self.words[place - 1] if place else ""
            if not _unspaced(word):
                parts.append(Unit((word,)))
            elif _unspaced(following):
                parts.append(Unit((word, following)))
            elif not _unspaced(before):
                parts.append(Unit((word,)))
        return list(dict.fromkeys(parts))


def _unspaced(word: str) -> bool:
    return len(word) == 1 and not word.isascii()


class Query(NamedTuple):
    """A parsed query: ``repos`` and ``paths`` are the operators' values, ``cut`` says that not all of it was used.

    ``typed`` is a literal text, or one that stands alone, when there is more to it than its words.
    """

    units: Tuple[Unit, ...]
    repos: Tuple[str, ...] = ()
    paths: Tuple[str, ...] = ()
    literal: bool = False
    cut: bool = False
    typed: str = ""

    def as_typed(self) -> "re.Pattern[str] | None":
        """How ``typed`` stands in a text exactly, in letters of either case."""
        if not self.typed:
            return None
        before, behind = (r"\b" if edge.isalnum() or edge == "_" else "" for edge in (self.typed[0], self.typed[-1]))
        return re.compile(before + r"\s+".join(map(re.escape, self.typed.split())) + behind, re.IGNORECASE)


def parse(text: str) -> Query:
    """Read a query of any length; never fails."""
    cut = len(text) > MOST_CHARACTERS
    text = text[:MOST_CHARACTERS].encode("utf-8", "replace").decode()
    units: List[Unit] = []
    repos: List[str] = []
    paths: List[str] = []
    free: List[str] = []
    inner: List[str] = []
    at = _end_of_space(text, 0)
    while at < len(text):
        operator = _OPERATOR.match(text, at)
        if operator is not None:
            value = next((group for group in operator.groups()[1:] if group is not None), "").strip().strip("\"'")
            if value:
                (repos if operator.group(1).lower() == "repo" else paths).append(value)
            at = _end_of_space(text, operator.end())
            continue
        found = _QUOTED.match(text, at) or _WORD.match(text, at)
        assert found is not None
        quoted = found.re is _QUOTED
        said = found.group(1) if quoted else found.group()
        unit = _unit(said, quoted)
        if unit is not None:
            units.append(unit)
            free.append(found.group())
            inner.append(said)
        at = _end_of_space(text, found.end())
    kept, more = _first_terms(units)
    shown = " ".join(free)
    literal = any(unit.quoted for unit in kept) or any(shape.search(shown) for shape in _LITERAL_SHAPES)
    typed = _typed(inner, kept) if literal or len(kept) == 1 else ""
    return Query(tuple(kept), tuple(repos), tuple(paths), literal, cut or more, typed)


def _typed(said: List[str], units: List[Unit]) -> str:
    """The text without what ends a sentence; empty when its words, or folded letters, are all there is to it."""
    text = " ".join(" ".join(said).lower().split()).rstrip(".,;!?")
    words = " ".join(word for unit in units for word in unit.words)
    return "" if not text.isascii() or (text == words and not any(unit.parts for unit in units)) else text


def _end_of_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space is not None else at


def _unit(text: str, quoted: bool) -> "Unit | None":
    words = tuple(tokens(text))
    parts: Tuple[str, ...] = ()
    symbols: List[str] = []
    operators: List[str] = []
    for word in further(text):
        if word.endswith(GAP):
            if len(words) == 1:
                parts = tuple(word[: -len(GAP)].lower().split())
        elif any(character < GAP or character > "\ue0ff" for character in word):
            symbols.append(word.lower())
        else:
            operators.append(word)
    if not words:
        symbols = operators
    if not words and not symbols:
        return None
    alternatives: Tuple[Tuple[str, ...], ...] = ()
    if _VERSION.match(text):
        alternatives = ((words[0][1:] if words[0].startswith("v") else "v" + words[0], *words[1:]),)
    return Unit(words, parts, tuple(symbols), quoted, alternatives)


def _first_terms(units: List[Unit]) -> Tuple[List[Unit], bool]:
    """Whole units of at most MOST_TERMS terms; a unit of a script without spaces counts as one term."""
    kept: List[Unit] = []
    count = 0
    for unit in units:
        spaced = [word for word in unit.words if word.isascii()]
        count += max(1, len(spaced))
        if count > MOST_TERMS:
            if not kept:
                kept.append(unit._replace(words=unit.words[:MOST_TERMS]))
            return kept, True
        kept.append(unit)
    return kept, False
