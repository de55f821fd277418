"""How text is spelled in the index: folding, scripts without spaces, identifiers, symbols."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.index import opening, schema
from relay.index.words import GAP, TOKEN_CAP, columns, further, spell, symbol, tokens
from relay.search.retrieval import ROW_BITS


@pytest.mark.parametrize(
    "one, other",
    [
        ("café", "cafe"), ("ÜBER", "uber"), ("Straße", "STRASSE"), ("ISTANBUL", "ıstanbul"), ("İstanbul", "istanbul"),
        ("łódź", "LODZ"), ("Ångström", "angstrom"), ("Ｆｕｌｌ", "full"), ("ﾊﾟｿｺﾝ", "パソコン"), ("ﬁne",
        "fine"), ("٣", "3"),
        ("Ελλάς", "ελλασ"), ("ЁЛКА", "елка"), ("co\u00adoperate", "cooperate"), ("\u1112\u1161\u11ab", "한"),
    ],
)  # fmt: skip
def test_folds_alike(one: str, other: str) -> None:
    assert tokens(one) == tokens(other)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("使用React框架", ["使", "用", "react", "框", "架"]),
        ("한국어로", ["한", "국", "어", "로"]),
        ("snake_case-name.py", ["snake", "case", "name", "py"]),
        ("a🚀b", ["a", "🚀", "b"]),
        ("½ 1\u20442", ["1", "2", "1", "2"]),
        ("┌──┐ ✓", ["✓"]),
        ("हिन्दी शब्द", ["हिनदी", "शबद"]),
        ("\ue02d\ue02dno", ["no"]),
    ],
)
def test_words(text: str, expected: "list[str]") -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("resolveTerminalPath", [f"resolve Terminal Path {GAP}"]),
        ("HTTPServer", [f"HTTP Server {GAP}"]),
        ("plain words TERMINAL_PATH", []),
        ("--no-verify", [symbol("--") + "no", symbol("--")]),
        ("C++ c# .env #12 @me $HOME -v", ["C" + symbol("++"), "c" + symbol("#"), symbol(".") + "env",
        symbol("#") + "12",
                                          symbol("@") + "me", symbol("$") + "HOME", symbol("-") + "v", symbol("++")]),
        ("a::<b> c->d", [symbol("::"), symbol("->")]),
    ],
)  # fmt: skip
def test_further_words(text: str, expected: "list[str]") -> None:
    assert sorted(further(text)) == sorted(expected)


def test_noise_is_not_taken_for_a_name() -> None:
    assert further("toolu01A9xQzB7kLmNpRsTvWyZaBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789aBcD") == []


def test_tokens_are_cut() -> None:
    assert tokens("a" * 1000 + " b") == ["a" * TOKEN_CAP, "b"]
    assert tokens("é" * 1000) == ["e" * TOKEN_CAP]


def test_columns_follow_the_role() -> None:
    assert columns("user", "x") == ("x", "", "", "", "")
    assert columns("assistant", "x") == ("", "x", "", "", "")
    assert columns("tool", "runTest") == ("", "", "runTest", "", f"run Test {GAP}")
    assert columns("system", "x") == columns("unknown", "x") == ("", "", "x", "", "")


@given(st.text(max_size=80))
def test_composed_or_not_is_the_same(text: str) -> None:
    assert tokens(unicodedata.normalize("NFC", text)) == tokens(unicodedata.normalize("NFD", text))


@given(st.text(alphabet=st.characters(blacklist_categories=("Cs",)), max_size=80))
def test_spelling_again_changes_nothing(text: str) -> None:
    assert tokens(spell(text)) == tokens(text)


@given(st.text(alphabet=st.characters(whitelist_categories=("Co",)), max_size=20))
def test_private_characters_of_a_text_forge_nothing(text: str) -> None:
    assert tokens(text) == [] and further(text) == []


def test_constants_kept_twice_agree() -> None:
    assert ROW_BITS == schema.ROW_BITS
    assert opening.SCHEMA_VERSION == schema.SCHEMA_VERSION
