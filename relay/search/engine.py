"""Searches: one request in, one answer of the contract out, under full exposure."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import OrderedDict
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from relay.contract.requests import SearchRequest
from relay.contract.responses import malformed_cursor, stale_cursor
from relay.index.faults import IndexUnavailable
from relay.index.opening import open_for_reading, reading_identity
from relay.search.cursor import Cursor, MalformedCursor, decode, encode, identity
from relay.search.filters import Filters
from relay.search.hits import Page
from relay.search.planner import Plan, Planner
from relay.search.query import Query, parse
from relay.search.ranking import Place, Ranking, newest_first, without_text
from relay.search.repair import Repair
from relay.search.retrieval import Rows
from relay.search.sessions import SessionTable, State, read_state

#: A search during which the index moved is made anew so often, and not after so many seconds.
ATTEMPTS, PATIENCE = 5, 1.0

#: Orders of hits that are kept for their next pages.
KEPT_ORDERS = 8

#: Connections kept for the next searches.
MOST_IDLE = 8


class Wanted(NamedTuple):
    """A request, its query understood, and what must stay the same from page to page."""

    request: SearchRequest
    query: Query
    filters: Filters
    identity: str


class Lease(NamedTuple):
    """A connection in use by one search, and the file it is of."""

    connection: sqlite3.Connection
    file: Optional[Tuple[int, int, bool]]


class Order(NamedTuple):
    """The hits of a query in their order; not ``complete`` when looser rungs were not needed yet."""

    plan: Plan
    places: List[Place]
    complete: bool


class Engine:
    """Searches one index file; used by any number of threads at once, each with a connection of its own.

    Raises IndexUnavailable when the file is missing, unreadable or of another version. Nothing is ever written.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._idle: List[Lease] = []
        self._closed = False
        self._table: Optional[SessionTable] = None
        self._orders: "OrderedDict[Tuple[State, str], Order]" = OrderedDict()
        self._release(self._lease())

    def close(self) -> None:
        """Give the file back; searches under way end first with their own connections. May be called twice."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for lease in idle:
            lease.connection.close()

    def search(self, request: SearchRequest) -> Dict[str, Any]:
        """The answer to a request: results, stale-cursor or malformed-cursor. Raises IndexUnavailable."""
        started = time.perf_counter()
        wanted = _wanted(request)
        cursor: Optional[Cursor] = None
        if request.cursor is not None:
            try:
                cursor = decode(request.cursor, wanted.identity)
            except MalformedCursor:
                return malformed_cursor()
        lease = self._lease()
        try:
            answer = self._answer(lease.connection, wanted, cursor)
        except (sqlite3.Error, KeyError, ValueError) as error:
            lease.connection.close()
            raise IndexUnavailable("The index cannot be searched now.") from error
        except BaseException:
            lease.connection.close()
            raise
        self._release(lease)
        if answer["kind"] == "results":
            answer["durationMs"] = round((time.perf_counter() - started) * 1000, 3)
        return answer

    def _answer(self, connection: sqlite3.Connection, wanted: Wanted, cursor: Optional[Cursor]) -> Dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        state = read_state(connection)
        for _ in range(ATTEMPTS):
            if cursor is not None and (cursor.incarnation, cursor.generation) != (state.incarnation, state.generation):
                return stale_cursor(state.generation, cursor.generation)
            results = self._results(connection, state, wanted, cursor.offset if cursor else 0)
            now = read_state(connection)
            if (now.incarnation, now.generation) == (state.incarnation, state.generation):
                return results
            state = now
            if time.monotonic() > deadline:
                break
        return stale_cursor(state.generation, cursor.generation if cursor else None)

    def _results(self, connection: sqlite3.Connection, state: State, wanted: Wanted, offset: int) -> Dict[str, Any]:
        request = wanted.request
        table = self._sessions(connection, state)
        order = self._order(connection, table, wanted, offset + request.limit + 1)
        shown = order.places[offset : offset + request.limit]
        more = len(order.places) > offset + request.limit
        following = Cursor(wanted.identity, state.incarnation, state.generation, offset + request.limit)
        page = Page(connection, table, order.plan.units)
        answer: Dict[str, Any] = {
            "kind": "results",
            "hits": [page.hit(place) for place in shown],
            "page": {"cursor": encode(following) if more else None, "hasMore": more},
            "generation": state.generation,
            "truncated": {
                "candidates": order.plan.shortened,
                "snippets": page.without_snippet,
                "query": wanted.query.cut,
                "freshness": False,
            },
            "durationMs": 0.0,
        }
        if request.debug:
            answer["debug"] = _report(order.plan, request.scope)
        return answer

    # What threads share

    def _lease(self) -> Lease:
        """A connection to the file that stands at the path now: a rebuilt index is another file."""
        file = reading_identity(self._path)
        with self._lock:
            if self._closed:
                raise IndexUnavailable("The index is closed.")
            while self._idle:
                lease = self._idle.pop()
                if lease.file == file:
                    return lease
                lease.connection.close()
        connection = open_for_reading(self._path)
        try:
            connection.execute("PRAGMA query_only = OFF")  # for the temporary table alone: the file is open read-only
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', 'words', 'row')")
        except sqlite3.Error as error:
            connection.close()
            raise IndexUnavailable("The index cannot be searched now.") from error
        return Lease(connection, file)

    def _release(self, lease: Lease) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < MOST_IDLE:
                self._idle.append(lease)
                return
        lease.connection.close()

    def _sessions(self, connection: sqlite3.Connection, state: State) -> SessionTable:
        table = self._table
        if table is None:
            table = SessionTable.load(connection, state)
        elif table.state != state:
            table = table.refreshed(connection, state)
        self._table = table
        return table

    def _order(self, connection: sqlite3.Connection, table: SessionTable, wanted: Wanted, needed: int) -> Order:
        key = (table.state, wanted.identity)
        with self._lock:
            known = self._orders.get(key)
            if known is not None and (known.complete or len(known.places) >= needed):
                self._orders.move_to_end(key)
                return known
        order = _ordered(connection, table, wanted, needed)
        with self._lock:
            self._orders[key] = order
            while len(self._orders) > KEPT_ORDERS:
                self._orders.popitem(last=False)
        return order


def _ordered(connection: sqlite3.Connection, table: SessionTable, wanted: Wanted, needed: int) -> Order:
    """At least ``needed`` hits in their order, or all there are."""
    query, request = wanted.query, wanted.request
    allowed = table.allowed(wanted.filters)
    if not query.units:
        nothing = Plan("and", (), (), {})
        if not (query.repos or query.paths):
            return Order(nothing, [], True)
        return Order(nothing, without_text(table, table.live if allowed is None else allowed), True)
    rows = Rows(connection, table, allowed, request.scope)
    plan = Planner(rows, Repair(rows, connection), table.rows).plan(query)
    ranking = Ranking(table, rows, query.as_typed(), query.units[0].joined() if len(query.units) == 1 else None)
    for number, rung in enumerate(plan.rungs):
        ranking.add(rows.matches(rung), len(plan.rungs) - 1 - number)
        if request.sort == "relevance" and len(ranking.places) >= needed:
            return Order(plan, ranking.places, number + 1 == len(plan.rungs))
    return Order(plan, newest_first(ranking.places) if request.sort == "newest" else ranking.places, True)


def _wanted(request: SearchRequest) -> Wanted:
    query = parse(request.query)
    agents, scope_paths = tuple(sorted(set(request.agents))), tuple(sorted(set(request.scope_paths)))
    filters = Filters(agents, scope_paths, request.since, query.repos, query.paths)
    bound = identity(query.units, query.typed, filters, request.scope, request.sort)
    return Wanted(request, query, filters, bound)


def _report(plan: Plan, scope: str) -> Dict[str, Any]:
    report: Dict[str, Any] = {"route": plan.route}
    if plan.repaired:
        report["repairedTerms"] = [{"from": word, "to": meant} for word, meant in plan.repaired.items()]
    return {**report, "plannerReport": {**report, "scope": scope}}
