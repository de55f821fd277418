"""``relay enable``, ``disable`` and ``clear`` as a person types them."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from relay import paths, policy
from relay.policy import Policy
from tests.support.serving import claude_session, run


def out(*arguments: str, code: int = 0) -> str:
    done = run(*arguments)
    assert done.returncode == code, done.stderr
    return (done.stdout + done.stderr).decode()


def decided() -> Policy:
    return policy.read(paths.config_folder())


def index_file() -> Path:
    return Path(paths.state_folder(), "index.db")


def test_enable_says_what_is_read_where_the_index_is_and_how_to_undo_it(home: Path) -> None:
    claude_session(home, "s1", "the reattach race")
    said = out("enable")
    assert decided().enabled and decided().history_days is None
    assert str(home / ".claude/projects") in said
    assert paths.state_folder() in said
    assert "relay disable" in said


def test_enable_where_no_agent_was_used_yet() -> None:
    assert "none yet" in out("enable")
    assert decided().enabled


def test_what_is_not_named_again_stays() -> None:
    out(
        "enable", "--history-days", "30", "--root", "claude=/srv/a", "--root", "claude=/srv/b", "--root", "codex=/srv/c"
    )
    first = decided()
    assert (first.history_days, dict(first.roots)) == (30, {"claude": ("/srv/a", "/srv/b"), "codex": ("/srv/c",)})
    out("enable")
    assert decided() == first
    out("disable")
    assert decided() == Policy(False, 30, first.roots, first.epoch)
    out("enable", "--history-days", "0", "--root", "pi=/srv/p")
    assert decided() == Policy(True, None, {"pi": ("/srv/p",)}, first.epoch)
    out("enable", "--no-roots")
    assert decided() == Policy(True, None, {}, first.epoch)


def test_a_root_is_made_whole_and_may_come_later(home: Path) -> None:
    said = out("enable", "--root", "claude=~/later")
    assert decided().roots == {"claude": (str(home / "later"),)}
    assert "There is no folder" in said


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--root", "claude"], "AGENT=PATH"),
        (["--root", "claude="], "AGENT=PATH"),
        (["--root", "clod=/srv"], "'clod' is no agent"),
        (["--history-days", "-1"], "--history-days"),
        (["--history-days", "many"], "--history-days"),
        (["--root", "claude=/srv", "--no-roots"], "exclude"),
    ],
)
def test_what_cannot_be_meant_changes_nothing(arguments: Any, named: str) -> None:
    assert named in out("enable", *arguments, code=2)
    assert policy.signature(paths.config_folder()) is None


def test_a_python_that_can_have_no_index_is_told_at_once() -> None:
    code = (
        "import sys; sys.modules['sqlite3'] = None; sys.argv[1:] = ['enable']; from relay.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    assert done.stderr.startswith(b"This Python was built without sqlite3.")
    assert decided().enabled


def test_json_for_programs(home: Path) -> None:
    answer = {"enabled": True, "historyDays": 9, "roots": {}, "stateFolder": str(home / ".local/state/session-relay")}
    assert json.loads(out("enable", "--history-days", "9", "--json")) == answer
    assert json.loads(out("clear", "--json")) == answer
    assert json.loads(out("disable", "--clear", "--json")) == {**answer, "enabled": False}


def test_disable_keeps_the_index_and_clear_removes_it(home: Path) -> None:
    transcript = claude_session(home, "s1", "the reattach race")
    written = transcript.read_bytes()
    out("enable")
    out("index")
    assert index_file().exists()
    assert "stays" in out("disable")
    assert index_file().exists()
    epoch = decided().epoch
    assert "Search is off" in out("clear")
    assert not list(index_file().parent.glob("index.db*"))
    assert not decided().enabled
    out("enable")
    out("index")
    assert "new one is built" in out("clear")
    assert not index_file().exists()
    assert decided().enabled and not decided().clearing and decided().epoch != epoch
    out("index")
    out("disable", "--clear")
    assert not index_file().exists()
    assert transcript.read_bytes() == written


def test_clear_where_there_is_nothing() -> None:
    out("clear")
    out("clear")
    assert not os.path.exists(paths.state_folder())


def test_clear_says_when_another_process_does_not_let_go(home: Path) -> None:
    claude_session(home, "s1", "the reattach race")
    out("enable")
    out("index")
    with open(Path(paths.state_folder(), "writer.lock"), "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            [sys.executable, "-c", "from relay.cli import consent; consent.PATIENCE = 0.3; consent.clear()"],
            capture_output=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert b"could not be removed" in done.stderr and b"Traceback" not in done.stderr
    assert index_file().exists()
    assert decided().enabled and not decided().clearing


def test_two_clears_at_once(home: Path) -> None:
    claude_session(home, "s1", "the reattach race")
    out("enable")
    out("index")
    clears = [threading.Thread(target=out, args=("clear",)) for _ in range(3)]
    for clear in clears:
        clear.start()
    for clear in clears:
        clear.join()
    assert decided().enabled and not decided().clearing
    assert not index_file().exists()


def test_a_config_folder_that_cannot_be_written_is_named(home: Path) -> None:
    (home / ".config").write_text("in the way")
    said = out("enable", code=1)
    assert "cannot be written" in said and "nothing was changed" in said and "Traceback" not in said


@pytest.mark.parametrize("command", [("disable",), ("disable", "--clear")])
def test_turning_off_advises_nothing_that_leaves_agents_on(home: Path, command: tuple[str, ...]) -> None:
    (home / ".config").write_text("in the way")
    said = out(*command, code=1)
    assert "Search is as it was. Make the folder" in said and "XDG_CONFIG_HOME" not in said


@pytest.mark.parametrize("command", ["enable", "disable", "clear", "serve"])
def test_help_holds_an_example(command: str) -> None:
    assert f"relay {command}" in out(command, "--help").replace("| relay serve", "relay serve")


def test_the_group_names_its_commands_and_its_version() -> None:
    from relay import __version__

    said = out("--help")
    for name in ("search", "resume", "status", "hosts", "agents", "enable", "disable", "clear", "index", "serve"):
        assert f"\n  {name} " in said
    assert out("--version") == f"relay, version {__version__}\n"
    assert "No such command" in out("surch", code=2)


def test_completion_knows_commands_agents_and_options() -> None:
    def completed(words: str, place: int) -> str:
        variables = {**os.environ, "_RELAY_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(place)}
        done = subprocess.run(
            [sys.executable, "-m", "relay"], env=variables, capture_output=True, timeout=60, check=False
        )
        return done.stdout.decode()

    assert "plain,search" in completed("relay se", 1) and "plain,serve" in completed("relay se", 1)
    assert "plain,--history-days" in completed("relay enable --h", 2)
    assert "plain,--version" in completed("relay --v", 1)
    assert "plain,codex=" in completed("relay enable --root co", 3)


def test_serving_imports_no_click_and_no_ssh() -> None:
    heavy = {"click", "paramiko", "watchdog", "peewee", "argparse", "asyncio", "sqlite3"}
    code = f"import sys, relay.cli.serve; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    assert done.stdout == b"[]\n"
