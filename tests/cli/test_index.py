"""``relay index``: a bar on a terminal, one line otherwise, and consent before everything."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

from relay.cli.index import _drawing
from relay.indexer.full_pass import Progress

RECORD = {
    "type": "user", "sessionId": "", "cwd": "/w", "uuid": "u", "timestamp": "2026-01-01T00:00:00.000Z",
    "message": {"role": "user", "content": "where is the reattach race"},
}  # fmt: skip


def relay(*arguments: str, **more: int) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "relay", *arguments], stdout=subprocess.PIPE, text=True, timeout=60, **more
    )


@pytest.fixture
def transcripts(home: Path) -> List[Path]:
    folder = home / ".claude" / "projects" / "-w"
    folder.mkdir(parents=True)
    made = []
    for n in range(3):
        session = f"00000000-0000-0000-0000-{n:012}"
        made.append(folder / f"{session}.jsonl")
        made[-1].write_text(json.dumps({**RECORD, "sessionId": session}) + "\n")
    return made


def test_nothing_is_read_without_consent(home: Path, transcripts: List[Path]) -> None:
    """Invariant 1 of the design: nothing is read before consent."""
    done = relay("index", stderr=subprocess.PIPE)
    assert done.returncode == 3 and done.stdout == "" and "relay enable" in done.stderr
    assert not (home / ".local").exists()


def test_one_line_says_what_was_read(transcripts: List[Path]) -> None:
    relay("enable", "--json")
    done = relay("index", stderr=subprocess.PIPE)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith("Read 3 files (0.0 MB) in ") and done.stdout.endswith("3 files indexed.\n")
    transcripts[0].write_text("no json\n")
    assert "1 could not be read" in relay("index").stdout


def test_the_summary_as_json(transcripts: List[Path]) -> None:
    relay("enable", "--json")
    summary = json.loads(relay("index", "--json").stdout)
    assert (summary["filesRead"], summary["filesIndexed"], summary["filesFailed"]) == (3, 3, 0)
    assert summary["bytesRead"] == sum(path.stat().st_size for path in transcripts) and summary["indexBytes"] > 0


def test_a_terminal_gets_a_bar_that_goes_away(transcripts: List[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    relay("enable", "--json")
    master, slave = pty.openpty()
    done = relay("index", stderr=slave)
    os.close(slave)
    drawn = b""
    try:
        while True:
            portion = os.read(master, 65536)
            if not portion:
                break
            drawn += portion
    except OSError:
        pass
    os.close(master)
    assert done.returncode == 0 and "files indexed" in done.stdout
    assert b"files" in drawn and b"MB/s" in drawn and drawn.endswith(b"\x1b[K")


def test_the_bar_fits_any_width() -> None:
    now = Progress(5, 10, 50_000_000, 100_000_000, 10.0)
    assert "5/10 files" in _drawing(now, 100) and "50/100 MB" in _drawing(now, 100)
    assert "5.0 MB/s" in _drawing(now, 100) and "10 s left" in _drawing(now, 100)
    for width in range(1, 120):
        assert len(_drawing(now, width)) <= width
        assert len(_drawing(now._replace(by_agent=True), width)) <= width
    assert "100%" in _drawing(Progress(0, 0, 0, 0, 0.0), 80)
