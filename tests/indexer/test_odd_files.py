"""What may lie among transcripts costs itself alone: pipes, devices, folders and links where a file should be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from relay.indexer import ahead, indexing, standing
from relay.transcripts import documents
from tests.indexer.conftest import Box


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
