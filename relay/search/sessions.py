"""The sessions that answer, held in memory and brought up to date by what changed since the last look."""

from __future__ import annotations

import math
import sqlite3
from typing import AbstractSet, Dict, Hashable, NamedTuple, Optional, Tuple

from relay.search.filters import Filters, folder_test

DAY_MS = 86_400_000

#: A session of the index's newest day scores so much more than an ancient one; half of it is lost in HALF_LIFE_DAYS.
RECENCY, HALF_LIFE_DAYS = 0.05, 30.0

#: Long sessions match by chance more often: for each doubling of their rows the score shrinks by about so much.
LENGTH_PENALTY = 0.01

_COLUMNS = (
    "id, source, agent, session_id, title, cwd, branch, updated_at, message_count, resume, parent_id, lineage, rank, "
    "next_row"
)


class Entry(NamedTuple):
    """A row of the table ``sessions`` (see ``relay.index.schema``); ``next_row`` is about how many rows it has."""

    id: int
    source: int
    agent: str
    session_id: str
    title: str
    cwd: Optional[str]
    branch: Optional[str]
    updated_at: Optional[int]
    message_count: int
    resume: Optional[str]
    parent_id: Optional[str]
    lineage: Optional[str]
    rank: int
    next_row: int


#: Sorts sessions newest first: without a time, its negative, agent, session id.
Age = Tuple[bool, int, str, str]


class Standing(NamedTuple):
    """The session that answers for a session, its conversation (forks share one), its age, and a factor for scores."""

    answers: int
    conversation: Hashable
    age: Age
    prior: float


class State(NamedTuple):
    """What the index says of itself; two equal states answer alike. ``pruned``: see ``relay.index.schema.Meta``."""

    incarnation: str
    generation: int
    pruned: int


def read_state(connection: sqlite3.Connection) -> State:
    """The index's state now. Raises sqlite3.Error, KeyError when it is not whole."""
    names = "'incarnation', 'generation', 'pruned'"
    found = dict(connection.execute(f"SELECT name, value FROM meta WHERE name IN ({names})").fetchall())
    return State(found["incarnation"], int(found["generation"]), int(found.get("pruned", 0)))


class SessionTable:
    """The sessions that may answer at one generation; never changed once made, so that threads can share it.

    Of a session's copies in several sources the best one is here alone: the others may still hold what was undone or
    deleted since they were written.
    """

    def __init__(self, state: State, copies: Dict[int, Entry]) -> None:
        self.state = state
        self.live = dict(copies)
        self.rows = 0
        self.newest = 0
        self._copies = copies
        self._by_name: Dict[Tuple[str, str], int] = {}
        for entry in copies.values():
            best = self._by_name.setdefault((entry.agent, entry.session_id), entry.id)
            if best != entry.id:
                if _precedence(entry) > _precedence(copies[best]):
                    self._by_name[entry.agent, entry.session_id] = entry.id
                    del self.live[best]
                else:
                    del self.live[entry.id]
        for entry in self.live.values():
            self.rows += entry.next_row
            if entry.updated_at is not None and entry.updated_at > self.newest:
                self.newest = entry.updated_at
        self._allowed: Dict[Filters, AbstractSet[int]] = {}
        self._standings: Dict[int, Standing] = {}

    @classmethod
    def load(cls, connection: sqlite3.Connection, state: State) -> "SessionTable":
        """Read all of it."""
        found = connection.execute(f"SELECT {_COLUMNS} FROM sessions WHERE live = 1").fetchall()
        return cls(state, {row[0]: Entry._make(row) for row in found})

    def refreshed(self, connection: sqlite3.Connection, state: State) -> "SessionTable":
        """The table at a later state; reads only what changed."""
        if state == self.state:
            return self
        if state.incarnation != self.state.incarnation or state.generation < self.state.generation:
            return self.load(connection, state)
        copies = dict(self._copies)
        since = self.state.generation
        changed = connection.execute(f"SELECT live, {_COLUMNS} FROM sessions WHERE changed > ?", (since,)).fetchall()
        for live_now, *row in changed:
            if live_now == 1:
                copies[row[0]] = Entry._make(row)
            else:
                copies.pop(row[0], None)
        if state.pruned > since:  # sessions are gone whose last change was never seen here
            there = {row[0] for row in connection.execute("SELECT id FROM sessions WHERE live = 1")}
            copies = {key: entry for key, entry in copies.items() if key in there}
        return SessionTable(state, copies)

    def answering(self, entry: Entry) -> Entry:
        """The session a session's rows answer as: itself, or the topmost there is of those that started a subagent."""
        seen = set()
        while entry.parent_id is not None and entry.id not in seen:
            seen.add(entry.id)
            parent = self._by_name.get((entry.agent, entry.parent_id))
            if parent is None:
                break
            entry = self.live[parent]
        return entry

    def standing(self, session: int) -> Standing:
        """What a session's matches count for; remembered, since it is asked for every match of every search."""
        known = self._standings.get(session)
        if known is None:
            entry = self.live[session]
            answer = self.answering(entry)
            age = (answer.updated_at is None, -(answer.updated_at or 0), answer.agent, answer.session_id)
            conversation = answer.agent, answer.lineage or answer.session_id
            known = self._standings[session] = Standing(answer.id, conversation, age, self._prior(answer))
        return known

    def _prior(self, entry: Entry) -> float:
        recent = 0.0
        if entry.updated_at is not None:
            recent = RECENCY * 0.5 ** ((self.newest - entry.updated_at) / DAY_MS / HALF_LIFE_DAYS)
        return (1 + recent) / (1 + LENGTH_PENALTY * math.log2(1 + entry.next_row))

    def allowed(self, filters: Filters) -> Optional[AbstractSet[int]]:
        """Keys of the sessions whose rows may answer; None when all may."""
        if filters.empty:
            return None
        known = self._allowed.get(filters)
        if known is None:
            agents, since = frozenset(filters.agents), filters.since
            passes = folder_test(filters)
            known = set()
            for entry in self.live.values():
                if agents and entry.agent not in agents:
                    continue
                answer = self.live[self.standing(entry.id).answers]
                if since is not None and (answer.updated_at is None or answer.updated_at < since):
                    continue
                if passes(answer.cwd):
                    known.add(entry.id)
            if len(self._allowed) > 16:
                self._allowed.clear()
            self._allowed[filters] = known
        return known


def _precedence(entry: Entry) -> Tuple[int, int, int]:
    return entry.rank, entry.updated_at or 0, entry.id
