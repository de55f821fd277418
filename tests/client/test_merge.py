"""Merged pages: nothing lost, nothing twice, newest first; and what is no merged cursor."""

from __future__ import annotations

import base64
import json
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.client import fanout, merge
from relay.client.faults import ConnectionLost, TimedOut, UnknownHost
from relay.contract.fields import epoch_ms
from relay.contract.requests import SearchRequest
from tests.client.fake_agent import hit, results

ASK = SearchRequest(query="word", limit=3)


class Index:
    """A host in this process: pages over fixed hits, or whatever ``answers`` gives, one answer after the other."""

    def __init__(self, host_id, hits=(), answers=None):
        self.id = self.name = host_id
        self.hits = hits
        self.answers = answers
        self.requests = []
        self.closed = threading.Event()

    def search(self, request, timeout):
        self.requests.append(request)
        if self.answers is not None:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer() if callable(answer) else answer
        start = int(request.cursor or 0)
        end = start + request.limit
        return results(list(self.hits[start:end]), str(end) if end < len(self.hits) else None)

    def status(self, timeout):
        raise NotImplementedError

    def close(self):
        self.closed.set()


def at(minute):
    return f"2026-03-01T09:{minute:02d}:00.000Z"


def gone(host_id):
    return UnknownHost(f"{host_id} is gone")


def ask(hosts, request=ASK, **options):
    return fanout.search(hosts, gone, request, **options)


def ids(response):
    return [hit["sessionId"] for hit in response["hits"]]


def all_pages(hosts, limits):
    """Every page of a merged search, page sizes as given (the last one goes on)."""
    pages, cursor = [], None
    while True:
        limit = limits[min(len(pages), len(limits) - 1)]
        response = ask(hosts, SearchRequest(query="word", limit=limit, cursor=cursor)).response
        assert len(response["hits"]) <= limit
        pages.append(response["hits"])
        cursor = response["page"]["cursor"]
        assert response["page"]["hasMore"] == (cursor is not None)
        if cursor is None:
            return pages


moments = st.one_of(st.none(), st.integers(0, 6).map(at), st.just("2026-03-01T10:03:00+01:00"))


def age(updated):
    return -epoch_ms(updated) if updated else float("inf")


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.tuples(st.lists(moments, max_size=9), st.booleans()), min_size=1, max_size=4),
    st.lists(st.integers(1, 7), min_size=1, max_size=3),
)
def test_paging_loses_no_hit_and_repeats_none(legs, limits):
    hosts = []
    for place, (updated, sorts) in enumerate(legs):
        hits = [hit(f"{place}-{number}", moment) for number, moment in enumerate(updated)]
        if sorts:  # a host that does not sort must not cost a hit either
            hits.sort(key=lambda one: age(one["updatedAt"]))
        hosts.append(Index("local" if place == 0 else f"ssh:box{place}", hits))
    pages = all_pages(hosts, limits)
    found = [(one["executionHostId"], one["sessionId"]) for page in pages for one in page]
    assert sorted(found) == sorted((host.id, one["sessionId"]) for host in hosts for one in host.hits)
    for page in pages:
        assert [age(one["updatedAt"]) for one in page] == sorted(age(one["updatedAt"]) for one in page)
    if all(sorts for _, sorts in legs):
        assert [age(one["updatedAt"]) for page in pages for one in page] == sorted(
            age(one["updatedAt"]) for host in hosts for one in host.hits
        )


def test_a_page_takes_the_newest_of_all():
    one = Index("local", [hit("a", at(9)), hit("b", at(5)), hit("c", None)])
    two = Index("ssh:box", [hit("d", at(8)), hit("e", at(7))])
    response = ask([one, two]).response
    assert ids(response) == ["session-a", "session-d", "session-e"]
    assert [hit["executionHostId"] for hit in response["hits"]] == ["local", "ssh:box", "ssh:box"]
    assert response["hosts"] == [
        {"executionHostId": "local", "outcome": "results"},
        {"executionHostId": "ssh:box", "outcome": "results"},
    ]
    # local was cut behind its first hit, so it was asked again for just that one
    assert [request.limit for request in one.requests] == [3, 1]
    assert [request.limit for request in two.requests] == [3]
    assert merge.decode_cursor(response["page"]["cursor"]) == {"local": "1"}


