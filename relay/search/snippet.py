"""Some words of a row around its best match, with the matches marked."""

from __future__ import annotations

import re
import string
import unicodedata
from functools import lru_cache
from typing import Iterable, List, NamedTuple, Optional, Sequence, Tuple

from relay.index.words import spell
from relay.search.query import Unit

OPEN, CLOSE, MORE = "[[", "]]", "\u2026"

#: Words of a snippet, about, and characters at most (marks included).
WORDS, LONGEST = 12, 512

#: Characters of text within which matches count as standing together.
_TOGETHER = 100
#: Occurrences of one word that are looked at.
_OCCURRENCES = 60
#: Characters of text a snippet may take before marks are added.
_ROOM = 400

_CLUSTER = re.compile(
    "[\x00-\x7f]+|([\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff]+)(?![\u3099\u309a])|[\u1100-\u115f][\u1160-\u11a7]?[\u11a8-\u11ff]?"
    "|[^\x00-\x7f][\u0300-\u036f\u3099\u309a\uff9e\uff9f\u0591-\u05c7\u064b-\u0655]*"
)
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
#: What counts as a word: two characters of a script without spaces are as much as one.
_CHUNK = re.compile(f"[{_UNSPACED}]{{1,2}}|[^\\s{_UNSPACED}]+")
_GAP = re.compile("[^0-9a-z\x80-\U0010ffff]*")

_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class Match(NamedTuple):
    """An occurrence in the text; ``unit`` says of what, ``weight`` how much it is worth."""

    start: int
    end: int
    unit: int
    weight: float


class _Folded(NamedTuple):
    """A text as the index spells it (``cased``; ``plain`` in small letters), and where each character came from."""

    cased: str
    plain: str
    origins: Optional[List[int]]
    ends: Optional[List[int]]

    def span(self, start: int, end: int) -> Tuple[int, int]:
        if self.origins is None or self.ends is None:
            return start, end
        return self.origins[start], self.ends[end - 1]


def snippet(text: str, units: Sequence[Unit]) -> Tuple[str, bool]:
    """The snippet, and whether a match is in it (else it is the text's beginning)."""
    matches = find(text, units)
    start, end = _window(matches)
    first, last = _widened(text, start, end)
    marked = _joined([(match.start, match.end) for match in matches if first <= match.start and match.end <= last])
    return _spelled_out(text, first, last, marked), bool(marked)


def find(text: str, units: Sequence[Unit]) -> List[Match]:
    """Where the units occur in the text, by position."""
    folded = _fold(text)
    found: List[Match] = []
    for number, unit in enumerate(units):
        spans = _occurrences(folded, unit)
        if not spans:
            spans = [span for part in unit.separate() for span in _occurrences(folded, part)]
        for start, end in spans:
            found.append(Match(*folded.span(start, end), number, min(end - start, 12) + 1.0))
    found.sort()
    return found


def _occurrences(folded: _Folded, unit: Unit) -> List[Tuple[int, int]]:
    symbols = [span for symbol in unit.symbols for span in _symbol_spans(folded.plain, symbol)]
    forms = [form for form in (unit.words, unit.parts, *unit.alternatives) if form]
    words = [span for form in forms for span in _phrase_spans(folded, form)]
    if not symbols:
        return words
    touching = [word for word in words if any(word[0] <= end and start <= word[1] for start, end in symbols)]
    return symbols + touching


def _symbol_spans(plain: str, symbol: str) -> Iterable[Tuple[int, int]]:
    typed = "".join(chr(ord(letter) - 0xE000) if "\ue000" <= letter <= "\ue0ff" else letter for letter in symbol)
    at = plain.find(typed)
    for _ in range(_OCCURRENCES):
        if at < 0:
            return
        yield at, at + len(typed)
        at = plain.find(typed, at + len(typed))


def _phrase_spans(folded: _Folded, words: Sequence[str]) -> Iterable[Tuple[int, int]]:
    cased, plain, first = folded.cased, folded.plain, words[0]
    at = plain.find(first)
    count = 0
    while at >= 0 and count < _OCCURRENCES:
        end = _end_of_phrase(cased, plain, at, words) if _borders(cased, at) else None
        if end is not None:
            yield at, end
            count += 1
        at = plain.find(first, at + 1 if end is None else end)


def _end_of_phrase(cased: str, plain: str, at: int, words: Sequence[str]) -> Optional[int]:
    for number, word in enumerate(words):
        if number:
            gap = _GAP.match(plain, at)
            at = gap.end() if gap is not None else at
        if not plain.startswith(word, at):
            return None
        at += len(word)
        if not _borders(cased, at):
            return None
    return at


