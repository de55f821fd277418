"""``relay agents``: what is known, where it is looked for, what was found and what was not read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict

import pytest
from click.testing import CliRunner

from relay import paths, policy
from relay.cli import agents
from relay.indexer.full_pass import run_full_pass
from relay.transcripts.registry import Env
from relay.transcripts.rows import AGENTS

T = 1767607200


def goose_session(text: str) -> str:
    lines: Any = [
        {"working_dir": "/w", "description": "Talk"},
        {"role": "user", "created": T, "content": [{"type": "text", "text": text}]},
    ]
    return "\n".join(json.dumps(one) for one in lines) + "\n"


@pytest.fixture
def transcripts(home: Path) -> Path:
    """Two sessions, an empty one and a broken database of Goose; a torn document of Hermes."""
    folder = home / ".local/share/goose/sessions"
    folder.mkdir(parents=True)
    (folder / "one.jsonl").write_text(goose_session("the secret word"))
    (folder / "two.jsonl").write_text(goose_session("another") + '{"role": "oracle"}\n')
    (folder / "empty.jsonl").write_text('{"working_dir": "/w"}\n')
    (folder / "sessions.db").write_bytes(b"no database" * 100)
    hermes = home / ".hermes/sessions"
    hermes.mkdir(parents=True)
    (hermes / "session_x.json").write_text('{"messages": [{"role": "us')
    for path in (*folder.iterdir(), *hermes.iterdir()):
        os.utime(path, (T, T))
    return folder


def report(*names: str) -> Dict[str, Any]:
    result = CliRunner().invoke(agents.command, ["--json", *names])
    assert result.exit_code == 0
    return {entry["agent"]: entry for entry in json.loads(result.stdout)["agents"]}


def shown(*names: str) -> str:
    result = CliRunner().invoke(agents.command, names)
    assert result.exit_code == 0
    return result.stdout


def enable(home: Path, read: bool = True) -> None:
    policy.write(paths.config_folder(), policy.Policy(enabled=True))
    if read:
        run_full_pass(paths.state_folder(), Env(str(home)), None, lambda progress: None)


def test_every_agent_is_listed_with_where_it_would_be(home: Path) -> None:
    found = report()
    assert set(found) == {agent.name for agent in AGENTS}
    assert found["goose"]["places"][0] == {
        "store": "database",
        "path": str(home / ".local/share/goose/sessions"),
        "found": False,
        "files": 0,
        "bytes": 0,
        "problem": None,
    }
    assert "hermes       -         -      -     -       ~/.hermes" in shown()


def test_without_consent_only_names_sizes_and_times_are_looked_at(home: Path, transcripts: Path) -> None:
    projects = home / ".local/share/crush/projects.json"
    projects.parent.mkdir()
    projects.write_text('{"projects": [{"path": "/w", "data_dir": "/w/.crush"}]}')
    program = (
        "import sys\n"
        "sys.addaudithook(lambda event, args: event in ('open', 'sqlite3.connect')"
        f" and {str(home)!r} in str(args[0]) and print(event, args[0], file=sys.stderr))\n"
        "from relay.cli.agents import command\n"
        "command(['--json'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    opened = [one for one in done.stderr.splitlines() if "policy.json" not in one]
    assert opened == []
    answer = json.loads(done.stdout)
    goose = next(entry for entry in answer["agents"] if entry["agent"] == "goose")
    assert (answer["enabled"], answer["indexed"]) == (False, False)
    assert (goose["files"], goose["sessions"], goose["newest"]) == (4, None, T * 1000)
    assert goose["bytes"] == sum(path.stat().st_size for path in transcripts.iterdir())
    assert "`relay enable` turns it on" in shown()
    assert not (home / ".local/state").exists()


def test_with_an_index_sessions_failures_and_what_was_left_out_are_told(home: Path, transcripts: Path) -> None:
    enable(home)
    found = report("goose", "hermes")
    assert list(found) == ["goose", "hermes"]
    goose, hermes = found["goose"], found["hermes"]
    counts = {name: goose[name] for name in ("sessions", "files", "empty", "failed", "unknownRecords", "newest")}
    assert counts == {"sessions": 2, "files": 4, "empty": 1, "failed": 1, "unknownRecords": 1, "newest": T * 1000}
    assert goose["failures"] == [
        {"path": str(transcripts / "sessions.db"), "reason": "The file is not a SQLite database."}
    ]
    assert (hermes["sessions"], hermes["failed"]) == (0, 1)
    text = shown("goose")
    assert "goose: not read: ~/.local/share/goose/sessions/sessions.db: The file is not a SQLite database." in text
    assert "goose: left out, since their kind is not known: 1 record" in text
    assert "goose: left out, since nothing was said in them: 1 file" in text
    assert "hermes" not in text and "enable" not in text


def test_enabled_and_nothing_indexed_yet(home: Path, transcripts: Path) -> None:
    enable(home, read=False)
    assert report("goose")["goose"]["files"] == 4
    assert "`relay index` does it now" in shown()


def test_after_disabling_the_copy_is_not_asked(home: Path, transcripts: Path) -> None:
    enable(home)
    policy.write(paths.config_folder(), policy.Policy(enabled=False))
    assert report("goose")["goose"]["sessions"] is None


def test_many_failures_are_counted_and_a_name_is_made_safe(home: Path) -> None:
    folder = home / ".hermes/sessions"
    folder.mkdir(parents=True)
    for number in range(5):
        (folder / f"session_\x1b[31m{number}.json").write_text("{")
    enable(home)
    text = shown("hermes")
    assert "\x1b" not in text
    assert text.count("not read: ") == 2 and "hermes: 5 not read in all" in text
    assert len(report("hermes")["hermes"]["failures"]) == 5


def test_an_unknown_name_is_a_wrong_command_line() -> None:
    assert CliRunner().invoke(agents.command, ["nobody"]).exit_code == 2
