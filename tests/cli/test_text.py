"""What a host or a transcript says never steers the terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.cli.text import clean, clean_all, line


@pytest.mark.parametrize(
    "said, shown",
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[38;5;1;3mx", "x"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07rest", "rest"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1;2|data\x1b\\after", "after"),
        ("\x1b]52;c;never ended", "52;c;never ended"),
        ("\x1b\x1b[31m[31m", "[31m"),
        ("\x1bc\x1b(Breset", "reset"),
        ("a\x00b\x08c\x7fd\x85e", "abcd e"),
        ("one\r\ntwo\tthree", "one  two three"),
        ("abc\u202edef\u2066ghi\u200f", "abcdefghi"),
        ("a\u2028b", "a b"),
        ("tag\U000e0041\ufeffs", "tags"),
        ("\ud800", "\ufffd"),
        ("नमस्\u200dते 👩\u200d🚀 你好", "नमस्\u200dते 👩\u200d🚀 你好"),
    ],
)
def test_text_is_made_safe(said, shown):
    assert clean(said) == shown


@given(st.text(st.characters(max_codepoint=0x2100) | st.sampled_from("\x1b[]\\;m\x07\x9b\x9c"), max_size=60))
def test_nothing_that_steers_is_left(text):
    for character in clean(text):
        assert unicodedata.category(character) not in ("Cc", "Cs")
        assert character in "\u200c\u200d" or unicodedata.category(character) != "Cf"


@given(st.text(max_size=60))
def test_cleaning_twice_changes_nothing(text):
    assert clean(clean(text)) == clean(text)
    clean(text).encode()


def test_a_line_is_one_line_of_its_length():
    assert line("  a\n\n b\t c ") == "a b c"
    assert line("x" * 500, 10) == "x" * 9 + "…"


def test_every_string_of_an_answer_is_made_safe():
    answer = {"a\x1b[1m": ["\x1b[31mx\ny", {"b": "\u202ez"}], "n": 1, "none": None}
    assert clean_all(answer) == {"a": ["x\ny", {"b": "z"}], "n": 1, "none": None}
