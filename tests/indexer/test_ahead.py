"""Reading ahead of a backfill: the same index with it and without it, and nothing lost when it breaks off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from relay.indexer import ahead, indexing
from relay.indexer.full_pass import run_full_pass
from relay.transcripts.registry import Env, Root, roots, walk
from relay.transcripts.types import Source
from scripts.lib import index_dump
from tests.indexer.conftest import REPOSITORY, until


def record(number: int, text: str) -> str:
    return json.dumps(
        {
            "type": "user",
            "uuid": f"u{number}",
            "timestamp": "2026-05-02T08:00:00.120Z",
            "cwd": "/w",
            "message": {"role": "user", "content": text},
        }
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Twelve Claude Code sessions, one of them of two slices, one that is no JSON, one without a word."""
    folder = tmp_path / "home" / ".claude" / "projects" / "-w"
    folder.mkdir(parents=True)
    for session in range(12):
        count = 40_000 if session == 5 else 30
        lines = [record(n, f"häuser of session {session}, prompt {n} getUserName") for n in range(count)]
        (folder / f"00000000-0000-4000-8000-{session:012d}.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "00000000-0000-4000-8000-0000000000aa.jsonl").write_text("no json\n")
    (folder / "00000000-0000-4000-8000-0000000000bb.jsonl").write_text('{"type": "summary"}\n')
    return tmp_path / "home"


@pytest.fixture
def backfill(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any pass is a backfill, and the machine has two processors."""
    monkeypatch.setattr(indexing, "BULK_BYTES", 0)
    monkeypatch.setattr(ahead, "_processors", lambda: (0, 1))


def source(home: Path, path: Path) -> Source:
    def is_it(root: Root) -> bool:
        return root.store.agent == "claude" and str(path).startswith(root.path + "/")

    found = [each for root in roots(Env(str(home))) if is_it(root) for each in walk(root)]
    return next(each for each in found if each.path == str(path))


def whole(state: Path, home: Path, **more: Any) -> Dict[str, Any]:
    run_full_pass(str(state), Env(str(home)), more.get("history_days"), lambda now: None)
    path = str(state / "index.db")
    assert index_dump.faults(path) == []
    return index_dump.dump(path)


@pytest.mark.parametrize("history_days", [None, 36_500])
def test_the_index_is_the_same(
    home: Path, tmp_path: Path, backfill: None, monkeypatch: pytest.MonkeyPatch, history_days: Any
) -> None:
    taken: List[str] = []
    take = ahead.Ahead.take
    monkeypatch.setattr(ahead.Ahead, "take", lambda self, path: taken.append(path) or take(self, path))  # type: ignore[func-returns-value]
    early = whole(tmp_path / "early", home, history_days=history_days)
    assert len(taken) == 14
    monkeypatch.setattr(ahead, "_processors", lambda: (0,))
    assert index_dump.differences(early, whole(tmp_path / "alone", home, history_days=history_days)) == []


def test_a_process_that_dies_costs_nothing(
    home: Path, tmp_path: Path, backfill: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed behind one of its answers, also between the two slices of a file and while others wait to be taken."""
    receive = ahead.Ahead.receive
    expected = whole(tmp_path / "whole", home)
    for last in range(0, 12, 3):
        left = [last]

        def failing(self: ahead.Ahead, left: List[int] = left) -> Any:
            left[0] -= 1
            if left[0] < 0 and self._process is not None:
                self._process.kill()
                self._process.wait()
            return receive(self)

        monkeypatch.setattr(ahead.Ahead, "receive", failing)
        assert index_dump.differences(expected, whole(tmp_path / f"killed-{last}", home)) == []


def test_a_file_that_cannot_be_read_there_is_read_here(home: Path, tmp_path: Path) -> None:
    path = next((home / ".claude").rglob("*0001.jsonl"))
    behind = next((home / ".claude").rglob("*0002.jsonl"))
    asked = source(home, path), source(home, behind)
    path.unlink()
    reader = ahead.Ahead()
    try:
        for each in asked:
            reader.ask(each, 100)
        with pytest.raises(ahead.Lost):
            reader.take(str(path))
        early = reader.take(str(behind))
        assert early is not None and sum(len(piece.rows()) for piece in early.slices(0)) == 30
        assert early.done and early.offset == behind.stat().st_size
    finally:
        reader.close()


def test_what_was_asked_before_is_passed_over(home: Path) -> None:
    paths = sorted((home / ".claude").rglob("*00000?.jsonl"))[:7]
    reader = ahead.Ahead()
    try:
        for path in paths:
            reader.ask(source(home, path), 100)
        first = reader.take(str(paths[0]))
        assert first is not None and str(paths[6]) in reader
        last = reader.take(str(paths[6]))
        assert last is not None and len(list(last.slices(0))) == 1
        assert reader.take(str(paths[3])) is None and str(paths[6]) not in reader
    finally:
        reader.close()
        reader.close()


PARENT = """
import sys, time
from pathlib import Path
from relay.indexer import ahead
from tests.indexer.test_ahead import source
ahead._processors = lambda: (0, 1)
reader = ahead.Ahead()
for path in sys.argv[2:]:
    reader.ask(source(Path(sys.argv[1]), Path(path)), 100)
print(reader._process.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def parent(home: Path) -> Iterator["subprocess.Popen[str]"]:
    paths = [str(path) for path in (home / ".claude").rglob("*.jsonl")]
    command = [sys.executable, "-c", PARENT, str(home), *paths]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


def test_it_ends_with_its_parent(parent: "subprocess.Popen[str]") -> None:
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()

    def gone() -> bool:
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return True
        # Nobody may have waited for it yet.
        status = Path(f"/proc/{child}/stat")
        return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] == "Z"

    until(gone)


def test_nothing_runs_when_the_backfill_is_over(home: Path, tmp_path: Path, backfill: None) -> None:
    started: List[ahead.Ahead] = []
    real = ahead.Ahead.__init__

    def noting(self: ahead.Ahead) -> None:
        started.append(self)
        real(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ahead.Ahead, "__init__", noting)
        whole(tmp_path / "state", home)
    assert len(started) == 1 and started[0]._process is None
