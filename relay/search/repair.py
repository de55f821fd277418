"""Misspelt and half-remembered words, put right from the index's own vocabulary with bounded work."""

from __future__ import annotations

import sqlite3
import string
from typing import Dict, Iterator, List, Optional, Tuple

from relay.search.expressions import phrase
from relay.search.retrieval import Rows

#: A word is proposed when so many visible rows hold it.
ENOUGH_ROWS = 2

#: Statements spent on one query's repairs, and vocabulary terms looked at.
MOST_PROBES, MOST_TERMS = 2500, 5000

#: Words that are too short to tell a slip from another word.
SHORTEST, SHORTEST_FAR = 4, 7

#: How many completions of one half-typed word are looked for.
COMPLETIONS = 4

#: How frequent a word is counts up to here.
_FREQUENT = 200

_ALPHABETS = (string.ascii_lowercase + string.digits, "абвгдежзийклмнопрстуфхцчшщъыьэюя", "αβγδεζηθικλμνξοπρστυφχψω")


class Repair:
    """Proposes words for those nobody wrote; one object a search."""

    def __init__(self, rows: Rows, connection: sqlite3.Connection) -> None:
        self._rows = rows
        self._connection = connection
        self._probes = MOST_PROBES
        self._terms_left = MOST_TERMS
        self._known: Dict[str, Tuple[str, ...]] = {}

    def proposals(self, word: str) -> Tuple[str, ...]:
        """What may have been meant, best first: a corrected word or several completions; empty when nothing is near."""
        known = self._known.get(word)
        if known is None:
            known = self._known[word] = self._proposals(word)
        return known

    def _proposals(self, word: str) -> Tuple[str, ...]:
        if len(word) < SHORTEST or word.isdigit():
            return ()
        corrected = self._best(word, self._existing(one_edit_away(word)))
        if corrected is None and len(word) >= SHORTEST_FAR:
            near = (term for term in self._terms(word[:3]) if two_edits_apart(word, term))
            corrected = self._best(word, near)
        if corrected is not None:
            return (corrected,)
        completed = [(self._frequency(term), term) for term in self._terms(word, 40) if term != word]
        completed = sorted((item for item in completed if item[0] >= ENOUGH_ROWS), key=lambda item: (-item[0], item[1]))
        return tuple(term for _, term in completed[:COMPLETIONS])

    def _best(self, word: str, candidates: Iterator[str]) -> Optional[str]:
        """The likeliest: no first letter changed, letters only swapped, then how many rows hold it."""
        found: List[Tuple[bool, bool, int, str]] = []
        for candidate in candidates:
            frequency = self._frequency(candidate)
            if frequency >= ENOUGH_ROWS:
                swapped = sorted(candidate) == sorted(word)
                found.append((candidate[0] != word[0], not swapped, -frequency, candidate))
        return min(found)[3] if found else None

    def _existing(self, candidates: Iterator[str]) -> Iterator[str]:
        for candidate in candidates:
            if self._probes <= 0:
                return
            self._probes -= 1
            if self._rows.visible(phrase((candidate,)), 1):
                yield candidate

    def _frequency(self, word: str) -> int:
        if self._probes <= 0:
            return 0
        self._probes -= 1
        return self._rows.visible(phrase((word,)), _FREQUENT)

    def _terms(self, beginning: str, most: int = MOST_TERMS) -> Iterator[str]:
        """Terms of the whole vocabulary that begin so; the scope is looked at afterwards."""
        found = self._connection.execute(
            "SELECT term FROM temp.vocabulary WHERE term >= ? AND term < ? LIMIT ?",
            (beginning, beginning + "\U0010ffff", min(most, self._terms_left)),
        ).fetchall()
        self._terms_left -= len(found)
        return (term for (term,) in found)


def one_edit_away(word: str) -> Iterator[str]:
    """Every word with one letter swapped with its neighbour, dropped, changed or added, each once."""
    letters = {letter for letter in word if not letter.isdigit()}
    alphabet = next((alphabet for alphabet in _ALPHABETS if letters.intersection(alphabet)), "")
    seen = {word}
    for candidate in _edits(word, alphabet):
        if candidate and candidate not in seen:
            seen.add(candidate)
            yield candidate


def _edits(word: str, alphabet: str) -> Iterator[str]:
    halves = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    for left, right in halves:
        if len(right) > 1:
            yield left + right[1] + right[0] + right[2:]
    for left, right in halves:
        if right:
            yield left + right[1:]
    for left, right in halves:
        for letter in alphabet:
            if right:
                yield left + letter + right[1:]
            yield left + letter + right


def two_edits_apart(one: str, other: str) -> bool:
    """Whether at most two letters were dropped, added, changed or swapped with a neighbour."""
    if abs(len(one) - len(other)) > 2:
        return False
    earlier: List[int] = []
    above = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, against in enumerate(other, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > 2:
            return False
        earlier, above = above, row
    return above[-1] <= 2
