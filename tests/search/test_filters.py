"""Filters and operators: which sessions may answer."""

from __future__ import annotations

from typing import Any, List

import pytest

from relay.search.query import parse
from tests.search.corpus import HOUR, START, Library, add_all, tool, user


@pytest.fixture
def places(library: Library) -> Library:
    """The same word said in several folders by several agents."""
    for name, cwd, agent in (
        ("relay", "/home/dev/relay", "claude"), ("client", "/home/dev/relay/client", "codex"),
        ("relay2", "/home/dev/relay2", "claude"), ("odd", "/srv/50%_Done", "codex"), ("none", None, "gemini"),
        ("windows", "C:\\Users\\Dev\\Relay", "claude"),
    ):  # fmt: skip
        library.add(user("word"), id=name, cwd=cwd, agent=agent)
    return library


@pytest.mark.parametrize(
    "query, expected",
    [
        ("word repo:relay", ["relay", "relay2", "windows"]),
        ("word REPO:Relay2", ["relay2"]),
        ("word repo:client repo:odd", ["client"]),
        ("word repo:50%", ["odd"]),
        ("word repo:%", ["odd"]),
        ("word repo:_", ["odd"]),
        ("word repo:dev", []),
        ("word path:/home/dev/relay", ["relay", "client"]),
        ("word path:/home/dev/relay/", ["relay", "client"]),
        ("word path:/HOME/dev/relay", []),
        ("word path:DEV/relay", ["relay", "client", "relay2", "windows"]),
        ("word path:dev\\relay", ["relay", "client", "relay2", "windows"]),
        ("word path:relay repo:client", ["client"]),
        ('word path:"/srv/50%_Done"', ["odd"]),
        ("word path: repo:''", ["relay", "client", "relay2", "odd", "none", "windows"]),
        ("repo:relay", ["relay", "relay2", "windows"]),
        ("myrepo:relay", []),
        ("path:/", ["relay", "client", "relay2", "odd"]),
    ],
)
def test_operators(places: Library, query: str, expected: List[str]) -> None:
    assert sorted(places.found(query)) == sorted(expected)


@pytest.mark.parametrize(
    "fields, expected",
    [
        ({"agents": ("codex",)}, ["client", "odd"]),
        ({"agents": ("codex", "gemini")}, ["client", "odd", "none"]),
        ({"agents": ("crush",)}, []),
        ({"scope_paths": ("/home/dev/relay",)}, ["relay", "client"]),
        ({"scope_paths": ("/home/dev/relay/", "/srv/")}, ["relay", "client", "odd"]),
        ({"scope_paths": ("/",)}, ["relay", "client", "relay2", "odd"]),
        ({"since": START + 3 * HOUR}, ["relay2", "odd", "none", "windows"]),
        ({"since": START + 3 * HOUR, "agents": ("codex",), "scope_paths": ("/srv",)}, ["odd"]),
    ],
)
def test_filters(places: Library, fields: Any, expected: List[str]) -> None:
    assert sorted(places.found("word", **fields)) == sorted(expected)
    assert sorted(places.found("path:/ word", **fields)) == sorted(set(expected) - {"none", "windows"})


def test_operators_alone_answer_the_newest_without_evidence(places: Library) -> None:
    hits = places.search("path:/home")["hits"]
    assert [hit["sessionId"] for hit in hits] == ["relay2", "client", "relay"]
    assert all(hit["evidence"] is None and hit["score"] == 0 for hit in hits)


@pytest.mark.parametrize("query", ["", "   ", "???", "path:", 'repo:"" path:" "', "\x00", "()"])
def test_neither_text_nor_operators_finds_nothing(places: Library, query: str) -> None:
    answer = places.search(query)
    assert answer["hits"] == [] and answer["page"] == {"cursor": None, "hasMore": False}


def test_operators_never_reach_the_text_search(library: Library) -> None:
    library.add(user("nothing of note"), cwd="/home/dev/relay")
    library.add(user("relay"), cwd="/home/dev/other")
    assert library.found("repo:relay") == ["s1"]
    assert library.found("repo:relay relay") == []


@pytest.mark.parametrize("text", ["https://host/path:8080", "xpath:y", '"say path:x"', "a/repo:b"])
def test_operators_stand_at_the_beginning_of_a_token(text: str) -> None:
    query = parse(text)
    assert not query.paths and not query.repos and query.units


def test_newest_first_puts_sessions_without_a_time_last(library: Library) -> None:
    library.add(user("word"), id="old", updated_at=START)
    library.add(user("word"), id="timeless", updated_at=None)
    library.add(user("word word word"), id="new", updated_at=START + HOUR)
    assert library.found("word", sort="newest") == ["new", "old", "timeless"]
    assert library.search("word", sort="newest")["hits"][2]["updatedAt"] is None


def test_a_hidden_session_stops_answering(library: Library) -> None:
    key = library.add(user("word"))
    add_all(library, ["word"])
    assert len(library.found("word")) == 2
    library.hide(key)
    assert library.found("word") == ["s2"]
    assert library.found("repo:project") == ["s2"]


def test_a_session_that_vanished_between_two_searches_is_gone(library: Library) -> None:
    key = library.add(user("word"))
    assert library.found("repo:project") == ["s1"]
    library.hide(key)
    library.drain()
    add_all(library, ["other"])
    assert library.found("repo:project") == ["s2"]


def test_many_allowed_sessions_are_asked_of_python(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay.search.retrieval._LISTED", 1)
    add_all(library, ["word"] * 4)
    library.add(tool("word"), cwd="/elsewhere")
    assert sorted(library.found("word", scope_paths=("/home",))) == ["s1", "s2", "s3", "s4"]
