"""Installing, upgrading and removing on a real box."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from installer import check, deploy, faults, removal
from installer.bundle import Bundle
from relay.client.launcher import remote_command
from relay.client.streams import Connection
from tests.support import agents, boxes, sshd

Connect = Callable[..., Connection]
STATE = ".local/state/session-relay"
STATUS = b'{"jsonrpc": "2.0", "id": 1, "method": "aiVault.searchStatus"}\n'


def version(connection: Connection) -> str:
    """The version that answers through the launcher."""
    return str(json.loads(connection.run(remote_command("serve"), STATUS).stdout)["result"]["version"])


def names(box: sshd.Sshd) -> list[str]:
    folder = box.home / boxes.FOLDER
    return sorted(str(path.relative_to(folder)) for path in [*folder.glob("*"), *folder.glob("versions/*")])


def contents(home: Path) -> dict[Path, object]:
    return {path: path.is_dir() or (path.stat().st_ino, path.stat().st_mtime_ns) for path in home.rglob("*")}


def test_a_first_install_answers_and_a_second_changes_nothing(
    box: sshd.Sshd, connect: Connect, transport: str
) -> None:
    connection, agent = connect(transport), agents.agent()
    first = deploy.install(connection, "box", agent)
    assert (first.state, first.agent, first.before) == ("new", agent.name, None)
    assert version(connection) == "1.0.0"
    before = contents(box.home)
    second = deploy.install(connection, "box", agent)
    assert (second.state, second.agent) == ("unchanged", agent.name)
    assert contents(box.home) == before


def test_an_upgrade_keeps_the_last_good_version_and_no_older_one(box: sshd.Sshd, connect: Connect) -> None:
    connection = connect()
    old, middle, new = (agents.agent(f"1.{number}.0") for number in range(3))
    for agent in (old, middle, new):
        deploy.install(connection, "box", agent)
        assert version(connection) == agent.version
    assert names(box) == ["relay", "versions", f"versions/{middle.name}", f"versions/{new.name}"]


@pytest.mark.parametrize("broken", [agents.broken_agent(), agents.mute_agent()], ids=["traceback", "mute"])
def test_a_version_that_does_not_answer_never_serves(
    box: sshd.Sshd, connect: Connect, transport: str, broken: Bundle
) -> None:
    connection = connect(transport)
    with pytest.raises(faults.AgentFails, match="goes on serving"):
        deploy.install(connection, "box", broken)
    assert boxes.tree(box.home) == {}
    deploy.install(connection, "box", agents.agent())
    before = boxes.tree(box.home)
    with pytest.raises(faults.AgentFails):
        deploy.install(connection, "box", broken)
    assert version(connection) == "1.0.0"
    assert boxes.tree(box.home) == before


def test_a_newer_version_on_the_box_stays_unless_one_says_otherwise(box: sshd.Sshd, connect: Connect) -> None:
    connection = connect()
    deploy.install(connection, "box", agents.agent("1.10.0"))
    with pytest.raises(faults.NewerInstalled, match="--downgrade"):
        deploy.install(connection, "box", agents.agent("1.9.0"))
    assert version(connection) == "1.10.0"
    assert deploy.install(connection, "box", agents.agent("1.9.0"), downgrade=True).state == "downgraded"
    assert version(connection) == "1.9.0"


@pytest.mark.parametrize(
    "harm", ["changed", "missing", "launcher", "compiled", "manifest", "list of what was compiled"]
)
def test_what_was_damaged_is_repaired(box: sshd.Sshd, connect: Connect, harm: str) -> None:
    connection, agent = connect(), agents.agent()
    deploy.install(connection, "box", agent)
    folder = box.home / boxes.FOLDER
    tree = folder / "versions" / agent.name
    victim = {
        "launcher": folder / "relay",
        "compiled": next(tree.glob("relay/__pycache__/start.*.pyc")),
        "manifest": tree / "manifest.json",
        "list of what was compiled": tree / "compiled.json",
    }.get(harm, tree / "relay/start.py")
    if harm == "missing":
        victim.unlink()
    else:
        victim.write_bytes(victim.read_bytes() + b"\n# harm\n")
    if harm != "launcher":
        assert "damaged" in [finding.name for finding in check.examine(connection, "box", agent)]
    assert deploy.install(connection, "box", agent).state == "repaired"
    assert version(connection) == "1.0.0"
    assert deploy.install(connection, "box", agent).state == "unchanged"


def test_a_running_session_is_not_cut_and_keeps_its_files(box: sshd.Sshd, connect: Connect, transport: str) -> None:
    connection = connect(transport)
    old = agents.agent("1.0.0")
    deploy.install(connection, "box", old)
    session = connection.open(remote_command("serve"))

    def ask() -> str:
        session.writer.write(STATUS)
        session.writer.flush()
        return str(json.loads(session.reader.read1(1000))["result"]["version"])

    assert ask() == "1.0.0"
    for number in range(1, 4):
        deploy.install(connection, "box", agents.agent(f"1.{number}.0"))
        assert ask() == "1.0.0"
    assert f"versions/{old.name}" in names(box)
    session.close()
    assert boxes.until(lambda: sshd_sessions(connection) == 0)
    deploy.install(connection, "box", agents.agent("1.5.0"))
    assert f"versions/{old.name}" not in names(box)


def sshd_sessions(connection: Connection) -> int:
    listed = connection.run("ps -A -o args=").stdout.decode()
    return listed.count("session-relay/versions/1.0.0")


def test_two_installs_at_once_do_not_mix(box: sshd.Sshd, connect: Connect) -> None:
    first, second = connect(), connect()
    seen: list[str] = []

    def meanwhile(step: str, share: float) -> None:
        if step == "unpacked":
            with pytest.raises(faults.Busy):
                deploy.install(second, "box", agents.agent("2.0.0"))
            seen.append(step)

    deploy.install(first, "box", agents.agent(), progress=meanwhile)
    assert seen == ["unpacked"]
    assert version(first) == "1.0.0"


def test_progress_goes_through_every_step(box: sshd.Sshd, connect: Connect) -> None:
    steps: list[str] = []
    agent = agents.agent(filling=200_000)
    deploy.install(connect(), "box", agent, progress=lambda step, share: steps.append(step))
    assert list(dict.fromkeys(steps)) == ["probed", "uploading", *deploy.STEPS]


@pytest.mark.parametrize("purge", [False, True])
def test_uninstall_removes_every_path_and_lists_it(
    box: sshd.Sshd, connect: Connect, transport: str, purge: bool
) -> None:
    connection = connect(transport)
    deploy.install(connection, "box", agents.agent())
    connection.run(remote_command("enable"))
    state = box.home / ".local/state/session-relay"
    state.mkdir(parents=True)
    (state / "index.db").write_text("an index")
    placed = {str(path) for path in (box.home / boxes.FOLDER).rglob("*")}
    removed = removal.uninstall(connection, "box", purge=purge).paths
    assert placed <= set(removed)
    assert (str(state / "index.db") in removed) is purge
    if purge:
        assert boxes.tree(box.home) == {}
    else:
        assert sorted(path for path in boxes.tree(box.home) if "session-relay/" in path) == [
            ".config/session-relay/policy",
            ".local/state/session-relay/index.db",
        ]
    assert removal.uninstall(connection, "box", purge=purge).paths == ()


def test_uninstall_leaves_what_is_not_ours(box: sshd.Sshd, connect: Connect) -> None:
    theirs = [".local/share/other", ".config/other", ".config/session-relay/hosts.json", ".local/state/other"]
    for name in theirs:
        boxes.script(box.home / name, "theirs")
    connection = connect()
    deploy.install(connection, "box", agents.agent())
    connection.run(remote_command("enable"))
    removal.uninstall(connection, "box", purge=True)
    assert [name for name in theirs if not (box.home / name).exists()] == []
    assert not (box.home / boxes.FOLDER).exists()


def test_what_others_put_into_our_folder_stays(box: sshd.Sshd, connect: Connect) -> None:
    theirs = ["notes.txt", "versions/notes.txt", "versions/mine-1/notes", "incoming-mail/letter", "relay.bak"]
    connection, agent = connect(), agents.agent()
    deploy.install(connection, "box", agent)
    for name in theirs:
        boxes.script(box.home / boxes.FOLDER / name, "theirs")
    deploy.install(connection, "box", agents.agent("1.1.0"))  # which sweeps
    removed = removal.uninstall(connection, "box", purge=True)
    left = [path for path in boxes.tree(box.home / boxes.FOLDER) if not (box.home / boxes.FOLDER / path).is_dir()]
    assert sorted(left) == sorted(theirs)
    assert {str(box.home / boxes.FOLDER / name) for name in theirs} <= set(removed.kept)
    assert f"{box.home / boxes.FOLDER}/relay" in removed.paths
    again = removal.uninstall(connection, "box", purge=True)
    assert (again.paths, again.kept) == ((), removed.kept)


def test_a_folder_that_is_a_link_is_emptied_behind_it(box: sshd.Sshd, connect: Connect) -> None:
    elsewhere = {name: box.folder / f"elsewhere{number}" for number, name in enumerate((boxes.FOLDER, STATE))}
    for name, folder in elsewhere.items():
        folder.mkdir()
        (box.home / name).parent.mkdir(parents=True, exist_ok=True)
        (box.home / name).symlink_to(folder)
    connection = connect()
    deploy.install(connection, "box", agents.agent())
    (elsewhere[STATE] / "index.db").write_text("an index")
    removed = removal.uninstall(connection, "box", purge=True)
    assert f"{box.home / boxes.FOLDER}/relay" in removed.paths
    assert f"{box.home / STATE}/index.db" in removed.paths
    assert [list(folder.iterdir()) for folder in elsewhere.values()] == [[], []]


@pytest.mark.parametrize("place", [".local", boxes.FOLDER, f"{boxes.FOLDER}/versions", f"{boxes.FOLDER}/relay/x"])
def test_what_stands_in_the_way_is_named_and_left_alone(box: sshd.Sshd, connect: Connect, place: str) -> None:
    boxes.script(box.home / place, "theirs")
    before = boxes.tree(box.home)
    obstacle = str(box.home / place).removesuffix("/x")
    connection = connect()
    with pytest.raises(faults.BoxFault, match=f"{obstacle} stands where.* Move it away"):
        deploy.install(connection, "box", agents.agent())
    assert boxes.tree(box.home) == before
    found = {finding.name: finding.text for finding in check.examine(connection, "box", None)}
    assert obstacle in found["box-fault"]
    assert removal.uninstall(connection, "box", purge=True).paths == ()
    assert boxes.tree(box.home) == before


def test_an_agent_whose_python_went_away_finds_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect
) -> None:
    with boxes.box(tmp_path, monkeypatch) as box:
        connection = connect()
        deploy.install(connection, "box", agents.agent())
        launcher = box.home / boxes.FOLDER / "relay"
        python = next(line for line in launcher.read_text().splitlines() if line.startswith("python="))
        launcher.write_text(launcher.read_text().replace(python, "python=/gone/python3"))
        assert version(connection) == "1.0.0"


def test_nothing_of_the_account_gets_into_the_agent(box: sshd.Sshd, connect: Connect) -> None:
    """PYTHONPATH, PYTHONSTARTUP, the user site and the working directory hold modules of the same names."""
    connection = connect()
    deploy.install(connection, "box", agents.agent())
    trap = "import os\nos.write(2, b'TRAPPED')\nraise SystemExit(99)\n"
    for name in ("json.py", "relay.py", "sitecustomize.py", "usercustomize.py"):
        (box.home / name).write_text(trap)
    site = box.home / f".local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    site.mkdir(parents=True)
    for name in ("json.py", "usercustomize.py", "relay.py"):
        (site / name).write_text(trap)
    (site / "trap.pth").write_text("import os; os.write(2, b'TRAPPED')\n")
    command = f"PYTHONPATH={box.home} PYTHONSTARTUP={box.home}/json.py PYTHONUSERBASE={box.home}/.local "
    ended = connection.run(command + remote_command("serve"), STATUS)
    assert (ended.code, ended.stderr) == (0, b"")
    assert b"1.0.0" in ended.stdout


def test_openssh_by_hand_answers(box: sshd.Sshd, connect: Connect) -> None:
    deploy.install(connect(), "box", agents.agent())
    command = ["ssh", "-F", str(box.folder / "ssh_config"), "box", "~/.local/share/session-relay/relay", "serve"]
    ended = subprocess.run(command, input=STATUS, capture_output=True, check=True)
    assert json.loads(ended.stdout)["result"]["version"] == "1.0.0"
