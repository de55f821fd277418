"""Matching sessions in the order they are answered: one place a conversation, ties broken for good."""

from __future__ import annotations

import re
from typing import Dict, Hashable, Iterable, List, NamedTuple, Optional, Set, Tuple

from relay.search.retrieval import ROW_BITS, Match, Matches, Rows
from relay.search.sessions import Age, SessionTable, Standing

#: bm25 here knows no lengths (that would cost four times as much); so many of the best places are put right by their
#: rows' lengths, in compressed bytes.
WEIGHED, USUAL_LENGTH, LENGTH_SHARE = 100, 500, 0.3

#: Of so many of the best places the texts are read to tell what stands as typed from another name of its words, and
#: that name from the words apart.
NAMED = 40


class Place(NamedTuple):
    """One hit; places sort in the order they are answered.

    ``fall`` is the score, negative; ``age`` breaks ties for good (see ``Standing``); ``session`` is the key of the
    session that answers, ``row`` its best row (None without text); ``duplicates`` is how many forks it stands for.
    """

    fall: float
    age: Age
    session: int
    row: Optional[int]
    duplicates: int = 1


class Ranking:
    """Collects the rungs of one search; ``places`` holds the whole conversations so far, in order."""

    def __init__(
        self,
        table: SessionTable,
        rows: Rows,
        typed: "re.Pattern[str] | None" = None,
        name: "re.Pattern[str] | None" = None,
    ) -> None:
        self.places: List[Place] = []
        self._forms = [form for form in (typed, name) if form is not None]
        self._rows = rows
        self._table = table
        self._seen: Set[Hashable] = set()

    def add(self, matches: Matches, level: int) -> None:
        """Places what one rung found behind what is there; ``level`` is higher for stricter rungs."""
        # One conversation mostly has one session: the others are put aside, so that the usual way stays short.
        best: Dict[Hashable, Tuple[Standing, Match]] = {}
        more: Dict[Hashable, List[Tuple[Standing, Match]]] = {}
        standing_of, seen = self._table.standing, self._seen
        for session, match in matches.best.items():
            standing = standing_of(session)
            key = standing.conversation
            if key in seen:
                continue
            if key in best:
                more.setdefault(key, [best[key]]).append((standing, match))
            else:
                best[key] = standing, match
        seen.update(best)
        places = [
            Place(_fall(one, match[0], level), one.age, one.answers, match[1])
            for key, (one, match) in best.items()
            if key not in more
        ]
        places.extend(self._forks(forks, level) for forks in more.values())
        places.sort()
        weighed = sorted(self._weighed(places[:WEIGHED], matches.more, level))
        self.places.extend(weighed)
        for place in places[WEIGHED:]:
            fall = max(-level + (place.fall + level) / (1 + LENGTH_SHARE), weighed[-1].fall)
            self.places.append(Place(fall, place.age, place.session, place.row, place.duplicates))

    def _weighed(self, places: List[Place], more: Dict[int, List[Match]], level: int) -> List[Place]:
        """The places, each with that row of its session which scores best once its length and form are known."""
        choices: List[List[Tuple[float, int]]] = []
        for place in places:
            assert place.row is not None
            session = place.row >> ROW_BITS
            standing = self._table.standing(session)
            others = [(_fall(standing, score, level), row) for score, row in more.get(session, ())]
            choices.append([(place.fall, place.row), *others])
        lengths = self._rows.lengths(row for choice in choices for _, row in choice)
        forms = self._formed(row for choice in choices[:NAMED] for _, row in choice)
        weighed = []
        for place, choice in zip(places, choices):
            falls = []
            for fall, row in choice:
                score = -(fall + level) / (1 + LENGTH_SHARE * lengths.get(row, USUAL_LENGTH) / USUAL_LENGTH)
                if forms:
                    score = (score + forms.get(row, 0)) / (1 + len(self._forms))
                falls.append((-level - score, row))
            fall, row = min(falls)
            weighed.append(Place(fall, place.age, place.session, row, place.duplicates))
        return weighed

    def _formed(self, rows: Iterable[int]) -> Dict[int, int]:
        """How near the rows' texts come to what was typed, higher is nearer; with its words alone they are left out."""
        if not self._forms:
            return {}
        near = {}
        for row, text in self._rows.texts(rows).items():
            for place, form in enumerate(self._forms):
                if form.search(text):
                    near[row] = len(self._forms) - place
                    break
        return near

    def _forks(self, found: List[Tuple[Standing, Match]], level: int) -> Place:
        """The place of several sessions (forks, subagents) that are one conversation."""
        answering: Dict[int, Tuple[Standing, Match]] = {}
        for standing, match in found:
            known = answering.get(standing.answers)
            if known is None or known[1] < match:
                answering[standing.answers] = standing, match
        newest, match = min(answering.values(), key=lambda one: one[0].age)
        score = max(match[0] for _, match in answering.values())
        return Place(_fall(newest, score, level), newest.age, newest.answers, match[1], len(answering))


def _fall(standing: Standing, score: float, level: int) -> float:
    """The negative of a score between ``level`` and ``level + 1``."""
    score *= standing.prior
    return -level - score / (score + 10)


def newest_first(places: Iterable[Place]) -> List[Place]:
    """By time, newest first; sessions without one come last."""
    return sorted(places, key=lambda place: place.age)


def without_text(table: SessionTable, sessions: Iterable[int]) -> List[Place]:
    """The places of a search by operators alone: every session that passes, newest first, without a score."""
    groups: Dict[Hashable, Dict[int, Age]] = {}
    for session in sessions:
        standing = table.standing(session)
        groups.setdefault(standing.conversation, {})[standing.answers] = standing.age
    places = []
    for group in groups.values():
        session, age = min(group.items(), key=lambda item: item[1])
        places.append(Place(0.0, age, session, None, len(group)))
    return newest_first(places)