def test_a_host_with_nothing_on_the_page_keeps_its_place():
    one = Index("local", [hit(number, at(50 - number)) for number in range(6)])
    two = Index("ssh:box", [hit("old", at(1))])
    response = ask([one, two]).response
    assert merge.decode_cursor(response["page"]["cursor"]) == {"local": "3", "ssh:box": ""}
    assert len(two.requests) == 1
    following = ask([one, two], SearchRequest(query="word", limit=5, cursor=response["page"]["cursor"])).response
    assert ids(following) == ["session-3", "session-4", "session-5", "session-old"]
    assert following["page"] == {"cursor": None, "hasMore": False}


def test_every_host_is_asked_for_its_newest_without_a_report():
    host = Index("local", [hit(1)])
    ask([host], SearchRequest(query="word", sort="relevance", debug=True, freshness="wait-until-current"))
    assert (host.requests[0].sort, host.requests[0].debug) == ("newest", False)
    assert host.requests[0].freshness == "wait-until-current"


def test_flags_are_merged():
    one, two = results([hit(1)]), results([hit(2)])
    one["truncated"] = {"candidates": True, "snippets": 2, "query": False, "freshness": False}
    two["truncated"] = {"candidates": False, "snippets": 3, "query": False, "freshness": True}
    two["generation"] = 99
    response = ask([Index("local", answers=[one]), Index("ssh:box", answers=[two])]).response
    assert response["truncated"] == {"candidates": True, "snippets": 5, "query": False, "freshness": True}
    assert response["generation"] == 7
    assert "debug" not in response


def test_the_wait_for_freshness_is_not_repeated_and_not_forgotten():
    waited = results([hit(number, at(9 - number)) for number in range(3)])
    waited["truncated"]["freshness"] = True
    one = Index("local", answers=[waited, results([hit(0, at(9))], "next")])
    two = Index("ssh:box", [hit("new", at(30)), hit("newer", at(31))])
    response = ask([one, two], SearchRequest(query="word", limit=3, freshness="wait-until-current")).response
    assert [request.freshness for request in one.requests] == ["wait-until-current", "indexed"]
    assert response["truncated"]["freshness"]


def test_no_answer_fails_the_others():
    refused = {"kind": "unavailable", "reason": "disabled"}
    legs = [
        Index("local", [hit(1)]),
        Index("ssh:off", answers=[refused]),
        Index("ssh:dead", answers=[ConnectionLost("gone")]),
        Index("ssh:broken", answers=[RuntimeError("a fault of ours")]),
        Index("ssh:moved", answers=[{"kind": "stale-cursor", "generation": 3}] * 2),
        Index("ssh:odd", answers=[{"kind": "malformed-cursor"}]),
    ]
    merged = ask(legs)
    assert ids(merged.response) == ["session-1"]
    assert [leg["outcome"] for leg in merged.response["hosts"]] == [
        "results", "unavailable", "unreachable", "unreachable", "stale-cursor", "malformed-cursor",
    ]  # fmt: skip
    assert set(merged.faults) == {"ssh:dead", "ssh:broken"}


def test_a_first_page_that_the_index_outran_is_asked_once_more():
    host = Index("ssh:box", answers=[{"kind": "stale-cursor", "generation": 3}, results([hit(1)])])
    assert ids(ask([host]).response) == ["session-1"]


def test_a_host_that_cannot_be_asked_again_comes_on_the_next_page():
    one = Index("local", answers=[results([hit("a", at(9)), hit("b", at(1))]), TimedOut("slow")])
    two = Index("ssh:box", [hit("d", at(8)), hit("e", at(7))])
    merged = ask([one, two])
    assert ids(merged.response) == ["session-d", "session-e"]
    assert merged.response["hosts"][0]["outcome"] == "unreachable"
    assert merge.decode_cursor(merged.response["page"]["cursor"]) == {"local": ""}


