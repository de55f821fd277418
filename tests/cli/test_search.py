"""``relay search`` and ``relay status`` against hosts that are real processes, and this machine without consent."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from relay.cli import search, status
from relay.client.host_ids import parse
from relay.client.hosts_file import Host, add
from relay.client.merge import decode_cursor
from relay.paths import config_folder

AGENT = str(Path(__file__).parents[1] / "client" / "fake_agent.py")


def invoke(command, *arguments):
    return CliRunner(mix_stderr=False).invoke(command, arguments)


def relay_search(*arguments):
    return invoke(search.command, *arguments)


def relay_status(*arguments):
    return invoke(status.command, *arguments)


@pytest.fixture
def host():
    """Adds a host that behaves as named; gives its id."""

    def add_host(behaviour, *details):
        host_id = parse(f"runtime:{behaviour}")
        add(config_folder(), Host(host_id, command=(sys.executable, "-S", AGENT, behaviour, *details)))
        return str(host_id)

    return add_host


def test_an_answer_for_people(host):
    result = relay_search("word", "--host", host("well"), "--limit", "2")
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0] == " 1 Session well-0"
    assert "   user: the [[word]] here" in lines
    assert "   relay resume --host runtime:well --agent claude session-well-0" in lines
    assert lines[-1] == "There is more: repeat the command with --cursor 2"


def test_an_answer_for_programs(host):
    name = host("leaking")
    result = relay_search("word", "--host", name, "--json")
    answer = json.loads(result.stdout)
    assert answer["hits"][0]["executionHostId"] == name
    assert answer["hits"][0]["title"] == "red"
    assert "secret" not in result.stdout
    assert result.stdout.isascii()


def test_pages_follow_each_other(host):
    name = host("well")
    first = json.loads(relay_search("word", "--host", name, "--limit", "20", "--json").stdout)
    second = json.loads(relay_search("word", "--host", name, "--json", "--cursor", first["page"]["cursor"]).stdout)
    assert len(first["hits"]) == 20
    assert len(second["hits"]) == 10
    assert second["page"] == {"cursor": None, "hasMore": False}


@pytest.mark.parametrize(
    "behaviour, code, said",
    [
        ("disabled", 3, "Its account turns it on"),
        ("ancient", 3, "too old"),
        ("dying", 4, "ended before it answered"),
        ("not-found", 4, "There is no agent on runtime:not-found"),
        ("lying", 4, "up to date"),
        ("failing", 4, "failed inside"),
    ],
)
def test_no_answer_has_its_reason_and_exit_code(host, behaviour, code, said):
    result = relay_search("word", "--host", host(behaviour))
    assert result.exit_code == code
    assert said in result.stderr
    assert result.stdout == ""
    assert "secret" not in result.stderr


def test_a_host_that_takes_too_long(host):
    result = relay_search("word", "--host", host("silent"), "--timeout", "0.5")
    assert result.exit_code == 4
    assert "--timeout" in result.stderr


@pytest.mark.parametrize("text", ["box", "ssh:", "everywhere", "", "ALL", "ssh:box"])
@pytest.mark.parametrize(
    "ask", [lambda host: relay_search("word", "--host", host), lambda host: relay_status("--host", host)]
)
def test_a_text_that_names_no_known_host_is_refused(ask, text):
    result = ask(text)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "no" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["word", "--agent", "nobody"],
        ["word", "--since", "soon"],
        ["word", "--limit", "many"],
        ["word", "--sort", "oldest"],
        ["word", "--scope", "some"],
        ["word", "--host", "runtime:x", "--path", "relative"],
        ["word", "--path", ""],
        ["word", *["--path", "/x"] * 65],
    ],
)
def test_what_cannot_be_asked(arguments):
    result = relay_search(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""


def test_this_machine_without_consent_says_how_to_give_it(home):
    for result in (relay_search("word"), relay_status()):
        assert result.exit_code == 3
        assert "relay enable" in result.stderr
    assert json.loads(relay_search("word", "--json").stdout) == {"kind": "unavailable", "reason": "disabled"}
    assert list(home.iterdir()) == []


def test_all_hosts_as_one_list(host):
    names = [host(behaviour) for behaviour in ("well", "noisy", "dying", "ancient")]
    result = relay_search("word", "--host", "all", "--limit", "4", "--json")
    answer = json.loads(result.stdout)
    assert result.exit_code == 0
    assert [hit["sessionId"] for hit in answer["hits"]] == [
        "session-well-0",
        "session-noisy-0",
        "session-well-1",
        "session-noisy-1",
    ]
    assert [(leg["executionHostId"], leg["outcome"]) for leg in answer["hosts"]] == [
        ("local", "unavailable"),
        (names[0], "results"),
        (names[1], "results"),
        (names[2], "unreachable"),
        (names[3], "unavailable"),
    ]
    assert decode_cursor(answer["page"]["cursor"]) == {names[0]: "2", names[1]: "2"}
    assert "No answer from runtime:dying: runtime:dying ended before" in result.stderr
    assert "No answer from local: Search is off on this machine." in result.stderr
    following = relay_search("word", "--host", "all", "--cursor", answer["page"]["cursor"])
    assert following.stderr == ""
    assert "Session noisy-9" in following.stdout


def test_all_hosts_without_an_answer(host):
    host("dying")
    assert relay_search("word", "--host", "all").exit_code == 4


def test_all_hosts_off():
    assert relay_search("word", "--host", "all").exit_code == 3


def test_a_cursor_of_something_else(host):
    result = relay_search("word", "--host", "all", "--cursor", "nonsense")
    assert result.exit_code == 2
    assert "cursor" in result.stderr


def test_a_broken_hosts_file_does_not_keep_this_machine_from_answering(home):
    (home / ".config/session-relay").mkdir(parents=True)
    (home / ".config/session-relay/hosts.json").write_text("{")
    assert relay_search("word").exit_code == 3
    for name in ("all", "ssh:box"):
        result = relay_search("word", "--host", name)
        assert result.exit_code == 2
        assert "hosts.json" in result.stderr


def test_the_status_of_a_host(host):
    name = host("well")
    result = relay_status("--host", name)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "runtime:well: on, up to date"
    assert "not verified: Source root could not be verified." in result.stdout
    answer = json.loads(relay_status("--host", name, "--json").stdout)
    assert answer["degradedRoots"] == [{"reason": "Source root could not be verified."}]


def test_the_status_of_all(host):
    for behaviour in ("well", "ancient", "dying"):
        host(behaviour)
    result = relay_status("--host", "all")
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0][0] == "HOST"
    assert [row[:2] for row in rows[1:]] == [
        ["local", "off"],
        ["runtime:well", "on,"],
        ["runtime:ancient", "off"],
        ["runtime:dying", "no"],
    ]
    assert "No answer from runtime:dying" in result.stderr
    entries = json.loads(relay_status("--host", "all", "--json").stdout)["hosts"]
    assert [entry["outcome"] for entry in entries] == ["status", "status", "status", "unreachable"]
    assert entries[1]["status"]["filesIndexed"] == 5


@pytest.mark.parametrize("command", [search.command, status.command])
def test_help_has_an_example_and_the_exit_codes(command):
    text = invoke(command, "--help").stdout
    assert "Examples:" in text
    assert "Exit codes: 0" in text
