"""This machine's own answer, with everything in it: search, status and resume on a real index."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
FIRST = "0f3a9c2e-5b1d-4e8a-9c6f-2a7b8d9e0f1a"
SECOND = "1f3a9c2e-5b1d-4e8a-9c6f-2a7b8d9e0f1a"


def relay(*arguments, folder=None):
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return subprocess.run(
        [sys.executable, "-m", "relay", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
    )


@pytest.fixture
def work(tmp_path, home):
    """Two sessions of Claude Code, in a folder that exists and in one that does not, and consent."""
    for session_id, cwd, text in (
        (FIRST, tmp_path / "my work", "the reattach race of the terminal"),
        (SECOND, tmp_path / "gone", "the flaky reconnect"),
    ):
        project = home / ".claude/projects" / session_id[0]
        project.mkdir(parents=True)
        record = {"type": "user", "uuid": "a", "sessionId": session_id, "cwd": str(cwd), "gitBranch": "main"}
        record.update(timestamp="2026-03-01T09:30:00.000Z", message={"role": "user", "content": text})
        (project / f"{session_id}.jsonl").write_text(json.dumps(record) + "\n")
    (tmp_path / "my work").mkdir()
    assert relay("enable").returncode == 0
    return tmp_path / "my work"


def test_the_first_search_after_consent_already_finds(work, home):
    result = relay("search", "reattach", "race")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert f"   {home}/.claude/projects/0/{FIRST}.jsonl" in lines
    assert f"   cd '{work}' && claude --resume {FIRST}" in lines
    (hit,) = json.loads(relay("search", "reattach", "--json").stdout)["hits"]
    assert hit["source"]["filePath"].endswith(f"{FIRST}.jsonl")
    assert hit["resumeCommand"] == f"cd '{work}' && claude --resume {FIRST}"


def test_nothing_found(work):
    relay("index")
    result = relay("search", "nonesuch")
    assert (result.returncode, result.stdout, result.stderr) == (1, "", "Nothing found.\n")


def test_a_relative_folder_is_meant_from_here(work):
    assert relay("search", "the", "--path", ".", "--json", "--fresh", folder=work).stdout.count('"sessionId"') == 1
    assert relay("search", "the", "--path", "..", "--json", folder=work).stdout.count('"sessionId"') == 2


def test_pages_and_filters(work):
    first = json.loads(relay("search", "the", "--limit", "1", "--json", "--fresh").stdout)
    assert first["page"]["hasMore"]
    second = json.loads(relay("search", "the", "--limit", "1", "--json", "--cursor", first["page"]["cursor"]).stdout)
    assert {hit["sessionId"] for hit in first["hits"] + second["hits"]} == {FIRST, SECOND}
    assert relay("search", "the", "--agent", "codex").returncode == 1
    assert relay("search", "the", "--since", "2026-03-02").returncode == 1
    assert relay("search", "the", "--since", "2026-03-01T09:00Z", "--sort", "newest").returncode == 0
    assert relay("search", "other", "--cursor", first["page"]["cursor"]).returncode == 2


def test_a_report_when_it_is_asked_for(work):
    result = relay("search", "flaky", "--debug", "--fresh")
    assert "scope all, generation" in result.stdout
    assert "1 hits in " in result.stdout


def test_the_status_is_that_of_an_agent_that_has_looked_around(work):
    relay("index")
    result = relay("status")
    assert result.returncode == 0
    assert "local: on, up to date" in result.stdout
    assert "2 indexed, 0 waiting, 0 failed" in result.stdout


def test_resume_prints_what_the_reader_stored(work):
    assert relay("index").returncode == 0
    assert relay("resume", FIRST).stdout == f"cd '{work}' && claude --resume {FIRST}\n"
    assert relay("resume", "--agent", "claude", SECOND).stdout == f"claude --resume {SECOND}\n"
    told = json.loads(relay("resume", "--json", FIRST).stdout)
    assert set(told) == {"agent", "sessionId", "command", "shell"}


@pytest.mark.parametrize(
    "arguments, said",
    [(["no-such-session"], "no such session"), (["--agent", "codex", FIRST], "no such session")],
)
def test_what_cannot_be_resumed(work, arguments, said):
    relay("index")
    result = relay("resume", *arguments)
    assert (result.returncode, result.stdout) == (1, "")
    assert said in result.stderr


def test_a_session_whose_transcript_is_gone_is_not_resumed(work, home):
    relay("index")
    (home / f".claude/projects/0/{FIRST}.jsonl").unlink()
    assert relay("resume", FIRST).returncode == 1


def test_resume_needs_consent_and_an_index(work):
    assert relay("resume", FIRST).returncode == 3
    relay("index")
    relay("disable")
    result = relay("resume", FIRST)
    assert result.returncode == 3
    assert "relay enable" in result.stderr
