"""Append-only files: read by what was appended, whatever stands in them and however they change."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import List

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay.indexer import collecting
from tests.indexer.conftest import Box


def test_what_is_appended_is_added(box: Box, tmp_path: Path) -> None:
    box.say("a.jsonl", "one", "two")
    box.index()
    assert box.texts() == ["one", "two"]
    box.say("a.jsonl", "three")
    box.index()
    assert box.texts() == ["one", "two", "three"]
    box.is_whole(tmp_path)


def test_only_the_appended_bytes_are_read(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    from relay.indexer import appending

    box.say("a.jsonl", *(f"message {n}" for n in range(2000)))
    box.index()
    fed: List[object] = []
    original = appending.Lines.__iter__

    def counting(self: object) -> object:
        for record in original(self):  # type: ignore[arg-type]
            fed.append(record)
            yield record

    monkeypatch.setattr(appending.Lines, "__iter__", counting)
    box.say("a.jsonl", "the last")
    box.index()
    assert fed == [{"say": "the last"}]


def test_a_torn_last_line_waits_until_it_is_whole(box: Box, tmp_path: Path) -> None:
    """Invariant 4 of the design: a torn last line is never consumed."""
    box.write("a.jsonl", {"say": "whole"}, '{"say": "torn ')
    box.index()
    assert box.texts() == ["whole"]
    box.write("a.jsonl", 'no more"}')  # still no newline: a complete object is whole all the same
    box.index()
    assert box.texts() == ["whole", "torn no more"]
    box.write("a.jsonl", "\n", {"say": "next"})
    box.index()
    assert box.texts() == ["whole", "torn no more", "next"]
    box.is_whole(tmp_path)


def test_an_unchanged_file_is_not_opened(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    from relay.indexer import reading

    box.say("a.jsonl", "one")
    box.index()
    monkeypatch.setattr(reading, "read", None)
    box.index()
    assert box.texts() == ["one"]


def test_a_shrunk_file_is_read_anew(box: Box, tmp_path: Path) -> None:
    box.say("a.jsonl", "one", "two", "three")
    box.index()
    box.write("a.jsonl", {"say": "other"}, mode="w")
    box.index()
    assert box.texts() == ["other"]
    box.is_whole(tmp_path)


def test_a_file_rewritten_to_a_greater_size_is_read_anew(box: Box, tmp_path: Path) -> None:
    box.say("a.jsonl", "one", "two")
    box.index()
    box.write("a.jsonl", *({"say": f"else {n}"} for n in range(10)), mode="w")
    box.index()
    assert box.texts() == [f"else {n}" for n in range(10)]
    box.is_whole(tmp_path)


def test_a_file_rewritten_in_place_to_the_same_size_is_read_anew(box: Box, tmp_path: Path) -> None:
    path = box.say("a.jsonl", *(f"message {n:05}" for n in range(500)))
    box.index()
    whole = path.read_bytes().replace(b"message 00250", b"changed 00250")
    with open(path, "r+b") as file:
        file.write(whole)
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 10_000_000))
    box.index()
    assert box.finds("changed") == 1 and box.finds("00250") == 1
    box.is_whole(tmp_path)


def test_another_inode_with_other_content_is_read_anew(box: Box, tmp_path: Path) -> None:
    path = box.say("a.jsonl", "one", "two")
    box.index()
    other = box.say("b.tmp", "three", "four", "five")
    os.replace(other, path)
    box.index()
    assert box.texts() == ["three", "four", "five"]
    box.is_whole(tmp_path)


def test_another_inode_with_the_same_beginning_changes_nothing_but_what_was_added(box: Box, tmp_path: Path) -> None:
    path = box.write("a.jsonl", {"say": "one", "at": 1_700_000_000_000}, {"say": "two"})
    box.index()
    before = box.generation()
    other = box.lines / "b.tmp"
    other.write_bytes(path.read_bytes())
    os.replace(other, path)
    box.index()
    assert box.generation() == before
    box.say("a.jsonl", "three")
    box.index()
    assert box.texts() == ["one", "two", "three"]
    box.is_whole(tmp_path)


def test_a_touched_file_changes_nothing(box: Box) -> None:
    path = box.write("a.jsonl", {"say": "one", "at": 1_700_000_000_000}, {"say": "two"})
    box.index()
    before = box.generation()
    os.utime(path, (1_700_000_000, 1_700_000_000))
    box.index()
    assert box.generation() == before


def test_a_deleted_file_goes_and_a_restored_one_comes_back(box: Box, tmp_path: Path) -> None:
    path = box.say("a.jsonl", "one")
    box.say("b.jsonl", "two")
    box.index()
    kept = path.read_bytes()
    path.unlink()
    box.index()
    assert box.texts() == ["two"] and box.finds("one") == 0
    path.write_bytes(kept)
    box.index()
    assert box.texts() == ["one", "two"]
    box.is_whole(tmp_path)


def test_a_renamed_file_answers_under_its_new_name_alone(box: Box, tmp_path: Path) -> None:
    path = box.say("a.jsonl", "one")
    box.index()
    path.rename(box.lines / "b.jsonl")
    box.index()
    assert box.texts("a") == [] and box.texts("b") == ["one"]
    box.is_whole(tmp_path)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (b'{"say": "one"}\r\n{"say": "two"}\r\n', ["one", "two"]),
        (b'\xef\xbb\xbf{"say": "one"}\n{"say": "two"}\n', ["one", "two"]),
        (b'{"say": "a\\ud83db"}\n', ["a\ufffdb"]),
        (b'{"say": "\\ud83d\\ude00"}\n', ["\U0001f600"]),
        (b'{"say": "bad \xff byte"}\n', ["bad \ufffd byte"]),
        (b'{"say": "nul \\u0000 and \x00"}\n', ["nul   and  "]),
        ('{"say": "next\u0085line\u2028here"}\n'.encode(), ["next\u0085line\u2028here"]),
        (b'{"say": "one"}{"say": "two"}\n', ["one", "two"]),
        (b'\n\n[1]\nnot json\n{"say": "one"}\n', ["one"]),
    ],
    ids=["crlf", "bom", "lone-surrogate", "surrogate-pair", "invalid-utf8", "nul", "line-separators", "glued", "noise"],
)
def test_odd_bytes_are_read(box: Box, tmp_path: Path, written: bytes, expected: List[str]) -> None:
    box.write("a.jsonl", written)
    box.index()
    assert box.texts() == expected
    box.is_whole(tmp_path)


def test_a_message_sent_again_replaces_the_first(box: Box, tmp_path: Path) -> None:
    box.write("a.jsonl", {"say": "growing", "seq": 0}, {"say": "later", "seq": 1})
    box.index()
    box.write("a.jsonl", {"say": "growing and grown", "seq": 0})
    box.index()
    assert box.texts() == ["growing and grown", "later"]
    assert box.finds("growing") == 1
    box.is_whole(tmp_path)


@pytest.mark.parametrize("blank", [" ", "\x00"])
def test_a_message_sent_again_without_text_takes_the_first_away(box: Box, tmp_path: Path, blank: str) -> None:
    box.write("a.jsonl", {"say": "one", "seq": 0}, {"say": "two", "seq": 1}, {"say": "three", "seq": 2})
    box.index()
    box.write("a.jsonl", {"say": blank, "seq": 1})
    box.index()
    assert box.texts() == ["one", "three"] and box.finds("two") == 0
    box.is_whole(tmp_path)


def test_a_rewind_undoes_what_was_said(box: Box, tmp_path: Path) -> None:
    box.say("a.jsonl", "one", "two", "three")
    box.index()
    box.write("a.jsonl", {"rewind": 1}, {"say": "two again"})
    box.index()
    assert box.texts() == ["one", "two again"] and box.finds("three") == 0
    box.is_whole(tmp_path)


def test_a_large_file_is_read_in_slices(box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from relay.indexer import appending

    monkeypatch.setattr(appending, "SLICE", 1000)
    box.say("a.jsonl", *(f"message number {n}" for n in range(300)))
    box.index()
    assert len(box.texts()) == 300
    box.say("a.jsonl", *(f"message number {n}" for n in range(300, 600)))
    box.index()
    assert box.texts() == [f"message number {n}" for n in range(600)]
    box.write("a.jsonl", *({"say": f"other number {n}"} for n in range(400)), mode="w")
    box.index()
    assert box.texts() == [f"other number {n}" for n in range(400)]
    box.is_whole(tmp_path)


def test_a_line_beyond_the_limit_costs_that_line(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 5 of the design: a cap on one line, counted as failed beyond it."""
    from relay.transcripts import jsonl

    monkeypatch.setattr(jsonl, "LINE_CAP", 5 << 20)
    path = box.write("a.jsonl", {"say": "before"}, b'{"say": "' + b"x" * (6 << 20) + b'"}\n', {"say": "behind"})
    box.index()
    assert box.texts() == ["before", "behind"]
    assert box.failure(path) == "A line is too long to be read."


