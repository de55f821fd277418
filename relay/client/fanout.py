"""The scope ``all``: every host is asked at once under its own time limit, and none can hold up or fail the rest."""

from __future__ import annotations

import dataclasses
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from relay.client import merge
from relay.client.deadline import Deadline
from relay.client.faults import ClientFault, ProtocolFault, TimedOut
from relay.contract.requests import SearchRequest
from relay.contract.responses import malformed_cursor

#: Seconds for one host's answer; within 10 s with what follows it.
LEG_TIMEOUT = 7.5
#: Seconds that are always left for asking a host again, over the connection that stands.
AGAIN_TIMEOUT = 1.0
#: Hosts asked at the same time; more wait for a place.
AT_ONCE = 64
_LONGEST_CURSOR = 16 << 10


class Askable(Protocol):
    """A host as the fan-out sees it; ``close`` may be called while another thread waits in a question."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...

    def search(self, request: SearchRequest, timeout: float) -> dict[str, Any]: ...

    def status(self, timeout: float) -> dict[str, Any]: ...

    def close(self) -> None: ...


class Outcome(NamedTuple):
    """What came of asking one host: its answer, or the fault that stood in the way."""

    host_id: str
    answer: dict[str, Any] | None
    fault: ClientFault | None
    seconds: float


#: Told of every host's outcome as it comes.
Progress = Callable[[Outcome], None]


class Merged(NamedTuple):
    """A merged answer, and why a host is not in it, by host id: the fault, or the reason it is unavailable for."""

    response: dict[str, Any]
    faults: dict[str, ClientFault]
    reasons: dict[str, str]


def outcome_of(host: Askable, question: Callable[[Any, float], dict[str, Any]], timeout: float) -> Outcome:
    """What comes of putting ``question`` to one host, in this thread; never raises for a reason that is the host's."""
    started = time.monotonic()
    answer: dict[str, Any] | None = None
    fault: ClientFault | None = None
    try:
        answer = question(host, timeout)
    except ClientFault as raised:
        fault = raised
    except Exception as error:  # a fault of ours in one host's leg must not cost the others their answer
        fault = ProtocolFault(f"Asking {host.name} failed inside ({type(error).__name__}).")
    return Outcome(host.id, answer, fault, time.monotonic() - started)


def ask(
    hosts: Sequence[Any],
    question: Callable[[Any, float], dict[str, Any]],
    timeout: float,
    progress: Progress | None = None,
    at_once: int = AT_ONCE,
) -> list[Outcome]:
    """Put ``question`` to every host in a thread of its own; outcomes in the order of ``hosts``.

    A host has ``timeout`` seconds from its start, whatever it does: then it is closed and its thread left behind.
    """
    waiting = deque(enumerate(hosts))
    running: dict[int, Deadline] = {}
    outcomes: dict[int, Outcome] = {}
    answered: queue.SimpleQueue[tuple[int, Outcome]] = queue.SimpleQueue()

    def run(place: int, host: Askable) -> None:
        answered.put((place, outcome_of(host, question, timeout)))

    def settle(place: int, outcome: Outcome) -> None:
        del running[place]
        outcomes[place] = outcome
        if progress:
            progress(outcome)

    while waiting or running:
        while waiting and len(running) < at_once:
            place, host = waiting.popleft()
            running[place] = Deadline(timeout)
            threading.Thread(target=run, args=(place, host), name=f"relay-ask-{host.id}", daemon=True).start()
        try:
            place, outcome = answered.get(timeout=min(deadline.left() for deadline in running.values()))
            if place in running:  # else it came too late
                settle(place, outcome)
        except queue.Empty:
            for place in [place for place, deadline in running.items() if not deadline.left()]:
                close_behind(hosts[place])
                fault = TimedOut(f"{hosts[place].name} did not answer within {timeout:g} s.")
                settle(place, Outcome(hosts[place].id, None, fault, timeout))
    return [outcomes[place] for place in range(len(hosts))]


def close_behind(host: Askable) -> threading.Thread:
    """Close a host in a thread of its own, which is not waited for."""
    thread = threading.Thread(target=host.close, name=f"relay-close-{host.id}", daemon=True)
    thread.start()
    return thread


