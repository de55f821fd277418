"""The writer: what stands between two commits becomes visible at once or not at all."""

from __future__ import annotations

import contextlib
import zlib
from typing import Any, List, Optional, Sequence, Tuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay.index import opening, upkeep
from relay.index.faults import IndexDamaged
from relay.index.rows import Row
from relay.index.writer import Cursor, Writer
from relay.transcripts.types import Session

CURSOR = Cursor(None, "claude", "lines", "/r", "/r/a.jsonl")


def seen(writer: Writer, sql: str) -> List[Tuple[Any, ...]]:
    """What a reader's own connection sees."""
    with contextlib.closing(opening.open_for_reading(writer.index.path)) as connection:
        return connection.execute(sql).fetchall()


def texts(writer: Writer) -> List[str]:
    found = seen(
        writer, "SELECT text FROM rows JOIN sessions ON sessions.id = rows.id >> 28 WHERE live = 1 ORDER BY rows.id"
    )
    return [zlib.decompress(blob).decode() for (blob,) in found]


def begin(writer: Writer, *said: str) -> Tuple[int, int]:
    """A source with one session; their keys."""
    source = writer.put_cursor(CURSOR)
    key = writer.put_session(None, CURSOR, source, Session("s", "Title"), 0)
    writer.add_rows(key, rows(said))
    return source, key


def rows(said: Sequence[str], start: int = 0) -> List[Row]:
    return [Row(start + n, "user", None, text) for n, text in enumerate(said)]


def test_nothing_is_seen_before_the_commit_and_everything_after_it(writer: Writer) -> None:
    """Invariant 4 of the design: rows, session and cursor land in one transaction."""
    begin(writer, "one", "two")
    assert seen(writer, "SELECT count(*) FROM sources") == [(0,)] and texts(writer) == []
    assert writer.commit() is True
    assert seen(writer, "SELECT count(*) FROM sources") == [(1,)] and texts(writer) == ["one", "two"]


def test_a_rollback_leaves_nothing(writer: Writer) -> None:
    begin(writer, "one")
    writer.rollback()
    assert writer.commit() is False and texts(writer) == []


def test_the_generation_advances_with_what_a_search_could_see(writer: Writer) -> None:
    source, key = begin(writer, "one")
    assert writer.commit() and writer.generation == 1
    writer.put_cursor(CURSOR._replace(id=source, size=9))
    writer.put_meta("name", "value")
    assert not writer.commit() and writer.generation == 1
    writer.put_session(key, CURSOR, source, Session("s", "Title"), 0)  # nothing new
    assert not writer.commit()
    writer.put_session(key, CURSOR, source, Session("s", "Another"), 0)
    assert writer.commit() and writer.generation == 2
    assert seen(writer, "SELECT changed FROM sessions") == [(2,)]
    assert seen(writer, "SELECT value FROM meta WHERE name = 'generation'") == [("2",)]


def test_a_staged_session_answers_when_it_has_its_head(writer: Writer) -> None:
    source, key = begin(writer, "old")
    writer.commit()
    staged = writer.stage_session(CURSOR, source)
    writer.add_rows(staged, rows(["new"]))
    assert writer.commit() is False and texts(writer) == ["old"]
    writer.hide_sessions("id = ?", (key,))
    writer.put_session(staged, CURSOR, source, Session("s", "Title"), 0)
    assert writer.commit() and texts(writer) == ["new"]


def test_hidden_sessions_are_drained_in_small_steps(writer: Writer) -> None:
    source, _ = begin(writer, *(f"text {n}" for n in range(upkeep.DRAIN_ROWS * 2 + 1)))
    writer.commit()
    writer.remove_source(source)
    writer.commit()
    before = writer.generation
    steps = 0
    while upkeep.drain(writer):
        steps += 1
    assert steps == 3 and writer.generation == before
    assert seen(writer, "SELECT count(*) FROM rows") == seen(writer, "SELECT count(*) FROM sessions") == [(0,)]
    assert seen(writer, "SELECT rowid FROM words WHERE words MATCH 'text'") == []
    assert seen(writer, "SELECT value FROM meta WHERE name = 'pruned'") == [(str(before),)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["a", "b"], ["a", "b", "c"]),
        (["a", "b", "c"], ["a"]),
        (["a", "b", "c"], ["a", "x", "c"]),
        (["a"], []),
        (["a"], ["a"]),
    ],
    ids=["grown", "cut", "changed", "emptied", "same"],
)
def test_rows_are_made_equal_to_a_list(writer: Writer, first: List[str], second: List[str]) -> None:
    _, key = begin(writer, *first)
    writer.commit()
    assert writer.replace_rows(key, rows(second)) is True
    assert writer.commit() is (first != second)
    assert texts(writer) == second
    upkeep.check(writer)


def test_too_many_rows_are_not_replaced_in_one_transaction(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    from relay.index import writer as module

    monkeypatch.setattr(module, "DELETE_AT_ONCE", 3)
    _, key = begin(writer, *"abcdefgh")
    writer.commit()
    assert writer.replace_rows(key, rows("xbcdefgh")) is False
    assert not writer.commit() and texts(writer) == list("abcdefgh")


_said = st.lists(st.tuples(st.integers(0, 9), st.text("ab ", min_size=1)), max_size=4)
_operation = st.tuples(st.one_of(st.none(), st.integers(0, 9)), _said)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_operation, max_size=6))
def test_merging_is_like_a_dictionary_in_the_order_of_its_keys(
    writer: Writer, operations: List[Tuple[Optional[int], List[Tuple[int, str]]]]
) -> None:
    source = writer.put_cursor(CURSOR._replace(id=(writer.cursor(CURSOR.path) or CURSOR).id))
    writer.hide_sessions("source = ?", (source,))
    key = writer.put_session(None, CURSOR, source, Session("s", "Title"), 0)
    model = {}
    for rewind, said in operations:
        batch = dict(said)
        writer.merge_rows(key, [Row(seq, "user", None, batch[seq]) for seq in sorted(batch)], rewind)
        if rewind is not None:
            model = {seq: text for seq, text in model.items() if seq < rewind}
        model.update(batch)
    writer.commit()
    assert texts(writer) == [model[seq] for seq in sorted(model)]
    upkeep.check(writer)


def test_damage_in_a_row_is_a_fault_of_the_index(writer: Writer) -> None:
    _, key = begin(writer, "one")
    writer.commit()
    writer.execute("UPDATE rows SET text = x'00'")
    with pytest.raises(IndexDamaged):
        writer.replace_rows(key, [])
    assert not writer.index.connection.in_transaction


def test_rows_of_no_session_are_damage(writer: Writer) -> None:
    begin(writer, "one")
    writer.commit()
    upkeep.check(writer)
    writer.execute("DELETE FROM sessions")
    with pytest.raises(IndexDamaged):
        upkeep.check(writer)


def test_segments_are_merged_until_nothing_is_left_to_merge(writer: Writer) -> None:
    writer.execute("INSERT INTO words(words, rank) VALUES('automerge', 0)")
    _, key = begin(writer, "first")
    for n in range(40):
        writer.add_rows(key, rows([f"text {n} " + " ".join(f"w{n}x{m}" for m in range(50))], n))
        writer.commit()
    steps = 0
    while upkeep.merge(writer):
        steps += 1
        assert steps < 1000
    assert steps > 0
    upkeep.check(writer)