def test_a_record_nobody_foresaw_costs_that_record(box: Box) -> None:
    path = box.write("a.jsonl", {"say": "before"}, {"break": 1}, {"say": "behind"})
    box.index()
    assert box.texts() == ["before", "behind"]
    assert box.failure(path) == "Some records could not be understood."


def test_a_file_without_a_line_of_json_is_failed(box: Box) -> None:
    path = box.write("a.jsonl", "this is no\ntranscript\n")
    box.index()
    assert box.failure(path) == "No line of the file is JSON."


def test_a_long_message_is_split_at_whitespace(box: Box) -> None:
    text = " ".join(f"word{n}" for n in range(3000))
    box.say("a.jsonl", text)
    box.index()
    found = box.texts()
    assert "".join(found) == text
    assert max(map(len, found)) <= 8000 and all(piece.endswith(" ") for piece in found[:-1])


_record = st.one_of(
    st.builds(lambda text: {"say": text}, st.text(min_size=1, max_size=30)),
    st.builds(lambda text, seq: {"say": text, "seq": seq}, st.text(min_size=1, max_size=10), st.integers(0, 6)),
    st.builds(lambda seq: {"rewind": seq}, st.integers(0, 6)),
    st.builds(lambda text: {"title": text}, st.text(min_size=1, max_size=5)),
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(_record, max_size=12), cuts=st.lists(st.integers(0, 600), max_size=4))
def test_any_portions_of_a_file_give_the_same_index(box: Box, tmp_path_factory: pytest.TempPathFactory, records, cuts):
    """The cursor: however the bytes arrive, the index is that of the whole file."""
    folder = tmp_path_factory.mktemp("portions")
    one = Box(folder)
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    written = 0
    for cut in sorted(cuts) + [len(data)]:
        one.write("a.jsonl", data[written:cut])
        written = max(written, min(cut, len(data)))
        one.index()
    one.is_whole(folder)


def test_slices_fold_replaced_and_rewound_messages() -> None:
    from relay.transcripts.types import Message, Rewind

    piece = collecting.Slice()
    a, b, c, d = (Message(seq, "user", text) for seq, text in ((0, "a"), (1, "b"), (1, "c"), (0, "d")))
    for event in (a, b, Rewind(1), c, d):
        piece.add(event)
    assert [(row.seq, row.text) for row in piece.rows()] == [(0, "d"), (1, "c")] and piece.rewind == 1


def test_a_session_in_which_everything_is_undone_stops_answering(box: Box, tmp_path: Path) -> None:
    box.say("a.jsonl", "one")
    box.index()
    box.write("a.jsonl", {"rewind": 0})
    box.index()
    assert box.texts() == []
    box.is_whole(tmp_path)
    box.say("a.jsonl", "again")
    box.index()
    assert box.texts() == ["again"]
