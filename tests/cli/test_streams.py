"""Commands whose standard streams are closed, full, or of another encoding: never a traceback, never a wrong code."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import Dict

import pytest

from tests.support.serving import claude_session

COMMANDS = (
    ("enable",),
    ("index", "--json"),
    ("status", "--json"),
    ("search", "--json", "reattach"),
    ("search", "reattach"),
    ("agents", "claude"),
    ("--help",),
)


def run(redirection: str, *command: str, **variables: str) -> "subprocess.CompletedProcess[bytes]":
    environment: Dict[str, str] = {**os.environ, **variables}
    line = f'exec "$@" {redirection}'
    return subprocess.run(
        ["/bin/sh", "-c", line, "sh", sys.executable, "-m", "relay", *command],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )


def said(done: "subprocess.CompletedProcess[bytes]") -> bytes:
    """What stands on stderr, but for what the agent notes of its machine (its limits of watches)."""
    return b"".join(line for line in done.stderr.splitlines(True) if not line.startswith(b"relay: "))


@pytest.fixture(autouse=True)
def enabled() -> None:
    claude_session(Path(os.environ["HOME"]), "5e0c1a52-7d0b-4c57-9a39-1b1f0f2a7c11", "the reattach race")
    assert run("", "enable").returncode == 0
    assert run("", "index").returncode == 0


@pytest.mark.parametrize("redirection", [">&-", "2>&-", "<&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_a_closed_stream_changes_nothing_but_what_is_seen(redirection: str) -> None:
    for command in COMMANDS:
        done = run(redirection, *command)
        assert (done.returncode, said(done)) == (0, b""), command
        assert bool(done.stdout) == (">&-" not in redirection.replace("2>&-", "")), command


def test_a_full_disk_under_the_output_is_said_in_one_line() -> None:
    for command in COMMANDS:
        done = run(">/dev/full", *command)
        assert done.returncode == os.EX_IOERR, command
        assert said(done) == b"Error: The output cannot be written: No space left on device.\n", command
    assert run(">/dev/full 2>/dev/full", "status").returncode == os.EX_IOERR


def test_a_name_that_is_no_text_is_printed_somehow() -> None:
    folder = os.fsencode(os.environ["HOME"]) + b"/caf\xe9"
    os.makedirs(folder + b"/projects")
    done = run("", "enable", "--root", os.fsdecode(b"claude=" + folder), PYTHONIOENCODING="utf-8:strict")
    assert (done.returncode, done.stderr.count(b"Traceback")) == (0, 0)
    assert b"/caf" in done.stdout + done.stderr
    for command in COMMANDS[1:]:
        assert run("", *command, PYTHONIOENCODING="ascii:strict").returncode == 0


def test_an_empty_home_is_none() -> None:
    """Nothing is looked for, or kept, at the root of the file system: the account's own folder counts."""
    variables = {"HOME": "", "XDG_STATE_HOME": "", "XDG_CONFIG_HOME": ""}
    done = run("", "agents", "claude", "--json", **variables)
    (place, *_) = json.loads(done.stdout)["agents"][0]["places"]
    assert place["path"] == os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".claude", "projects")


def test_an_interrupt_is_not_the_answer_that_nothing_was_found() -> None:
    code = "import signal, sys, time; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "import relay.cli.status as status, relay.cli.group as group\n"
    code += "status.command.callback = lambda **options: signal.raise_signal(signal.SIGINT)\n"
    code += "group.main(['status'], prog_name='relay')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (130, b"\nInterrupted.\n")
