"""Asking a host for the command that reopens a session, and the line that runs it from here."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys

import pytest

from relay.client import resume
from relay.client.faults import AgentMissing, ClientFault, ConnectionLost, ProtocolFault, TimedOut
from relay.client.host_ids import parse
from relay.client.hosts_file import Host

SAID = {"agent": "claude", "sessionId": "s1", "command": "cd '/my src' && claude --resume s1", "shell": "/bin/zsh"}


def runtime(code, *command):
    """A runtime whose agent is the Python ``code``; the arguments come behind."""
    return Host(parse("runtime:pod"), command=(sys.executable, "-S", "-c", code, *(command or ("serve",))))


def ask(host, session_id="s1", timeout=30):
    return resume.ask(host, "claude", session_id, timeout, interactive=False)


def test_a_runtime_is_asked_with_its_own_command():
    code = f"import sys; print('Welcome'); print({json.dumps(SAID)!r}); print(sys.argv[1:]); print('{{}}')"
    assert ask(runtime(code)) == resume.Resume(SAID["command"], SAID["command"])


def test_the_question_is_one_the_command_line_knows():
    code = "import json, sys; print(json.dumps({'command': ' '.join(sys.argv[1:]), 'shell': ''}))"
    assert ask(runtime(code), "-s1").command == "resume --json --agent claude -- -s1"


@pytest.mark.parametrize(
    "code, fault",
    [
        ("import sys; sys.exit(1)", resume.NoSuchSession),
        ("import sys; sys.exit(2)", ProtocolFault),
        ("import sys; sys.exit(3)", ClientFault),
        ("import sys; sys.exit(127)", AgentMissing),
        ("import sys; sys.stderr.write('/x/relay: No such file or directory'); sys.exit(2)", AgentMissing),
        ("import sys; sys.exit(9)", ConnectionLost),
        ("print('hello')", ConnectionLost),
        ("""print('{"command": "a\\\\u001b[2Jb", "shell": "sh"}')""", ProtocolFault),
        ("""print('{"command": 1, "shell": "sh"}')""", ConnectionLost),
    ],
)
def test_no_command_is_a_fault(code, fault):
    with pytest.raises(fault, match="runtime:pod"):
        ask(runtime(code))


def test_a_host_that_takes_too_long():
    with pytest.raises(TimedOut):
        ask(runtime("import time; time.sleep(60)"), timeout=0.3)


def test_a_runtime_that_cannot_be_asked():
    with pytest.raises(AgentMissing, match="inside it"):
        ask(Host(parse("runtime:pod"), command="kubectl exec pod -- relay serve"))


def test_an_id_that_cannot_be_passed_on_is_no_id():
    with pytest.raises(resume.NoSuchSession):
        ask(Host(parse("ssh:box")), "nul\0here")


FOLDERS = [
    "plain",
    'it\'s a $HOME "folder"',
    "ünï cödé",
    "'; touch harm; '",
    "$(touch harm)",
    "`touch harm`",
    "\\'\\; touch harm #",
    "\\",
    "a!b!!c^x^y",
    "line\nbreak",
    "\x1b[31mred\x9b",
    "%s %b %d",
]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "dash", "tcsh", "nu"])
def test_the_line_survives_every_login_shell(shell, tmp_path):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    for name in FOLDERS:
        folder = tmp_path / name
        folder.mkdir()
        command = f"cd {shlex.quote(str(folder))} && printf '[%s]' \"$PWD\" '[a] $b'"
        line = resume._line(Host(parse("ssh:me@box:22")), command, program)
        assert line.isprintable()
        ssh, tty, box, remote = shlex.split(line)
        assert (ssh, tty, box) == ("ssh", "-t", "ssh://me@box:22")
        # sshd hands the line to the login shell like this
        result = subprocess.run(
            [program, "-c", remote], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, cwd=tmp_path
        )
        assert result.stdout.decode().endswith(f"[{folder}][[a] $b]"), (name, result)
    assert not list(tmp_path.rglob("harm")), "a folder's name was run as a command"


def test_a_plain_command_stays_one_to_read():
    line = resume._line(Host(parse("ssh:box")), "cd /src && claude --resume s1", "/bin/zsh")
    assert shlex.split(line)[3] == "exec zsh -lic 'cd /src && claude --resume s1'"
