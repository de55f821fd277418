"""Shell completion of hosts and agents, asked as the shells ask."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from relay.client.host_ids import parse
from relay.client.hosts_file import Host, add
from relay.paths import config_folder

PROGRAM = "from {} import main; main(prog_name={!r})"
RELAY = PROGRAM.format("relay.cli.group", "relay")
INSTALLER = PROGRAM.format("installer.__main__", "relay-installer")


def completed(program, words):
    """What bash is offered for the last of ``words``."""
    name = "_RELAY_COMPLETE" if program is RELAY else "_RELAY_INSTALLER_COMPLETE"
    environment = {**os.environ, name: "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return [line.partition(",")[2] for line in result.stdout.splitlines()]


@pytest.fixture(autouse=True)
def hosts():
    add(config_folder(), Host(parse("ssh:me@box")))
    add(config_folder(), Host(parse("runtime:pod"), command=("relay", "serve")))


@pytest.mark.parametrize(
    "program, words, offered",
    [
        (RELAY, "relay search --host ", ["local", "all", "ssh:me@box", "runtime:pod"]),
        (RELAY, "relay search --host ssh:", ["ssh:me@box"]),
        (RELAY, "relay status --host a", ["all"]),
        (RELAY, "relay resume --host r", ["runtime:pod"]),
        (RELAY, "relay hosts remove s", ["ssh:me@box"]),
        (RELAY, "relay search --agent q", ["qwen"]),
        (RELAY, "relay resume --agent open", ["opencode", "openclaw"]),
        (RELAY, "relay sea", ["search"]),
        (INSTALLER, "relay-installer upgrade s", ["ssh:me@box"]),
    ],
)
def test_words_are_completed(program, words, offered):
    assert completed(program, words) == offered
