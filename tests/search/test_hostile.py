"""Queries made to hurt: an answer each time, nothing injected, bounded work."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay.contract.responses import parse_response
from relay.search.query import MOST_CHARACTERS, MOST_TERMS, parse
from tests.search.corpus import Library, add_all, tool, user

QUERIES = [
    "reattach " * 120_000, "()[]{}!?" * 90, '"', '""', '"""', '"unclosed', "NEAR(a b, 2)",
    "user : word", "{user} : word", "^word",
    "word*", "word AND", "OR", "NOT word", "word) OR (word", "'; DROP TABLE words; --", "\x00",
    "a\x00b", "\ud800", "\udfff word",
    "\u202eword", "\u200b\u200d", "👩\u200d💻\U0001f3fd" * 60, "%", "_", "\\", "a" * 600, "字" * 600,
    "(a+)+$" * 80, "aB" * 250,
    "/a" * 250, "repo:" * 100, 'path:"' * 80, " ".join(f"w{n}" for n in range(100)), "\ue02d\ue02dno", "\ue000",
]  # fmt: skip


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
@pytest.mark.parametrize("scope", ["all", "conversation"])
def test_hostile_queries_are_answered(library: Library, query: str, scope: str) -> None:
    add_all(library, ["word reattach", "字字字", "a b c"])
    library.add(tool("word DROP TABLE words"))
    answer = library.search(query, scope=scope)
    assert answer["kind"] == "results"
    assert parse_response(answer)["hits"] == answer["hits"]
    assert sorted(library.found("word")) == ["s1", "s4"]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(query=st.text(max_size=60) | st.text(alphabet="\"*():^-+{}[]AB NOT~\\'/.#@", max_size=60))
def test_any_text_is_answered(library: Library, query: str) -> None:
    if library.index.connection.execute("SELECT count(*) FROM sessions").fetchone()[0] == 0:
        add_all(library, ["word A B", "NOT (AB)", "x*y"])
    assert library.search(query)["kind"] == "results"


def test_a_column_name_is_a_word(library: Library) -> None:
    library.add(user("user word"))
    library.add(tool("tool word"))
    assert library.found("tool : word", scope="conversation") == ["s1"]


def test_long_queries_are_cut_and_say_so(library: Library) -> None:
    add_all(library, ["word"])
    assert library.search("word " * 500)["truncated"]["query"]
    assert library.search("x" * (MOST_CHARACTERS + 1))["truncated"]["query"]
    assert library.search(" ".join("abcdefghij"[n % 10] for n in range(MOST_TERMS + 1)))["truncated"]["query"]
    assert not library.search(" ".join("abcdefghij"[n % 10] for n in range(MOST_TERMS)))["truncated"]["query"]
    assert not library.search("x" * MOST_CHARACTERS)["truncated"]["query"]


def test_a_quoted_text_of_too_many_words_is_cut(library: Library) -> None:
    query = parse('"' + "a " * 60 + '"')
    assert query.cut and len(query.units[0].words) == MOST_TERMS


def test_the_commonest_words_are_left_aside_when_all_are_too_many(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relay.search.planner.RANKED_POSTINGS", 4)
    add_all(library, ["common rare"] + ["common"] * 9)
    answer = library.search("common rare nothere here")
    assert answer["truncated"]["candidates"]
    assert [hit["sessionId"] for hit in answer["hits"]] == ["s1"]


def test_repair_does_bounded_work(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay.search.repair.MOST_PROBES", 10)
    add_all(library, ["reattach", "reattach"])
    assert library.search(" ".join(f"qqqzz{n}xx" for n in range(48)))["hits"] == []
