"""The real agent behind a real sshd, as a person meets it: search, status, resume; and no folder of the box is told."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from relay.client.launcher import LAUNCHER
from tests.support import sshd

PROJECT = Path(__file__).parents[2]
MARKER = "mArKeR"
SESSION = "0f3a9c2e-5b1d-4e8a-9c6f-2a7b8d9e0f1a"
SAID = "the reattach race of the terminal"

pytestmark = pytest.mark.skipif(not sshd.AVAILABLE, reason="needs OpenSSH's sshd")


def transcript(session_id, text, cwd):
    head = {"sessionId": session_id, "cwd": cwd, "gitBranch": "main", "timestamp": "2026-03-01T09:30:00.000Z"}
    message = {"role": "user", "content": text}
    return json.dumps({**head, "type": "user", "uuid": "a", "message": message}) + "\n"


@pytest.fixture
def box(tmp_path):
    """An account on another machine: every folder of ours is marked; it has the agent, consent and one session."""
    account = tmp_path / "account"
    variables = {
        "CLAUDE_CONFIG_DIR": str(account / f"{MARKER}-claude"),
        "XDG_STATE_HOME": str(account / f"{MARKER}-state"),
        "PYTHONPATH": str(PROJECT),
    }
    with sshd.running(tmp_path / "sshd", account, variables=variables) as server:
        launcher = Path(LAUNCHER.replace("~", str(account)))
        launcher.parent.mkdir(parents=True)
        launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m relay "$@"\n')
        server.folder_of_work = tmp_path / "work"
        server.folder_of_work.mkdir()
        project = account / f"{MARKER}-claude" / "projects" / f"-{MARKER}-work"
        project.mkdir(parents=True)
        (project / f"{SESSION}.jsonl").write_text(transcript(SESSION, SAID, str(server.folder_of_work)))
        server.state = account / f"{MARKER}-state" / "session-relay"
        server.claude = account / f"{MARKER}-claude"
        yield server


@pytest.fixture
def relay(box, home):
    """Runs our command line here, where ``ssh:box`` is configured."""
    environment = {**os.environ, "SESSION_RELAY_SSH_CONFIG": str(box.write_config()), "PYTHONPATH": str(PROJECT)}

    def run(*arguments):
        command = [sys.executable, "-m", "relay", *arguments]
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
        )
        assert "Traceback" not in result.stderr
        return result

    assert run("hosts", "add", "ssh:box").returncode == 0
    return run


def on_box(box, *arguments):
    environment = {**os.environ, "HOME": str(box.home), "CLAUDE_CONFIG_DIR": str(box.claude)}
    environment.update(XDG_STATE_HOME=str(box.state.parent), PYTHONPATH=str(PROJECT))
    return subprocess.run(
        [sys.executable, "-m", "relay", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


@pytest.mark.parametrize("transport", ["paramiko", "openssh"])
def test_the_main_job(box, relay, transport):
    assert relay("hosts", "add", "ssh:box", "--transport", transport).returncode == 0
    refused = relay("search", "reattach race", "--host", "ssh:box")
    assert refused.returncode == 3
    assert "ssh box '/bin/sh ~/.local/share/session-relay/relay enable'" in refused.stderr
    assert not box.state.exists()

    on_box(box, "enable")
    found = relay("search", "reattach", "race", "--host", "ssh:box", "--fresh")
    assert found.returncode == 0, found.stderr
    assert f"relay resume --host ssh:box --agent claude {SESSION}" in found.stdout
    assert "[[reattach]] [[race]]" in found.stdout

    told = relay("status", "--host", "ssh:box")
    assert "ssh:box: on" in told.stdout
    assert "1 indexed" in told.stdout

    answer = json.loads(relay("search", "reattach", "--host", "all", "--json").stdout)
    assert [hit["executionHostId"] for hit in answer["hits"]] == ["ssh:box"]
    assert answer["hosts"][0] == {"executionHostId": "local", "outcome": "unavailable"}
    tested = json.loads(relay("hosts", "test", "--json").stdout)
    assert [(entry["executionHostId"], entry["ok"], entry["enabled"]) for entry in tested] == [("ssh:box", True, True)]


def test_resume_goes_there_by_ssh(box, relay):
    on_box(box, "enable")
    assert relay("search", "reattach", "--host", "ssh:box", "--fresh").returncode == 0
    printed = relay("resume", "--host", "ssh:box", "--agent", "claude", SESSION)
    assert printed.returncode == 0, printed.stderr
    words = shlex.split(printed.stdout)
    assert words[:3] == ["ssh", "-t", "box"]
    # A stand-in for the agent shows where it was started, and how.
    program = box.folder / "bin" / "claude"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$PWD" "$@"\n')
    program.chmod(0o755)
    remote = f"PATH={program.parent}:$PATH; export PATH; " + words[3].replace("-lic", "-c").replace("-lc", "-c")
    ran = subprocess.run(
        ["ssh", "-F", str(box.folder / "ssh_config"), "box", remote], capture_output=True, text=True, timeout=60
    )
    assert ran.stdout.split() == [str(box.folder_of_work), "--resume", SESSION], ran.stderr
    assert relay("resume", "--host", "ssh:box", "no-such-session").returncode == 1
    assert json.loads(on_box(box, "resume", "--json", SESSION).stdout)["command"].startswith(
        f"cd {box.folder_of_work} && "
    )


def test_a_box_without_an_agent(box, relay):
    shutil.rmtree(box.home / ".local")
    for arguments in (["search", "x"], ["status"], ["resume", SESSION]):
        result = relay(*arguments, "--host", "ssh:box")
        assert result.returncode == 4
        assert "relay-installer install ssh:box" in result.stderr


def test_no_folder_of_the_box_is_told(box, relay):
    """Errors, a degraded root and a damaged index included."""
    there = ["--host", "ssh:box"]
    questions = [
        ["search", "reattach", "--fresh", "--debug", "--json", *there],
        ["search", "reattach", "--cursor", "eyJ4IjoxfQ", *there],
        ["search", "path:work", "--host", "all"],
        ["status", *there],
        ["hosts", "test"],
    ]
    said = []

    def ask_everything():
        with ThreadPoolExecutor(3) as pool:
            for result in pool.map(lambda arguments: relay(*arguments), questions):
                said.append(result.stdout + result.stderr)

    ask_everything()
    on_box(box, "enable", "--root", f"codex={box.home}/{MARKER}-absent")
    ask_everything()
    assert SESSION in "".join(said)
    projects = box.claude / "projects"
    projects.rename(box.claude / "away")
    projects.write_text("no folder any more")
    ask_everything()
    projects.unlink()
    (box.claude / "away").rename(projects)
    database = box.state / "index.db"
    database.write_bytes(b"damaged" * 1000)
    ask_everything()
    (box.home / ".config/session-relay/policy.json").write_text("{")
    ask_everything()
    assert MARKER not in "".join(said)
