"""Pages: whole, without repetition, fenced by generation and incarnation, closed to forged cursors."""

from __future__ import annotations

import base64
import json
import threading
from pathlib import Path
from typing import Any, Dict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay.contract.requests import SearchRequest
from relay.search.cursor import Cursor, MalformedCursor, decode, encode
from relay.search.engine import Engine
from tests.search.corpus import Library, add_all, user


def forged(cursor: str, **changes: Any) -> str:
    """The cursor with values changed."""
    value = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    return base64.urlsafe_b64encode(json.dumps({**value, **changes}).encode()).rstrip(b"=").decode()


@pytest.fixture
def many(library: Library) -> Library:
    """Thirty sessions: ten say both words, twenty one of them."""
    add_all(library, ["queue worker"] * 10 + ["queue", "worker"] * 10)
    return library


@pytest.mark.parametrize("limits", [(1,), (7,), (3, 5, 1), (100,), (29,), (30,), (31,)])
@pytest.mark.parametrize("sort", ["relevance", "newest"])
def test_every_hit_once_whatever_the_page_size(many: Library, limits: Any, sort: str) -> None:
    whole = many.found("queue worker", limit=100, sort=sort)
    assert len(whole) == 30
    assert many.all_pages("queue worker", limits, sort=sort) == whole
    fresh = Engine(many.path)  # pages of an engine that never saw the first one
    cursor = many.search("queue worker", limit=9, sort=sort)["page"]["cursor"]
    answer = fresh.search(SearchRequest("queue worker", limit=9, sort=sort, cursor=cursor))
    assert [hit["sessionId"] for hit in answer["hits"]] == whole[9:18]
    fresh.close()


def test_pages_of_operators_alone(many: Library) -> None:
    whole = many.found("repo:project", limit=100)
    assert whole == [f"s{number}" for number in range(30, 0, -1)]
    assert many.all_pages("repo:project", (4,)) == whole


def test_the_last_page_has_no_cursor(many: Library) -> None:
    assert many.search("queue worker", limit=30)["page"] == {"cursor": None, "hasMore": False}
    assert many.search("queue worker", limit=29)["page"]["hasMore"]


def test_a_write_makes_the_cursor_stale(many: Library) -> None:
    cursor = many.search("queue", limit=5)["page"]["cursor"]
    add_all(many, ["elsewhere"])
    for _ in range(2):
        answer = many.search("queue", limit=5, cursor=cursor)
        assert answer == {"kind": "stale-cursor", "generation": 31, "expectedGeneration": 30}


def test_draining_is_no_change(many: Library) -> None:
    many.hide(1)
    cursor = many.search("queue", limit=5)["page"]["cursor"]
    many.drain()
    assert many.search("queue", limit=5, cursor=cursor)["kind"] == "results"


def test_a_rebuilt_index_refuses_a_cursor_of_the_same_generation(tmp_path: Path) -> None:
    libraries = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        libraries.append(Library(tmp_path / name))
        add_all(libraries[-1], ["queue"] * 3)
    one, two = libraries
    cursor = one.search("queue", limit=1)["page"]["cursor"]
    assert two.search("queue", limit=1, cursor=cursor) == {
        "kind": "stale-cursor", "generation": 3, "expectedGeneration": 3,
    }  # fmt: skip
    one.close()
    two.close()


def test_a_cursor_without_an_incarnation_is_stale(many: Library) -> None:
    cursor = many.search("queue", limit=1)["page"]["cursor"]
    assert many.search("queue", limit=1, cursor=forged(cursor, i=None))["kind"] == "stale-cursor"


@pytest.mark.parametrize(
    "other",
    [{"query": "worker"}, {"scope": "conversation"}, {"sort": "newest"}, {"agents": ("claude",)},
     {"scope_paths": ("/home",)}, {"since": 5}],
)  # fmt: skip
def test_a_cursor_of_another_search_is_malformed(many: Library, other: Dict[str, Any]) -> None:
    cursor = many.search("queue", limit=1)["page"]["cursor"]
    fields = {"query": "queue", **other}
    assert many.search(limit=1, cursor=cursor, **fields) == {"kind": "malformed-cursor"}


def test_the_order_of_names_and_folders_does_not_matter(many: Library) -> None:
    one = {"agents": ("claude", "codex"), "scope_paths": ("/home", "/srv")}
    other = {"agents": ("codex", "claude", "codex"), "scope_paths": ("/srv", "/home")}
    cursor = many.search("queue", limit=1, **one)["page"]["cursor"]
    assert many.search("queue", limit=2, cursor=cursor, **other)["kind"] == "results"


@pytest.mark.parametrize("changes", [{"o": -1}, {"o": 1.5}, {"o": True}, {"o": "1"}, {"o": 0}, {"g": -3}, {"g": 0.5},
                                     {"g": None}, {"q": "x"}, {"i": 7}, {"o": 10**400}])  # fmt: skip
def test_forged_cursors_are_malformed(many: Library, changes: Dict[str, Any]) -> None:
    cursor = many.search("queue", limit=1)["page"]["cursor"]
    assert many.search("queue", limit=1, cursor=forged(cursor, **changes)) == {"kind": "malformed-cursor"}


@given(st.text() | st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_no_text_breaks_the_reader(text: str) -> None:
    with pytest.raises(MalformedCursor):
        decode(text, "query")


@given(st.text(max_size=12), st.text(max_size=12), st.integers(0, 2**53 - 1), st.integers(1, 2**53 - 1))
def test_a_cursor_comes_back(query: str, incarnation: str, generation: int, offset: int) -> None:
    cursor = Cursor(query, incarnation, generation, offset)
    assert decode(encode(cursor), query) == cursor


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.sampled_from(["queue", "worker", "queue worker", "other"]), min_size=1, max_size=12), st.integers(1, 4)
)
def test_pages_of_any_corpus(tmp_path_factory: pytest.TempPathFactory, texts: "list[str]", limit: int) -> None:
    library = Library(tmp_path_factory.mktemp("pages"))
    add_all(library, texts)
    whole = library.found("queue worker", limit=100)
    assert library.all_pages("queue worker", (limit, 2)) == whole
    assert sorted(whole) == sorted(f"s{n}" for n, text in enumerate(texts, 1) if text != "other")
    library.close()


def test_pages_beside_a_writer_are_whole_or_refused(many: Library) -> None:
    """Within a generation nothing is missed or told twice, however often the index moves between two pages."""
    done = threading.Event()
    walks = []

    def read() -> None:
        while not done.is_set():
            found, cursor = [], None
            while True:
                answer = many.search("queue", limit=4, cursor=cursor)
                if answer["kind"] != "results":
                    assert answer["kind"] == "stale-cursor"
                    break
                found += [hit["sessionId"] for hit in answer["hits"]]
                cursor = answer["page"]["cursor"]
                if cursor is None:
                    walks.append((answer["generation"], found))
                    break

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for _ in range(60):
            many.add(user("queue"))
    finally:
        done.set()
        thread.join()
    read_again = many.found("queue", limit=100)
    assert len(read_again) == 80
    for generation, found in walks:
        assert len(found) == len(set(found)) == 20 + generation - 30