def _borders(cased: str, at: int) -> bool:
    """Whether a word, or a part of a camelCase name, begins or ends here."""
    if at <= 0 or at >= len(cased):
        return True
    before, after = cased[at - 1], cased[at]
    if not _in_word(before) or not _in_word(after):
        return True
    if "A" <= after <= "Z":
        return not "A" <= before <= "Z" or at + 1 < len(cased) and "a" <= cased[at + 1] <= "z"
    return False


def _in_word(character: str) -> bool:
    return character >= "\x80" or character.isalnum()


def _fold(text: str) -> _Folded:
    if text.isascii():
        return _Folded(text, text.lower(), None, None)
    parts: List[str] = []
    origins: List[int] = []
    ends: List[int] = []
    for cluster in _CLUSTER.finditer(text):
        start, end = cluster.span()
        piece = cluster.group()
        if piece.isascii():
            parts.append(piece)
            origins.extend(range(start, end))
            ends.extend(range(start + 1, end + 1))
        elif cluster.group(1):  # characters that are a word each and fold no further
            parts.append("".join([f" {character} " for character in piece]))
            origins.extend([at for at in range(start, end) for _ in range(3)])
            ends.extend([at for at in range(start + 1, end + 1) for _ in range(3)])
        else:
            piece = _spelled(piece)
            if not piece and ends and unicodedata.combining(text[start]):
                ends[-1] = end  # an accent belongs to the letter before it
            parts.append(piece)
            origins.extend([start] * len(piece))
            ends.extend([end] * len(piece))
    cased = "".join(parts)
    plain = cased.lower()
    return _Folded(cased, plain if len(plain) == len(cased) else cased.translate(_SMALL), origins, ends)


@lru_cache(maxsize=16_384)
def _spelled(cluster: str) -> str:
    return spell(cluster)


def _window(matches: Sequence[Match]) -> Tuple[int, int]:
    """From the first to the last match of the best group that stands together."""
    best, chosen = -1.0, (0, 0)
    for place, first in enumerate(matches):
        weight, last, units = 0.0, first.end, set()
        for match in matches[place:]:
            if match.start > first.start + _TOGETHER:
                break
            last = max(last, match.end)
            weight += match.weight * (0.05 if match.unit in units else 1.0)
            units.add(match.unit)
        if weight > best:
            best, chosen = weight, (first.start, last)
    return chosen


def _widened(text: str, start: int, end: int) -> Tuple[int, int]:
    """The bounds grown to about WORDS words, never beyond what fits."""
    end = min(end, start + _ROOM)
    inside = sum(1 for _ in _CHUNK.finditer(text, start, end))
    spare = max(0, WORDS - inside)
    room = _ROOM - (end - start)
    low = max(0, start - room // 2)
    left = [chunk.start() for chunk in _CHUNK.finditer(text, low, start)]
    if low > 0 and left and left[0] == low:
        left.pop(0)  # the word may begin before what was looked at
    right: List[int] = []
    for chunk in _CHUNK.finditer(text, end, min(len(text), end + room // 2)):
        right.append(chunk.end())
        if len(right) >= spare:
            break
    take_left = min(len(left), max(spare // 2, spare - len(right)))
    take_right = min(len(right), spare - take_left)
    first = left[-take_left] if take_left else start
    last = right[take_right - 1] if take_right else end
    return first, last


def _joined(spans: Iterable[Tuple[int, int]]) -> List[Tuple[int, int]]:
    """Spans that touch or overlap made one."""
    joined: List[Tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _spelled_out(text: str, first: int, last: int, marked: Sequence[Tuple[int, int]]) -> str:
    """The words between two positions on one line, with marks; the text's own brackets are kept apart."""
    length = len(MORE) * 2
    pieces: List[str] = [MORE] if text[:first].strip() else []
    at = first
    cut = False
    for start, end in [*marked, (last, last)]:
        for piece, is_match in ((text[at:start], False), (text[start:end], True)):
            shown = _one_line(piece)
            if not shown:
                continue
            if is_match:
                shown = f"{OPEN}{shown.strip()}{CLOSE}"
            if length + len(shown) > LONGEST - 4:
                cut = True
                break
            _append(pieces, shown)
            length += len(shown) + 1
        if cut:
            break
        at = end
    whole = "".join(pieces).strip()
    return whole + MORE if cut or text[last:].strip() else whole


def _append(pieces: List[str], shown: str) -> None:
    if pieces and shown[0] in "[]" and pieces[-1].endswith(shown[0]):
        shown = " " + shown
    pieces.append(shown)


def _one_line(text: str) -> str:
    """Whitespace and control characters as single blanks, brackets in a row apart."""
    text = re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", text)
    if "[[" in text or "]]" in text:
        text = re.sub(r"\[(?=\[)", "[ ", re.sub(r"\](?=\])", "] ", text))
    return text
