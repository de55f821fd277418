"""The demo answers, and leaves neither a file nor a process behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import sshd

PROJECT = Path(__file__).resolve().parents[2]


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """The demo in a session of its own, so that a signal to its group is what Ctrl-C is; its output is one pipe."""
    folder.mkdir()
    return subprocess.Popen(
        [sys.executable, str(PROJECT / "scripts/lib/demo.py"), *arguments],
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def left(folder: Path) -> list[str]:
    """Files below ``folder``, and processes that name it; those that are ending get ten seconds."""
    until = time.monotonic() + 10
    while True:
        running = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, text=True, check=True).stdout
        found = [str(path) for path in folder.iterdir()]
        found += [line for line in running.splitlines() if str(folder) in line]
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.1)


def shape(text: str) -> list[str]:
    """Each line's first word: sizes, versions and moments come later in it."""
    return [line.split()[0] if line.strip() else "" for line in text.splitlines()]


@pytest.mark.parametrize("query", ["reattach race", "--limit"])
def test_it_answers_and_leaves_nothing(tmp_path: Path, query: str) -> None:
    demo = start(tmp_path / "demo", query)
    said = demo.communicate(timeout=120)[0]
    assert demo.returncode == 0, said
    assert ("5e0c1a52-7d0b-4c57-9a39-1b1f0f2a7c11" in said) == (query == "reattach race")
    assert "4 indexed, 0 waiting, 0 failed" in said
    if query == "reattach race" and sshd.AVAILABLE:
        shown = (PROJECT / "README.md").read_text().partition('$ scripts/demo "reattach race"\n')[2].partition("```")[0]
        assert shape(said) == shape(shown)
    assert left(tmp_path / "demo") == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", ["A private sshd", "$ relay-installer install", "$ ssh box relay index"])
def test_cut_short_it_leaves_nothing(tmp_path: Path, number: signal.Signals, moment: str) -> None:
    demo = start(tmp_path / "demo")
    assert demo.stdout is not None
    for line in demo.stdout:
        if line.startswith((moment, "$ relay search")):  # the latter where there is no sshd
            break
    if number == signal.SIGINT:
        os.killpg(demo.pid, number)
    else:
        demo.send_signal(number)
    said = demo.communicate(timeout=120)[0]
    assert demo.returncode == 128 + number
    assert "Traceback" not in said
    assert left(tmp_path / "demo") == []
