"""Which reading of a query is tried, and what each finds."""

from __future__ import annotations

import pytest

from relay.search.query import parse
from tests.search.corpus import Library, add_all, assistant, tool, user


@pytest.mark.parametrize(
    "text",
    [
        '"exact words"', "resolvePath", "resolve_path", "src/terminal", "package.json", "#123",
        "ABC-12", "foo()", "a::b",
        "TypeError", "connection error", "--no-verify", ".env", "C++", "c#", "x -> y", "ENOENT",
    ],
)  # fmt: skip
def test_literal_shapes(text: str) -> None:
    assert parse(text).literal


@pytest.mark.parametrize(
    "text", ["reattach race", "why does it hang", "検索", "état", "Hello", "don't", "well-known", "explain every echo"]
)
def test_prose(text: str) -> None:
    assert not parse(text).literal


def test_a_quoted_phrase_is_found_in_order_only(library: Library) -> None:
    add_all(library, ["the race to reattach", "reattach the race"])
    answer = library.search('"reattach the race"')
    assert answer["debug"]["route"] == "phrase"
    assert [hit["sessionId"] for hit in answer["hits"]] == ["s2"]


def test_literal_words_apart_are_found_by_and(library: Library) -> None:
    add_all(library, ["config.json was read by the loader", "config.json only", "loader only"])
    answer = library.search("config.json loader")
    assert answer["debug"]["route"] == "and"
    assert [hit["sessionId"] for hit in answer["hits"]] == ["s1"]


def test_prose_finds_any_word_and_puts_rows_with_all_of_them_first(library: Library) -> None:
    add_all(library, ["queue", "worker", "the queue of a worker", "worker queue", "neither"])
    answer = library.search("worker queue")
    assert answer["debug"]["route"] == "or"
    found = [hit["sessionId"] for hit in answer["hits"]]
    assert found[:2] == ["s4", "s3"]
    assert sorted(found[2:]) == ["s1", "s2"]


def test_scores_fall_from_hit_to_hit(library: Library) -> None:
    add_all(library, ["queue", "worker", "the queue of a worker", "worker queue", "neither"])
    scores = [hit["score"] for hit in library.search("worker queue")["hits"]]
    assert scores == sorted(scores, reverse=True)


def test_the_report_says_what_ran(library: Library) -> None:
    add_all(library, ["reattach the terminal", "reattach it again"])
    assert library.search("reatach terminal", scope="conversation")["debug"] == {
        "route": "typo+or",
        "repairedTerms": [{"from": "reatach", "to": "reattach"}],
        "plannerReport": {
            "route": "typo+or",
            "repairedTerms": [{"from": "reatach", "to": "reattach"}],
            "scope": "conversation",
        },
    }
    assert "debug" not in library.search("terminal", debug=False)


def test_a_misspelt_phrase_is_repaired_and_tried_again(library: Library) -> None:
    add_all(library, ["src/terminal/path.rs", "src/terminal/path.rs again"])
    assert library.search("src/terminl/path.rs")["debug"]["route"] == "typo+phrase"


def test_a_word_of_one_row_is_not_proposed(library: Library) -> None:
    add_all(library, ["reattach"])
    assert library.found("reatach") == []
    add_all(library, ["reattach"])
    assert library.found("reatach") == ["s2", "s1"]


def test_repair_sees_live_rows_alone(library: Library) -> None:
    keys = [library.add(user("reattach")) for _ in range(2)]
    library.hide(keys[0])
    assert library.found("reatach") == []


def test_repair_keeps_to_the_scope_and_the_filters(library: Library) -> None:
    library.add(tool("reattach"), cwd="/a")
    library.add(tool("reattach"), cwd="/a")
    assert library.found("reatach", scope="conversation") == []
    assert library.found("reatach", scope_paths=("/b",)) == []
    assert len(library.found("reatach", scope_paths=("/a",))) == 2


def test_a_word_somebody_wrote_is_never_repaired(library: Library) -> None:
    add_all(library, ["reattach", "reattach", "reatach"])
    assert library.found("reatach") == ["s3"]


def test_swapped_letters_are_likelier_than_changed_ones(library: Library) -> None:
    add_all(library, ["form", "form", "farm", "farm", "farm"])
    assert library.search("from")["debug"]["repairedTerms"] == [{"from": "from", "to": "form"}]


def test_half_a_name_is_completed(library: Library) -> None:
    add_all(library, ["resolveTerminalPath", "call resolveTerminalPath"])
    answer = library.search("resolveTermi")
    assert answer["debug"]["repairedTerms"] == [{"from": "resolvetermi", "to": "resolveterminalpath"}]
    assert len(answer["hits"]) == 2


def test_two_slips_in_a_long_word(library: Library) -> None:
    add_all(library, ["synchronization", "synchronization"])
    assert len(library.found("synchronistaion")) == 2


def test_tool_text_is_for_scope_all_alone(library: Library) -> None:
    library.add(user("look"), tool("cat getHostName secretword --no-pager"), assistant("done"))
    for query in ("secretword", "getHostName", "host name", "--no-pager"):
        assert library.found(query) == ["s1"]
        assert library.found(query, scope="conversation") == []


def test_roles_of_neither_person_nor_agent_count_as_tools(library: Library) -> None:
    library.add(("system", "compacted words"), ("unknown", "odd words"))
    assert library.found("compacted") == ["s1"]
    assert library.search("odd")["hits"][0]["evidence"]["role"] == "unknown"
    assert library.found("compacted", scope="conversation") == []
