"""Messages to rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from relay.index.rows import ROW_LIMIT, TOOL_LIMIT, Row, compressed, decompressed, rows, storable
from relay.transcripts.types import Message


def test_a_short_message_is_one_row() -> None:
    assert list(rows(Message(3, "user", "hello", 5))) == [Row(3, "user", 5, "hello")]


def test_a_blank_message_is_none() -> None:
    assert list(rows(Message(0, "user", " \n\t"))) == []


def test_tool_text_is_cut_and_prose_is_not() -> None:
    text = "x" * (TOOL_LIMIT + 1)
    assert [len(row.text) for row in rows(Message(0, "tool", text))] == [TOOL_LIMIT]
    assert [len(row.text) for row in rows(Message(0, "user", text))] == [TOOL_LIMIT + 1]


def test_long_text_is_cut_at_whitespace() -> None:
    text = "word " * 2000
    found = [row.text for row in rows(Message(0, "assistant", text))]
    assert [len(piece) for piece in found] == [8000, 2000] and "".join(found) == text


def test_an_endless_word_is_cut_all_the_same() -> None:
    found = [row.text for row in rows(Message(0, "user", "x" * 20_000))]
    assert [len(piece) for piece in found] == [8000, 8000, 4000]


@given(st.text(alphabet=st.characters(), max_size=40).map(lambda text: text * 600))
def test_nothing_is_lost_between_rows(text: str) -> None:
    pieces = [row.text for row in rows(Message(0, "user", text))]
    assert "".join(pieces).split() == storable(text).split()
    assert all(len(piece) <= ROW_LIMIT for piece in pieces)


@given(st.text(alphabet=st.characters(min_codepoint=0)))
def test_every_text_can_be_kept(text: str) -> None:
    kept = storable(text)
    assert decompressed(compressed(kept)) == kept and "\0" not in kept


def test_two_surrogates_make_a_character_and_one_makes_none() -> None:
    assert storable("\ud83d\ude00") == "\U0001f600"
    assert storable("a\ud83db") == "a\ufffdb"
