"""Retention: older sessions are neither read nor answered; narrowing purges, widening reads again."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from relay.index import upkeep
from relay.indexer.indexer import Indexer
from tests.indexer.conftest import Box, until

DAY = 86_400


def old(box: Box, name: str, days: float, *texts: str) -> Path:
    moment = time.time() - days * DAY
    path = box.write(name, *({"say": text, "at": int(moment * 1000)} for text in texts))
    os.utime(path, (moment, moment))
    return path


def test_an_old_file_is_not_read(box: Box) -> None:
    box.history_days = 30
    old(box, "old.jsonl", 40, "ancient")
    old(box, "new.jsonl", 2, "recent")
    progress = box.index()
    assert box.texts() == ["recent"] and progress.files_total == 1


def test_narrowing_purges_and_widening_reads_again(box: Box, tmp_path: Path) -> None:
    old(box, "old.jsonl", 40, "ancient")
    old(box, "new.jsonl", 2, "recent")
    box.document("d.json", {"x": ["document"]}, at=int((time.time() - 40 * DAY) * 1000))
    box.index()
    assert box.texts() == ["recent", "ancient", "document"]
    box.history_days = 30
    box.index()
    assert box.texts() == ["recent"] and box.value("SELECT count(*) FROM rows") == 1
    box.history_days = 60
    box.index()
    assert box.texts() == ["recent", "ancient", "document"]
    box.history_days = None
    box.index()
    box.is_whole(tmp_path)


def test_an_expired_session_that_goes_on_is_read_from_its_start(box: Box) -> None:
    old(box, "a.jsonl", 40, "ancient")
    box.index()
    box.history_days = 30
    box.index()
    assert box.texts() == []
    box.write("a.jsonl", {"say": "today", "at": int(time.time() * 1000)})
    box.index()
    assert box.texts() == ["ancient", "today"]


def test_an_old_session_in_a_young_file_is_not_kept(box: Box) -> None:
    box.history_days = 30
    box.write("a.jsonl", {"say": "ancient", "at": int((time.time() - 40 * DAY) * 1000)})
    box.index()
    assert box.texts() == []
    assert box.index().files_total == 0  # and not read again and again


def test_a_clock_that_jumped_forward_purges_nothing_for_good(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    old(box, "a.jsonl", 2, "recent")
    box.history_days = 30
    box.index()
    real = time.time
    with monkeypatch.context() as patch:
        patch.setattr(upkeep.time, "time", lambda: real() + 365 * DAY)
        box.index()
        assert box.texts() == []
    box.index()
    assert box.texts() == ["recent"]


def test_a_retention_just_made_shorter_is_waited_for_before_anything_is_answered(box: Box) -> None:
    old(box, "old.jsonl", 40, "ancient")
    old(box, "new.jsonl", 2, "recent")
    box.index()
    everything = Indexer(box.state, box.env, None)
    shorter = Indexer(box.state, box.env, 30)
    assert (everything.ready, shorter.ready) == (True, False)
    shorter.start()
    until(lambda: shorter.ready)
    assert box.texts() == ["recent"]
    shorter.close()
    assert Indexer(box.state, box.env, 30).ready
    assert not Indexer(box.state, box.env, 20).ready