def close_all(hosts: Sequence[Askable], timeout: float = 1.0) -> None:
    """Close every host at once, waiting at most ``timeout`` seconds in all."""
    deadline = Deadline(timeout)
    for thread in [close_behind(host) for host in hosts]:
        thread.join(deadline.left())


def search(
    hosts: Sequence[Askable],
    gone: Callable[[str], ClientFault],
    request: SearchRequest,
    progress: Progress | None = None,
    timeout: float = LEG_TIMEOUT,
) -> Merged:
    """Search every host, or those a merged cursor names, and merge; the hosts stay open.

    ``gone`` gives the fault of a host in the cursor that is not among ``hosts``. Every host is asked for its newest
    hits, since scores of different indexes do not compare, and for no debug report.
    """
    started = time.monotonic()
    end = Deadline(timeout + AGAIN_TIMEOUT)
    cursors: dict[str, str | None]
    if request.cursor is None:
        cursors = {host.id: None for host in hosts}
    else:
        try:
            cursors = {host_id: cursor or None for host_id, cursor in merge.decode_cursor(request.cursor).items()}
        except merge.MalformedCursor:
            return Merged(malformed_cursor(), {}, {})
    request = dataclasses.replace(request, sort="newest", debug=False)
    asked = [host for host in hosts if host.id in cursors]
    by_id = {host.id: host for host in asked}

    def first(host: Askable, limit: float) -> dict[str, Any]:
        deadline = Deadline(limit)
        own = dataclasses.replace(request, cursor=cursors[host.id])
        answer = _searched(host, own, deadline.left())
        if answer["kind"] == "stale-cursor" and own.cursor is None:  # the index moved meanwhile; once more is enough
            answer = _searched(host, own, deadline.left())
        return answer

    outcomes = {outcome.host_id: outcome for outcome in ask(asked, first, timeout, progress)}
    faults = {host_id: outcome.fault for host_id, outcome in outcomes.items() if outcome.fault}
    faults.update({host_id: gone(host_id) for host_id in cursors if host_id not in by_id})
    legs = [
        merge.Leg(host_id, cursor, outcomes[host_id].answer if host_id in outcomes else None)
        for host_id, cursor in cursors.items()
    ]
    shown = merge.cut(legs, request.limit)
    kept: dict[str, str] = {}
    again: dict[str, int] = {}
    for leg, count in zip(legs, shown):
        if leg.hits and count == 0:
            kept[leg.host_id] = leg.cursor or merge.FIRST_PAGE
        elif count < len(leg.hits):
            again[leg.host_id] = count

    def shorter(host: Askable, limit: float) -> dict[str, Any]:
        # The wait for freshness was for the first question; this one asks for the same page's beginning.
        own = dataclasses.replace(request, cursor=cursors[host.id], limit=again[host.id], freshness="indexed")
        return _searched(host, own, limit)

    for outcome in ask([by_id[host_id] for host_id in again], shorter, max(AGAIN_TIMEOUT, end.left())):
        place = list(cursors).index(outcome.host_id)
        before = legs[place].response
        if outcome.fault:
            # Without a cursor behind them its hits would come again: none is shown, and the next page asks it anew.
            faults[outcome.host_id] = outcome.fault
            kept[outcome.host_id] = legs[place].cursor or merge.FIRST_PAGE
        # What the host says now is what its cursor follows, also when its index moved in between.
        legs[place] = legs[place]._replace(response=_waited(before, outcome.answer))
        shown[place] = len(legs[place].hits)
    reasons = {leg.host_id: leg.response["reason"] for leg in legs if leg.response and "reason" in leg.response}
    return Merged(merge.page(legs, shown, kept, round((time.monotonic() - started) * 1000)), faults, reasons)


def _searched(host: Askable, request: SearchRequest, timeout: float) -> dict[str, Any]:
    answer = host.search(request, timeout)
    if answer["kind"] == merge.RESULTS and len(answer["page"]["cursor"] or "") > _LONGEST_CURSOR:
        raise ProtocolFault(f"{host.name} gave a cursor that is too long to keep.")
    return answer


def _waited(first: Any, again: dict[str, Any] | None) -> dict[str, Any] | None:
    """The second answer, which still says that the first one's wait for freshness ran out."""
    if again is None or again["kind"] != merge.RESULTS or not first["truncated"]["freshness"]:
        return again
    return {**again, "truncated": {**again["truncated"], "freshness": True}}
