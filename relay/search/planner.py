"""The ladder: what a query is looked for as, from the strictest reading to the loosest one that finds something."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from relay.search.expressions import all_of, any_of, of_unit, of_words, phrase
from relay.search.query import Query, Unit
from relay.search.repair import Repair
from relay.search.retrieval import COUNTED, Rows

#: Postings that one statement may go through; the commonest words of a longer query are left aside.
RANKED_POSTINGS, MATCHED_POSTINGS = 600_000, 2_000_000
#: Rows of a phrase's rarest word times its words: in so many places its words are laid side by side.
COMPARED = 800_000
#: Words of a phrase that are compared at all.
LONGEST_PHRASE = 64

#: Of so many words, rows that hold them all come first.
FEW = 3


class Plan(NamedTuple):
    """``rungs`` are FTS5 expressions; what an earlier one finds ranks above what a later one adds.

    ``units`` are what is marked in snippets. ``repaired`` maps a word of the query to what it was read as.
    ``shortened`` says that words were left aside to bound the work.
    """

    route: str
    rungs: Tuple[str, ...]
    units: Tuple[Unit, ...]
    repaired: Dict[str, str]
    shortened: bool = False


class Planner:
    """Plans one search; ``total`` is about how many rows there are."""

    def __init__(self, rows: Rows, repair: Repair, total: int) -> None:
        self._rows = rows
        self._repair = repair
        self._total = total
        self._postings: Dict[str, int] = {}
        self._shortened = False

    def plan(self, query: Query) -> Plan:
        """The route to take and its rungs."""
        units = query.units
        if query.literal:
            strict = self._strict(units, "")
            if strict is not None:
                return strict
        repaired: Dict[str, str] = {}
        units = tuple(self._repaired(unit, repaired) for unit in units)
        prefix = "typo+" if repaired else ""
        if query.literal and repaired:
            strict = self._strict(units, prefix)
            if strict is not None:
                return strict._replace(repaired=repaired)
        return Plan(f"{prefix}or", self._loose(units), units, repaired, self._shortened)

    # Phrase, then AND

    def _strict(self, units: Sequence[Unit], prefix: str) -> Optional[Plan]:
        for route, expressions in (("phrase", self._phrases(units)), ("and", self._ands(units))):
            for expression in expressions:
                if self._rows.visible(expression, 1):
                    return Plan(prefix + route, (expression,), tuple(units), {}, self._shortened)
        return None

    def _phrases(self, units: Sequence[Unit]) -> List[str]:
        """The whole text in order: with the symbols as typed, then without."""
        if len(units) == 1:
            whole = of_words(self._fitting(units[0]))
        else:
            words = self._affordable([word for unit in units for word in unit.words])
            whole = phrase(words) if words else ""
        symbols = [phrase((symbol,)) for unit in units for symbol in unit.symbols]
        exact = all_of([whole, *symbols] if whole else symbols)
        return list(dict.fromkeys(expression for expression in (exact, whole) if expression))

    def _ands(self, units: Sequence[Unit]) -> List[str]:
        """Every unit as typed, then every word; the commonest are left aside when all would be too much work."""
        kept = self._rarest([self._fitting(unit) for unit in units], MATCHED_POSTINGS)
        typed = all_of(of_unit(unit) for unit in kept)
        loose = all_of(of_words(part) for unit in kept for part in unit.separate())
        return list(dict.fromkeys(expression for expression in (typed, loose) if expression))

    # OR

    def _loose(self, units: Sequence[Unit]) -> Tuple[str, ...]:
        """Any unit at all, those rows first that hold all of them, and before those the text as it stands."""
        found: List[Unit] = []
        for unit in units:
            found.extend(self._present(self._fitting(unit)))
        found = list(dict.fromkeys(found))
        if not found:
            return ()
        loosest = any_of(of_unit(unit) for unit in self._rarest(found, RANKED_POSTINGS))
        if len(found) == 1:
            return (loosest,)
        rungs = [loosest]
        if len(found) <= FEW:  # of many words a long row holds all by chance, and bm25 adds them up anyway
            rungs.insert(0, all_of(of_unit(unit) for unit in self._rarest(found, MATCHED_POSTINGS)))
        words = [word for unit in units for word in unit.words]
        if self._affordable(words) == words:
            rungs.insert(0, phrase(words))
        return tuple(dict.fromkeys(rungs))

    def _present(self, unit: Unit) -> List[Unit]:
        """The unit if anybody wrote it, else without its symbols, else what it consists of."""
        for form in dict.fromkeys((unit, unit._replace(symbols=()) if unit.words else unit)):
            if self._rows.visible(of_unit(form), 1):
                return [form]
        return [part for part in unit.separate() if self._rows.visible(of_words(part), 1)]

    # Repair

    def _repaired(self, unit: Unit, repaired: Dict[str, str]) -> Unit:
        """The unit with proposals for the words of it that this search has no posting for."""
        if not unit.words or self._rows.visible(of_words(unit), 1):
            return unit
        if len(unit.words) == 1:
            proposals = self._repair.proposals(unit.words[0])
            if proposals:
                repaired[unit.words[0]] = " ".join(proposals)
                return Unit(proposals[:1], (), (), unit.quoted, tuple((other,) for other in proposals[1:]))
            if not unit.parts:
                return unit
        words = unit.parts or unit.words
        meant = [self._corrected(word, repaired) for word in words]
        if tuple(meant) == words:
            return unit
        return unit._replace(words=tuple(meant), parts=(), symbols=())

    def _corrected(self, word: str, repaired: Dict[str, str]) -> str:
        if self._rows.visible(phrase((word,)), 1):
            return word
        proposals = self._repair.proposals(word)
        if not proposals:
            return word
        repaired[word] = proposals[0]
        return proposals[0]

    # Bounds

    def _count(self, word: str) -> int:
        """About how many rows hold a word."""
        count = self._postings.get(word)
        if count is None:
            count = self._rows.postings(phrase((word,)))
            self._postings[word] = count = self._total if count >= COUNTED else count
        return count

    def _affordable(self, words: List[str]) -> List[str]:
        """As many of the first words as one phrase may have."""
        spent, rarest = 0, self._total
        for place, word in enumerate(words):
            count = self._count(word)
            spent += count
            rarest = min(rarest, count)
            too_much = spent > MATCHED_POSTINGS or rarest * (place + 1) > COMPARED or place == LONGEST_PHRASE
            if place > 1 and too_much:
                self._shortened = True
                return words[:place]
        return words

    def _fitting(self, unit: Unit) -> Unit:
        words = tuple(self._affordable(list(unit.words)))
        return unit if words == unit.words else unit._replace(words=words)

    def _rarest(self, units: Sequence[Unit], most: int) -> List[Unit]:
        """The units in their order without the commonest, so that the postings of all are at most ``most``."""
        if len(units) < 2:
            return list(units)
        counts = [min((self._count(word) for word in (*unit.words, *unit.symbols)), default=0) for unit in units]
        kept: Set[int] = set()
        spent = 0
        for place in sorted(range(len(units)), key=counts.__getitem__):
            spent += counts[place]
            if kept and spent > most:
                self._shortened = True
                break
            kept.add(place)
        return [unit for place, unit in enumerate(units) if place in kept]
