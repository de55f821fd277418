"""Matching sessions in the order they are answered: one place a conversation, ties broken for good."""

from __future__ import annotations

import math
from typing import Dict, Hashable, Iterable, List, NamedTuple, Tuple

from relay.search.retrieval import Match, Rows
from relay.search.sessions import Entry, SessionTable

DAY_MS = 86_400_000

#: A session of the index's newest day scores so much more than an ancient one; half of it is lost in HALF_LIFE_DAYS.
RECENCY, HALF_LIFE_DAYS = 0.05, 30.0

#: Long sessions match by chance more often: for each doubling of their rows the score shrinks by about so much.
LENGTH_PENALTY = 0.01

#: bm25 here knows no lengths (that would cost four times as much); so many of the best places are put right by their
#: rows' lengths, in compressed bytes.
WEIGHED, USUAL_LENGTH, LENGTH_SHARE = 200, 500, 0.3


class Place(NamedTuple):
    """One hit: the session that answers, its best row (None without text), how many forks it stands for."""

    entry: Entry
    score: float
    row: "int | None"
    duplicates: int = 1


class Ranking:
    """Collects the rungs of one search; ``places`` holds the whole conversations so far, in order."""

    def __init__(self, table: SessionTable, rows: Rows) -> None:
        self.places: List[Place] = []
        self._rows = rows
        self._table = table
        self._seen: set = set()

    def add(self, found: Dict[int, Match], level: int) -> None:
        """Places what one rung found behind what is there; ``level`` is higher for stricter rungs."""
        groups: Dict[Hashable, Dict[int, Match]] = {}
        for session, match in found.items():
            answering, key = self._table.place(session)
            if key in self._seen:
                continue
            group = groups.get(key)
            if group is None:
                groups[key] = {answering: match}
            else:
                group[answering] = max(group.get(answering, match), match)
        self._seen.update(groups)
        places = [self._place(group, level) for group in groups.values()]
        places.sort(key=_by_score)
        weighed = sorted(self._by_length(places[:WEIGHED], level), key=_by_score)
        self.places.extend(weighed)
        for place in places[WEIGHED:]:
            usual = level + (place.score - level) / (1 + LENGTH_SHARE)
            self.places.append(place._replace(score=min(usual, weighed[-1].score)))

    def _by_length(self, places: List[Place], level: int) -> List[Place]:
        """The places with what their rows' lengths make of their scores."""
        lengths = self._rows.lengths(place.row for place in places if place.row is not None)
        weighed = []
        for place in places:
            share = lengths.get(place.row or 0, USUAL_LENGTH) / USUAL_LENGTH
            weighed.append(place._replace(score=level + (place.score - level) / (1 + LENGTH_SHARE * share)))
        return weighed

    def _place(self, group: Dict[int, Match], level: int) -> Place:
        live = self._table.live
        if len(group) == 1:
            key, match = next(iter(group.items()))
            return Place(live[key], self._score(live[key], match, level), match[1])
        newest = max((live[key] for key in group), key=_age)
        return Place(newest, self._score(newest, max(group.values()), level), group[newest.id][1], len(group))

    def _score(self, entry: Entry, match: Match, level: int) -> float:
        """Between ``level`` and ``level + 1``."""
        score = match[0]
        if entry.updated_at is not None:
            days = max(0, self._table.newest - entry.updated_at) / DAY_MS
            score *= 1 + RECENCY * 0.5 ** (days / HALF_LIFE_DAYS)
        score /= 1 + LENGTH_PENALTY * math.log2(1 + entry.next_row)
        return level + score / (score + 10)


def newest_first(places: Iterable[Place]) -> List[Place]:
    """By time, newest first; sessions without one come last."""
    return sorted(places, key=_by_age)


def without_text(table: SessionTable, sessions: Iterable[int]) -> List[Place]:
    """The places of a search by operators alone: every session that passes, newest first, without a score."""
    groups: Dict[Hashable, Dict[int, Entry]] = {}
    for session in sessions:
        answering, key = table.place(session)
        groups.setdefault(key, {})[answering] = table.live[answering]
    return newest_first(Place(max(group.values(), key=_age), 0.0, None, len(group)) for group in groups.values())


def _by_score(place: Place) -> Tuple[float, bool, int, str, str]:
    return (-place.score, *_by_age(place))


def _by_age(place: Place) -> Tuple[bool, int, str, str]:
    entry = place.entry
    return entry.updated_at is None, -(entry.updated_at or 0), entry.agent, entry.session_id


def _age(entry: Entry) -> Tuple[int, str, int]:
    return entry.updated_at or 0, entry.session_id, entry.id
