"""``relay hosts``, with real files and real processes behind it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from relay.cli.hosts import command

AGENT = str(Path(__file__).parents[1] / "client" / "fake_agent.py")


def relay_hosts(*arguments):
    return CliRunner(mix_stderr=False).invoke(command, arguments)


def add_fake(name, *behaviour):
    assert relay_hosts("add", f"runtime:{name}", "--", sys.executable, "-S", AGENT, *behaviour).exit_code == 0


def test_hosts_come_and_go():
    assert relay_hosts("add", "ssh:me@box").output == "Added ssh:me@box\n"
    assert relay_hosts("add", "ssh:me%40box").output == "Known already: ssh:me@box\n"
    assert relay_hosts("add", "ssh:me@box", "--transport", "openssh").output == "Changed ssh:me@box\n"
    relay_hosts("add", "runtime:pod", "--", "docker", "exec", "-i", "my pod", "relay", "serve")
    relay_hosts("add", "runtime:vm", "--shell", "ssh vm relay serve")
    assert relay_hosts("list").output.splitlines() == [
        "local        this machine",
        "ssh:me@box   SSH, by the system's ssh (openssh)",
        "runtime:pod  docker exec -i 'my pod' relay serve",
        "runtime:vm   ssh vm relay serve",
    ]
    assert json.loads(relay_hosts("list", "--json").output)[:2] == [
        {"executionHostId": "ssh:me%40box", "transport": "openssh"},
        {"executionHostId": "runtime:pod", "command": ["docker", "exec", "-i", "my pod", "relay", "serve"]},
    ]
    gone = relay_hosts("remove", "runtime:pod", "ssh:none")
    assert (gone.exit_code, gone.stdout, gone.stderr) == (1, "Removed runtime:pod\n", "ssh:none was not there\n")
    assert "pod" not in relay_hosts("list").output


@pytest.mark.parametrize(
    "arguments",
    [
        ["box"],
        ["all"],
        ["local"],
        ["ssh:-oProxyCommand=x"],
        ["ssh:box", "--", "relay"],
        ["ssh:box", "--shell", "relay serve"],
        ["ssh:box", "--transport", "telnet"],
        ["runtime:pod"],
        ["runtime:pod", "--shell", " "],
        ["runtime:pod", "--shell", "x", "--", "y"],
        ["runtime:pod", "--transport", "openssh", "--", "y"],
    ],
)
def test_what_cannot_be_added(arguments, home):
    result = relay_hosts("add", *arguments)
    assert result.exit_code == 2
    assert not (home / ".config").exists()


def test_a_host_that_answers():
    add_fake("good", "well")
    result = relay_hosts("test", "runtime:good")
    assert result.exit_code == 0
    assert result.output.startswith("runtime:good: answers (")


def test_changes_are_told_as_json():
    def told(*arguments):
        result = relay_hosts(*arguments, "--json")
        return result.exit_code, json.loads(result.stdout)

    assert told("add", "ssh:me@box") == (0, {"executionHostId": "ssh:me%40box", "outcome": "added"})
    assert told("add", "ssh:me@box") == (0, {"executionHostId": "ssh:me%40box", "outcome": "unchanged"})
    assert told("add", "ssh:me@box", "--transport", "openssh")[1]["outcome"] == "changed"
    removed = [
        {"executionHostId": "ssh:me%40box", "outcome": "removed"},
        {"executionHostId": "runtime:gone", "outcome": "absent"},
    ]
    assert told("remove", "ssh:me@box", "runtime:gone") == (1, removed)


@pytest.mark.parametrize("behaviour", [["dying"], ["not-found"]])
def test_a_hint_for_a_name_with_a_blank_can_be_pasted(behaviour):
    add_fake("my pod", *behaviour)
    assert "'runtime:my pod'" in relay_hosts("test", "runtime:my pod").output.partition("no answer")[2]


def test_every_host_is_tried():
    add_fake("good", "well")
    add_fake("bad", "dying")
    add_fake("none", "not-found")
    add_fake("off", "ancient")
    result = relay_hosts("test", "--json")
    assert result.exit_code == 4
    outcomes = {entry.pop("executionHostId"): entry for entry in json.loads(result.output)}
    assert [entry["ok"] for entry in outcomes.values()] == [True, False, False, True]
    assert outcomes["runtime:none"]["fault"] == "AgentMissing"
    assert outcomes["runtime:off"]["enabled"] is False
    assert "secret" not in result.output


def test_what_a_host_says_on_stderr_is_shown_when_asked_for():
    add_fake("none", "not-found")
    assert "secret" not in str(relay_hosts("test", "runtime:none").output)
    assert "stderr: sh: 1: /home/secret/relay: not found" in relay_hosts("test", "-v", "runtime:none").output


def test_no_host_at_all():
    result = relay_hosts("test")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "relay hosts add" in result.stderr


def test_an_unknown_host_is_not_tried():
    result = relay_hosts("test", "ssh:nowhere")
    assert result.exit_code == 2
    assert "relay-installer install ssh:nowhere" in result.stderr


def test_a_broken_file_stops_it(home):
    (home / ".config/session-relay").mkdir(parents=True)
    (home / ".config/session-relay/hosts.json").write_text("{")
    for arguments in (["list"], ["test"], ["add", "ssh:box"], ["remove", "ssh:box"]):
        result = relay_hosts(*arguments)
        assert result.exit_code == 2
        assert "~/.config/session-relay/hosts.json is not JSON (line 1" in result.stderr
