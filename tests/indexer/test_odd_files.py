"""What may lie among transcripts costs itself alone: what is no file, and names that are no text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from relay.contract.requests import SearchRequest
from relay.index import inventory, names, opening
from relay.indexer import ahead, indexing, standing
from relay.indexer.full_pass import run_full_pass
from relay.search.engine import Engine
from relay.transcripts import documents
from relay.transcripts.registry import Env
from tests.indexer.conftest import Box, until


def test_nothing_but_a_regular_file_is_opened(box: Box) -> None:
    box.say("a.jsonl", "one")
    pipe, device, folder = box.lines / "b.jsonl", box.lines / "c.jsonl", box.lines / "d.jsonl"
    database, document = box.databases / "e.db", box.documents / "f.json"
    for path in (pipe, database, document):
        os.mkfifo(path)
    device.symlink_to("/dev/zero")
    folder.symlink_to(box.home)
    box.index()
    assert box.texts() == ["one"]
    for path in (pipe, device, folder, database, document):
        assert box.failure(path) == "It is no regular file.", path
    counts = standing.stored(box.path)
    assert (counts["filesIndexed"], counts["filesFailed"]) == (1, 5)


def test_a_pipe_beside_a_transcript_is_as_good_as_absent(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "meta.json")
    assert documents.sidecar(str(tmp_path / "meta.json")) is None


def test_a_backfill_is_not_held_up_by_a_pipe(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that reads ahead opens files, too."""
    monkeypatch.setattr(indexing, "BULK_BYTES", 0)
    monkeypatch.setattr(ahead, "_processors", lambda: (0, 1))
    for number in range(6):
        box.say(f"{number}.jsonl", f"text {number}")
    os.mkfifo(box.lines / "pipe.jsonl")
    box.index()
    assert len(box.texts()) == 6
    assert box.failure(box.lines / "pipe.jsonl") == "It is no regular file."


def test_a_pipe_in_place_of_a_transcript_keeps_what_it_said(box: Box) -> None:
    path: Path = box.say("a.jsonl", "one")
    box.index()
    path.unlink()
    os.mkfifo(path)
    box.index()
    assert box.texts() == ["one"]
    assert box.failure(path) == "It is no regular file."


def test_names_that_are_no_text_are_names(box: Box) -> None:
    """A file name is bytes: one that is no UTF-8 is read, kept, answered with and forgotten as any other."""
    odd = os.fsdecode(b"caf\xe9")
    path = box.say(f"{odd}/{odd}.jsonl", "one")
    box.say("b.jsonl", "two")
    assert box.index().files_done == 2
    assert box.index().files_done == 0
    assert sorted(box.texts()) == ["one", "two"]
    box.say(f"{odd}/{odd}.jsonl", "three")
    box.index()
    assert sorted(box.texts()) == ["one", "three", "two"]
    engine = Engine(box.path)
    hits = engine.search(SearchRequest("three"))["hits"]
    engine.close()
    assert [hit["source"]["filePath"] for hit in hits] == [str(path)]
    path.unlink()
    box.index()
    assert box.texts() == ["two"]


def test_a_running_agent_follows_names_that_are_no_text(box: Box) -> None:
    odd = os.fsdecode(b"caf\xe9")
    box.current()
    path = box.say(f"{odd}/{odd}.jsonl", "one")
    until(lambda: box.texts() == ["one"])
    path.unlink()
    until(lambda: box.texts() == [])


def test_a_home_and_a_state_folder_that_are_no_text(box: Box) -> None:
    odd = os.fsdecode(b"caf\xe9")
    box.say("a.jsonl", "one")
    home, state = box.home.with_name(odd), str(box.home.with_name(odd + "-state"))
    box.home.rename(home)
    now = run_full_pass(state, Env(str(home)), None, lambda progress: None)
    assert now.files_done == 1
    assert run_full_pass(state, Env(str(home)), None, lambda progress: None).files_done == 0
    engine = Engine(opening.database_path(state))
    (hit,) = engine.search(SearchRequest("one"))["hits"]
    engine.close()
    assert hit["source"] == {"presence": "present", "filePath": f"{home}/.plain/lines/a.jsonl"}
    places = inventory.inventory(opening.database_path(state)).places
    assert ("claude", "lines", f"{home}/.plain/lines") in places


def test_a_name_comes_back_from_the_index_as_it_was() -> None:
    for raw in (b"plain", "füße検".encode(), bytes(range(1, 256)), "\U0010ff41".encode()):
        name = os.fsdecode(raw)
        (text,) = names.held((name,))
        assert text.encode() and names.given(text) == name
    assert names.held(("\ud800", 5, None)) == ("\ufffd", 5, None)
