"""Snippets: some words around the best match, marks whole and never forged, real text only."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.search.query import parse
from relay.search.snippet import LONGEST, snippet


def cut(text: str, query: str) -> str:
    """The snippet of a text for a query."""
    return snippet(text, parse(query).units)[0]


@pytest.mark.parametrize(
    "text, query, expected",
    [
        ("the race to reattach", "reattach race", "the [[race]] to [[reattach]]"),
        ("see resolveTerminalPath()", "terminal path", "see resolve[[TerminalPath]]()"),
        ("see resolveTerminalPath()", "resolveTerminalPath", "see [[resolveTerminalPath]]()"),
        ("a TERMINAL_PATH b", "terminal path", "a [[TERMINAL]]_[[PATH]] b"),
        ("a TERMINAL_PATH b", "terminalPath", "a [[TERMINAL_PATH]] b"),
        ("in src/terminal/path.rs:10", "src/terminal/path.rs", "in [[src/terminal/path.rs]]:10"),
        ("café au lait", "cafe", "[[café]] au lait"),
        ("cafe\u0301 au lait", "café", "[[cafe\u0301]] au lait"),
        ("die Straße", "STRASSE", "die [[Straße]]"),
        ("使用React框架", "react", "使用[[React]]框架"),
        ("日本語の検索を改善", "検索", "日本語の[[検索]]を改善"),
        ("ﾊﾟｿｺﾝを使う", "パソコン", "[[ﾊﾟｿｺﾝ]]を使う"),
        ("C++ and C", "C++", "[[C++]] and C"),
        ("git commit --no-verify -m x", "--no-verify", "git commit [[--no-verify]] -m x"),
        ("a->b", "->", "a[[->]]b"),
        ("raced racer race", "race", "raced racer [[race]]"),
        ("line one\nrace\t\tline", "race", "line one [[race]] line"),
    ],
)
def test_marks(text: str, query: str, expected: str) -> None:
    assert cut(text, query) == expected


def test_about_twelve_words_around_the_best_match() -> None:
    words = [f"w{number}" for number in range(200)]
    words[20], words[100], words[101] = "race", "reattach", "race"
    shown = cut(" ".join(words), "reattach race")
    assert "[[reattach]] [[race]]" in shown
    assert shown.startswith("…w9") and shown.endswith("…")
    assert 10 <= len(shown.split()) <= 14


def test_brackets_of_the_text_are_no_marks() -> None:
    assert cut("if [[ -f race ]]; then", "race") == "if [ [ -f [[race]] ] ]; then"
    assert cut("a[race]", "race") == "a[ [[race]] ]"
    assert cut("[[race]]", "race") == "[ [ [[race]] ] ]"


def test_nothing_found_shows_the_beginning() -> None:
    assert snippet("words of no interest", parse("race").units) == ("words of no interest", False)


def test_long_words_and_runs_stay_within_the_limit() -> None:
    assert len(cut("x" * 4000 + " race " + "y" * 4000, "race")) <= LONGEST
    assert "[[検索]]" in cut("字" * 4000 + "検索" + "字" * 4000, "検索")
    assert len(cut("word " * 4000, '"' + "word " * 48 + '"')) <= LONGEST


PIECES = [
    "race",
    "reattach",
    "raceTrack",
    "[",
    "]",
    "[[",
    "]]",
    " ",
    "\n",
    "é",
    "e\u0301",
    "検",
    "索",
    "\x00",
    "C++",
    "🚀",
    "x" * 90,
]


@given(
    st.lists(st.sampled_from(PIECES), max_size=60).map("".join),
    st.sampled_from(["race", "検索", "C++ race", "reattach race"]),
)
def test_any_text_keeps_its_marks_whole_and_its_words_real(text: str, query: str) -> None:
    shown = cut(text, query)
    assert len(shown) <= LONGEST
    assert re.fullmatch(r"(?:(?!\[\[|\]\]).|\[\[(?:(?!\[\[|\]\]).)+\]\])*", shown), shown
    plain = re.sub(r"[\s\x00\[\]]", "", shown).strip("…")
    assert plain in re.sub(r"[\s\x00\[\]]", "", text)