def test_an_index_that_moves_between_the_questions_keeps_page_and_cursor_together():
    one = Index(
        "local", answers=[results([hit("a", at(9)), hit("b", at(1))]), results([hit("new", at(20))], "behind-new")]
    )
    two = Index("ssh:box", [hit("d", at(8)), hit("e", at(7))])
    response = ask([one, two]).response
    assert ids(response) == ["session-new", "session-d", "session-e"]
    assert merge.decode_cursor(response["page"]["cursor"]) == {"local": "behind-new"}


def test_a_host_that_is_gone_is_unreachable():
    cursor = merge.encode_cursor({"ssh:old": "4", "local": "0"})
    merged = ask([Index("local", [hit(1)]), Index("ssh:new", [hit(2)])], SearchRequest(query="word", cursor=cursor))
    assert merged.response["hosts"] == [
        {"executionHostId": "ssh:old", "outcome": "unreachable"},
        {"executionHostId": "local", "outcome": "results"},
    ]
    assert "gone" in str(merged.faults["ssh:old"])


def test_a_host_that_hangs_is_left_behind_and_closed():
    release = threading.Event()
    slow = Index("ssh:slow", answers=[release.wait])
    merged = ask([slow, Index("local", [hit(1)])], timeout=0.3)
    release.set()
    assert ids(merged.response) == ["session-1"]
    assert isinstance(merged.faults["ssh:slow"], TimedOut)
    assert slow.closed.wait(5)


def test_a_cursor_too_long_to_keep_is_refused():
    merged = ask([Index("ssh:big", answers=[results([hit(1)], "x" * 20000)])])
    assert merged.response["hosts"][0]["outcome"] == "unreachable"
    assert merged.response["hits"] == []


def test_only_so_many_are_asked_at_once():
    running, most, lock = [0], [0], threading.Lock()
    release = threading.Event()

    def slow():
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
            if running[0] == 3:
                release.set()
        release.wait(5)
        with lock:
            running[0] -= 1
        return results([])

    hosts = [Index(f"ssh:{number}", answers=[slow]) for number in range(9)]
    outcomes = fanout.ask(hosts, lambda host, limit: host.search(ASK, limit), 10, at_once=3)
    assert [outcome.host_id for outcome in outcomes] == [host.id for host in hosts]
    assert most[0] == 3


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "%%%",
        "é",
        "abc",
        base64.urlsafe_b64encode(b"{}").decode(),
        base64.urlsafe_b64encode(b"[]").decode(),
        base64.urlsafe_b64encode(b'{"local": 1}').decode(),
        base64.urlsafe_b64encode(b'{"all": "x"}').decode(),
        base64.urlsafe_b64encode(b'{"box": "x"}').decode(),
        base64.urlsafe_b64encode(b'{"ssh:a@b": "x", "ssh:a%40b": "y"}').decode(),
        base64.urlsafe_b64encode(b"[" * 100000).decode(),
        "a" * (2 << 20),
    ],
)
def test_what_is_no_merged_cursor(cursor):
    host = Index("local", [hit(1)])
    assert ask([host], SearchRequest(query="word", cursor=cursor)).response == {"kind": "malformed-cursor"}
    assert host.requests == []


@given(st.text(max_size=60))
def test_no_text_breaks_the_reading_of_a_cursor(text):
    try:
        merge.decode_cursor(text)
    except merge.MalformedCursor:
        pass


@given(st.dictionaries(st.text("abc@:é %", min_size=1, max_size=8), st.text(max_size=20), min_size=1, max_size=4))
def test_a_cursor_reads_back(names):
    cursors = {"local": "x"}
    for name, cursor in names.items():
        if name == name.strip():
            cursors[str(merge.parse("runtime:x")._replace(name=name))] = cursor
    assert merge.decode_cursor(merge.encode_cursor(cursors)) == cursors
    json.loads(base64.urlsafe_b64decode(merge.encode_cursor(cursors) + "==="))
