"""What a search must find, told by reading every visible message: slow, obvious, without SQL or FTS5."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, Dict, FrozenSet, List, Optional, Sequence, Set, Tuple

from relay.index.rows import rows
from relay.index.words import GAP, further, tokens
from relay.search.query import Query, Unit, parse
from relay.transcripts.types import Message


@dataclass
class Told:
    """A session as the model has it."""

    id: str
    agent: str
    cwd: Optional[str]
    updated_at: Optional[int]
    messages: Sequence[Tuple[str, str]]
    live: bool = True
    lineage: Optional[str] = None


class Line:
    """A row: its words in order, and the lists of parts and symbols it is found by as well."""

    def __init__(self, session: Told, role: str, text: str) -> None:
        self.session, self.tool = session, role not in ("user", "assistant")
        self.streams = [tokens(text)]
        extra: List[str] = []
        for piece in further(text):
            extra.extend(piece.lower().split())
        self.streams.append(extra)
        self.words: FrozenSet[str] = frozenset(word for stream in self.streams for word in stream)

    def has(self, phrase: Sequence[str]) -> bool:
        """Whether the words stand one behind the other."""
        length = len(phrase)
        return any(
            list(phrase) == stream[at : at + length]
            for stream in self.streams
            for at in range(len(stream) - length + 1)
        )


Test = Callable[[Line], bool]


class Model:
    """Finds sessions by reading all of them."""

    def __init__(self, sessions: Sequence[Told]) -> None:
        self.sessions = sessions
        self.lines = [
            Line(session, row.role, row.text)
            for session in sessions
            if session.live
            for place, said in enumerate(session.messages)
            for row in rows(Message(place, *said))
        ]

    def find(self, text: str, scope: str = "all", agents: Sequence[str] = (), paths: Sequence[str] = (),
             since: Optional[int] = None) -> Tuple[str, Set[str]]:  # fmt: skip
        """The route and the conversations found."""
        query = parse(text)
        self.seen = [
            line
            for line in self.lines
            if not (scope == "conversation" and line.tool) and passes(line.session, query, agents, paths, since)
        ]
        if not query.units:
            if not (query.repos or query.paths):
                return "and", set()
            found = [session for session in self.sessions if session.live]
            return "and", {_name(session) for session in found if passes(session, query, agents, paths, since)}
        units = list(query.units)
        if query.literal:
            strict = self._strict(units)
            if strict is not None:
                return strict
        repaired = [self._repair(unit) for unit in units]
        prefix = "typo+" if repaired != units else ""
        if query.literal and prefix:
            strict = self._strict(repaired)
            if strict is not None:
                return prefix + strict[0], strict[1]
        tests = [test for unit in repaired for test in self._present(unit)]
        return prefix + "or", self._matching(lambda line: any(test(line) for test in tests))

    def _strict(self, units: List[Unit]) -> Optional[Tuple[str, Set[str]]]:
        whole = [word for unit in units for word in unit.words]
        symbols = [symbol for unit in units for symbol in unit.symbols]

        def as_text(line: Line) -> bool:
            return _words(units[0])(line) if len(units) == 1 else not whole or line.has(whole)

        ladder: List[Tuple[str, Test]] = [
            ("phrase", lambda line: as_text(line) and all(line.has([s]) for s in symbols))
        ]
        if whole:
            ladder.append(("phrase", as_text))
        ladder.append(("and", lambda line: all(_unit(unit)(line) for unit in units)))
        parts = [part for unit in units for part in unit.separate()]
        if parts:
            ladder.append(("and", lambda line: all(_words(part)(line) for part in parts)))
        for route, test in ladder:
            found = self._matching(test)
            if found:
                return route, found
        return None

    def _matching(self, test: Test) -> Set[str]:
        return {_name(line.session) for line in self.seen if test(line)}

    def _present(self, unit: Unit) -> List[Test]:
        for form in (unit, unit._replace(symbols=()) if unit.words else unit):
            if any(_unit(form)(line) for line in self.seen):
                return [_unit(form)]
        return [_words(part) for part in unit.separate() if any(_words(part)(line) for line in self.seen)]

    # Repair

    def _repair(self, unit: Unit) -> Unit:
        if not unit.words or any(_words(unit)(line) for line in self.seen):
            return unit
        if len(unit.words) == 1:
            proposals = self._proposals(unit.words[0])
            if proposals:
                return Unit(tuple(proposals[:1]), (), (), unit.quoted, tuple((other,) for other in proposals[1:]))
            if not unit.parts:
                return unit
        words = unit.parts or unit.words
        meant = tuple(self._corrected(word) for word in words)
        return unit if meant == words else unit._replace(words=meant, parts=(), symbols=())

    def _corrected(self, word: str) -> str:
        if any(word in line.words for line in self.seen):
            return word
        return (self._proposals(word) or [word])[0]

    def _proposals(self, word: str) -> List[str]:
        if len(word) < 4 or word.isdigit():
            return []
        counts: Dict[str, int] = {}
        for line in self.seen:
            for known in line.words:
                counts[known] = counts.get(known, 0) + 1
        counts = {known: count for known, count in counts.items() if count >= 2 and known != GAP}
        near = [known for known in counts if distance(word, known) == 1 and _typed_alike(word, known)]
        if not near and len(word) >= 7:
            near = [known for known in counts if known[:3] == word[:3] and distance(word, known) <= 2]
        if near:
            return [
                min(near, key=lambda known: (known[0] != word[0], sorted(known) != sorted(word), -counts[known], known))
            ]
        longer = [known for known in counts if known.startswith(word)]
        return sorted(longer, key=lambda known: (-counts[known], known))[:4]


def passes(session: Told, query: Query, agents: Sequence[str], paths: Sequence[str], since: Optional[int]) -> bool:
    """Whether filters and operators let the session answer."""
    cwd = session.cwd
    if agents and session.agent not in agents:
        return False
    if since is not None and (session.updated_at is None or session.updated_at < since):
        return False
    if paths and not (cwd and any(_inside(cwd, path) for path in paths)):
        return False
    if query.repos and not (cwd and any(repo.lower() in cwd.lower().split("/")[-1] for repo in query.repos)):
        return False
    if not query.paths:
        return True
    return cwd is not None and any(
        _inside(cwd, path) if path.startswith("/") else path.lower() in cwd.lower() for path in query.paths
    )


def _inside(cwd: str, path: str) -> bool:
    return (cwd + "/").startswith(path.rstrip("/") + "/")


def _name(session: Told) -> str:
    return session.lineage or session.id


def _unit(unit: Unit) -> Test:
    words = _words(unit) if unit.words else None
    return lambda line: (words is None or words(line)) and all(line.has([symbol]) for symbol in unit.symbols)


def _words(unit: Unit) -> Test:
    if not unit.words:
        return _unit(unit)
    forms = [form for form in (unit.words, unit.parts, *unit.alternatives) if form]
    return lambda line: any(line.has(form) for form in forms)


def _typed_alike(word: str, known: str) -> bool:
    """Only letters a keyboard of the word's script has are added."""
    return all(re.match("[a-z0-9]", letter) for letter in set(known) - set(word))


def distance(one: str, other: str) -> int:
    """Letters dropped, added, changed or swapped with a neighbour."""
    table = {(i, 0): i for i in range(len(one) + 1)}
    table.update({(0, j): j for j in range(len(other) + 1)})
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            table[i, j] = min(
                table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (one[i - 1] != other[j - 1])
            )
            if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
                table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return table[len(one), len(other)]
