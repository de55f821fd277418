"""relay-installer as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from installer import bundle
from installer.__main__ import main
from tests.support import agents, boxes, sshd


@pytest.fixture(scope="module")
def real() -> bundle.Bundle:
    """The real agent, built once."""
    return bundle.build()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> bundle.Bundle:
    """The agent that every command takes here: small, and quickly installed."""
    built = agents.agent()
    monkeypatch.setattr(bundle, "build", lambda: built)
    return built


@pytest.fixture
def take_real(real: bundle.Bundle, small: bundle.Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of this test takes the real agent."""
    monkeypatch.setattr(bundle, "build", lambda: real)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The exit code and both outputs of a command."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments), prog_name="relay-installer")
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


def hosts(home: Path) -> Any:
    path = home / ".config/session-relay/hosts.json"
    return json.loads(path.read_text())["ssh"] if path.exists() else {}


def test_hosts_of_another_version_are_left_and_the_agent_comes_and_goes(
    box: sshd.Sshd, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / ".config/session-relay/hosts.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"version": 2, "ssh": {}}')
    code, out, _ = run(capsys, "install", "box")
    assert code == 0 and "Installed" in out and "could not be added" in out and "Upgrade Session Relay" in out
    assert path.read_text() == '{"version": 2, "ssh": {}}'
    path.write_text('{"version": 2, "ssh": {"box": {}}}')
    code, out, _ = run(capsys, "uninstall", "box")
    assert code == 0 and "Removed" in out and "could not be taken out" in out
    assert path.read_text() == '{"version": 2, "ssh": {"box": {}}}'


def test_install_remembers_the_host_and_says_how_to_turn_it_on(
    box: sshd.Sshd, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "install", "box")
    assert (code, err) == (0, "")
    assert "Installed" in out
    assert "ssh box '/bin/sh ~/.local/share/session-relay/relay enable'" in out
    assert hosts(home) == {"box": {}}
    code, out, _ = run(capsys, "install", "ssh:box")
    assert (code, "Already up to date" in out, "now in your hosts" in out) == (0, True, False)
    assert not (box.home / ".config/session-relay/policy.json").exists()


@pytest.mark.usefixtures("take_real")
def test_the_line_that_is_printed_turns_it_on(box: sshd.Sshd, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "install", "box")
    line = run(capsys, "install", "box")[1].split("to turn it on: ")[1].strip()
    command = line.replace("ssh ", f"ssh -F {box.folder}/ssh_config ", 1)
    subprocess.run(["/bin/sh", "-c", command], check=True, capture_output=True)
    assert "Indexing there is on, as it was." in run(capsys, "install", "box")[1]
    assert json.loads(run(capsys, "install", "box", "--json")[1])["enabled"] is True


@pytest.mark.usefixtures("take_real")
def test_enable_runs_the_boxes_own_command(box: sshd.Sshd, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "install", "box", "--enable", "--history-days", "30", "--json")
    report = json.loads(out)
    assert (code, report["state"], report["enabled"]) == (0, "new", True)
    policy = json.loads((box.home / ".config/session-relay/policy.json").read_text())
    assert 30 in policy.values()
    code, out, _ = run(capsys, "install", "box", "--no-enable", "--json")
    assert json.loads(out)["enabled"] is True
    assert run(capsys, "install", "box", "--history-days", "3")[0] == 2


def test_the_transport_is_remembered(box: sshd.Sshd, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "install", "box", "--transport", "openssh")[0] == 0
    assert hosts(home) == {"box": {"transport": "openssh"}}
    assert run(capsys, "install", "box")[0] == 0
    assert hosts(home) == {"box": {"transport": "openssh"}}


def test_check_lists_what_it_finds(box: sshd.Sshd, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "check", "box")
    assert code == 0
    assert "not-installed" in out
    run(capsys, "install", "box")
    code, out, _ = run(capsys, "check", "box", "--json")
    levels = {finding["name"]: finding["level"] for finding in json.loads(out)["findings"]}
    assert levels["installed"] == "ok"
    assert levels["disabled"] == "note"


def test_uninstall_proves_it_and_forgets_the_host(
    box: sshd.Sshd, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "install", "box", "--enable")
    code, out, _ = run(capsys, "uninstall", "box", "--purge", "-v")
    assert (code, hosts(home), boxes.tree(box.home)) == (0, {}, {})
    assert "relay/start.py" in out
    assert "none of them is left" in out
    code, out, _ = run(capsys, "uninstall", "box")
    assert (code, out) == (0, "There was nothing to remove.\n")


def test_upgrade_shows_a_table_in_which_one_failure_stops_nothing(
    box: sshd.Sshd,
    home: Path,
    capsys: pytest.CaptureFixture[str],
    small: bundle.Bundle,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = box.folder / "ssh_config"
    dead = f"Host dead\n    HostName 127.0.0.1\n    Port {sshd.free_port()}\n"
    config.write_text(box.config("box") + box.config("same") + dead)
    newer = bundle.pack("99.0", {"__main__.py": b"raise SystemExit(1)"})
    assert run(capsys, "install", "box")[0] == 0
    (home / ".config/session-relay/hosts.json").write_text(json.dumps({"ssh": {"box": {}, "dead": {}}}))
    code, out, _ = run(capsys, "upgrade", "--all")
    table = {line.split()[0]: line.split()[1] for line in out.splitlines()}
    assert (code, table) == (10, {"ssh:box": "unchanged", "ssh:dead": "failed"})

    monkeypatch.setattr(bundle, "build", lambda: newer)
    code, out, _ = run(capsys, "upgrade", "box", "--json")
    [report] = json.loads(out)
    assert (code, report["fault"]) == (26, "agent-fails")
    monkeypatch.setattr(bundle, "build", lambda: small)
    assert "whole" in run(capsys, "check", "box")[1]
    assert run(capsys, "upgrade")[0] == run(capsys, "upgrade", "box", "--all")[0] == 2


@pytest.mark.parametrize(
    ("harm", "code", "name"),
    [
        ("Port 1", 10, "unreachable"),
        ("UserKnownHostsFile /dev/null", 11, "host-key-unknown"),
        ("IdentityFile /nonexistent/key", 13, "authentication-failed"),
    ],
)
def test_each_fault_has_a_name_and_an_exit_code(
    box: sshd.Sshd, capsys: pytest.CaptureFixture[str], harm: str, code: int, name: str
) -> None:
    text = box.write_config(harm).read_text()
    if harm.startswith("IdentityFile"):
        text = text.replace(f"    IdentityFile {box.key}\n", "")
    (box.folder / "ssh_config").write_text(text)
    found, out, err = run(capsys, "install", "box", "--json")
    report = json.loads(out)
    assert (found, report["state"], report["fault"]) == (code, "failed", name)
    assert report["message"]
    found, out, err = run(capsys, "install", "box")
    assert (found, out) == (code, "")
    assert err.strip()
    assert boxes.tree(box.home) == {}


def test_an_unknown_key_is_added_on_demand(box: sshd.Sshd, capsys: pytest.CaptureFixture[str]) -> None:
    box.known_hosts.unlink()
    assert run(capsys, "install", "box")[0] == 11
    assert run(capsys, "install", "box", "--accept-new")[0] == 0
    assert run(capsys, "install", "box")[0] == 0


def test_what_names_no_host_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "install", "-x")[0] == 2
    for text in ("ssh:", "runtime:docker", "a b"):
        code, out, err = run(capsys, "install", text)
        assert (code, out) == (2, "")
        assert "Error: " in err
        code, out, err = run(capsys, "install", text, "--json")
        assert (code, json.loads(out)["fault"], err) == (2, "unknown-host", "")


def test_a_list_of_hosts_that_is_broken_is_named_and_left_as_it_is(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = home / ".config/session-relay/hosts.json"
    file.parent.mkdir(parents=True)
    file.write_text("{")
    for command in ("install", "upgrade", "check", "uninstall"):
        code, out, _ = run(capsys, command, "box", "--json")
        report = json.loads(out)
        assert (code, (report[0] if command == "upgrade" else report)["fault"]) == (2, "hosts-file-broken")
    assert file.read_text() == "{"


@pytest.mark.usefixtures("take_real")
def test_local_is_a_host_too(
    home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("PATH", f"{boxes.python_folder(tmp_path / 'bin')}:{os.environ['PATH']}")
    before = boxes.tree(home)
    assert run(capsys, "install", "local", "--enable")[0] == 0
    launcher = home / boxes.FOLDER / "relay"
    ended = subprocess.run([launcher, "status"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert run(capsys, "uninstall", "local", "--purge")[0] == 0
    assert boxes.tree(home) == before


def test_bundle_writes_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], small: bundle.Bundle) -> None:
    path = tmp_path / "relay.pyz"
    code, out, _ = run(capsys, "bundle", "-o", str(path))
    assert (code, path.read_bytes()) == (0, small.data)
    assert small.sha256 in out
    assert run(capsys, "bundle", "-o", str(tmp_path / "missing/relay.pyz"))[0] == 1


def test_stdout_and_stderr_hold_no_progress_where_there_is_no_terminal(box: sshd.Sshd) -> None:
    command = [sys.executable, "-m", "installer", "install", "box"]
    root = Path(bundle.__file__).parents[1]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    assert "\r" not in ended.stdout + ended.stderr
    assert len(ended.stdout.splitlines()) == 1


@pytest.mark.parametrize("command", ["install", "upgrade", "uninstall", "check", "bundle"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    assert "Usage:" in out
