"""What only a terminal gets: a line for each host while it is asked, and colour."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from relay.client.host_ids import parse
from relay.client.hosts_file import Host, add
from relay.paths import config_folder

PROJECT = Path(__file__).parents[2]
AGENT = str(PROJECT / "tests/client/fake_agent.py")


@pytest.fixture(autouse=True)
def hosts():
    for behaviour in ("well", "dying"):
        add(config_folder(), Host(parse(f"runtime:{behaviour}"), command=(sys.executable, "-S", AGENT, behaviour)))


def on_terminal(*arguments, **variables):
    """All that a terminal receives from our command."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "TERM": "xterm", **variables}
    command = [sys.executable, "-m", "relay", *arguments]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    )
    os.close(theirs)
    received = b""
    with contextlib.suppress(OSError):  # how Linux tells that the other side is closed
        for data in iter(lambda: os.read(ours, 65536), b""):
            received += data
    os.close(ours)
    assert process.wait(60) == 0
    return received.decode().replace("\r\n", "\n")


def test_every_host_has_a_line_until_the_answer_is_there():
    received = on_terminal("search", "word", "--host", "all", "--limit", "1")
    asked, _, answer = received.rpartition("\x1b[3A\x1b[J")
    assert asked.startswith("local: asking …\nruntime:well: asking …\nruntime:dying: asking …\n")
    assert "runtime:well: 1 found (" in asked
    assert "local: disabled (" in asked
    assert answer.startswith(" 1 \x1b[1mSession well-0\x1b[0m\n")
    assert "the \x1b[1;33mword\x1b[0m here" in answer
    assert "No answer from runtime:dying" in answer


def test_no_colour_when_it_is_not_wanted():
    assert "\x1b" not in on_terminal("search", "word", "--host", "runtime:well", NO_COLOR="1")
    assert "\x1b" not in on_terminal("search", "word", "--host", "all", TERM="dumb")


def test_json_on_a_terminal_is_for_reading():
    assert on_terminal("search", "word", "--host", "runtime:well", "--json").startswith('{\n  "kind": "results",\n')
