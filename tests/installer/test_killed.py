"""An install that is killed after any of its steps leaves the old version or the new one, and nothing else for long."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from installer import box as far_side
from installer import deploy, faults, probe, removal
from relay.client.faults import ClientFault
from relay.client.launcher import remote_command
from relay.client.streams import Connection
from tests.support import agents, boxes, sshd
from tests.support.boxes import until

Connect = Callable[..., Connection]
STATUS = b'{"jsonrpc": "2.0", "id": 1, "method": "aiVault.searchStatus"}\n'
STEPS = ("probed", "uploading", *deploy.STEPS)


def version(connection: Connection) -> str:
    return str(json.loads(connection.run(remote_command("serve"), STATUS).stdout)["result"]["version"])


def at_rest(home: Path) -> bool:
    """Whether no install works on the box any more."""
    return not any("sys.exit(m.main(r))" in command for command in commands(home))


def commands(home: Path) -> list[str]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            if f"HOME={home}".encode() in environment.split(b"\0"):
                found.append(Path(f"/proc/{pid}/cmdline").read_text())
        except OSError:
            continue
    return found


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("transport", "installed"),
    [("paramiko", False), ("paramiko", True), ("openssh", True)],
    ids=["paramiko-first", "paramiko-upgrade", "openssh-upgrade"],
)
def test_the_connection_is_cut_after_a_step(
    box: sshd.Sshd, connect: Connect, transport: str, installed: bool, step: str
) -> None:
    old, new = agents.agent("1.0.0"), agents.agent("1.1.0", filling=300_000)
    if installed:
        deploy.install(connect(), "box", old)
    before = boxes.tree(box.home)

    def cut(done: str, share: float) -> None:
        if done == step and not (done == "uploading" and share < 0.5):
            box.cut()

    try:
        deploy.install(connect(transport), "box", new, progress=cut)
        installed_all = True  # the system's ssh goes back by itself where nothing has begun yet
    except (ClientFault, faults.InstallFault):
        installed_all = False
    assert until(lambda: at_rest(box.home))
    again = connect()
    if installed_all or step == "switched":
        assert version(again) == "1.1.0"
    else:
        # The far side noticed at once and put everything back.
        assert until(lambda: boxes.tree(box.home) == before)
        assert not installed or version(again) == "1.0.0"
    deploy.install(again, "box", new)
    assert version(again) == "1.1.0"
    leftovers = [path for path in boxes.tree(box.home) if "incoming" in path or "probe" in path]
    assert leftovers == []
    removal.uninstall(again, "box", purge=True)
    assert boxes.tree(box.home) == {}


@pytest.mark.parametrize("step", deploy.STEPS)
@pytest.mark.parametrize("installed", [False, True], ids=["first", "upgrade"])
def test_the_program_on_the_box_is_killed_after_a_step(
    box: sshd.Sshd, connect: Connect, installed: bool, step: str
) -> None:
    """As by a power cut: nothing gets the time to clean up."""
    old, new = agents.agent("1.0.0"), agents.agent("1.1.0")
    connection = connect()
    if installed:
        deploy.install(connection, "box", old)

    def kill(done: str, share: float) -> None:
        if done == step:
            for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
                try:
                    command = Path(f"/proc/{pid}/cmdline").read_bytes()
                    if b"sys.exit(m.main(r))" in command and str(box.home).encode() in environment(pid):
                        os.kill(pid, signal.SIGKILL)
                except OSError:
                    continue

    try:
        deploy.install(connection, "box", new, progress=kill)
        outcome = "done"
    except faults.StoppedHalfway:
        outcome = "stopped"
    if step == "switched":
        assert version(connection) == "1.1.0"
    else:
        assert outcome == "stopped"
        assert not installed or version(connection) == "1.0.0"
    deploy.install(connection, "box", new)
    assert version(connection) == "1.1.0"
    kept = [new.name, *([old.name] if installed else [])]
    folder = box.home / boxes.FOLDER
    assert sorted(os.listdir(folder)) == ["relay", "versions"]
    assert sorted(os.listdir(folder / "versions")) == sorted(kept)
    removal.uninstall(connection, "box", purge=True)
    assert not folder.exists()


def environment(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def test_an_upload_that_arrives_damaged_is_refused(
    box: sshd.Sshd, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = far_side.Conversation.send

    def garble(self: far_side.Conversation, data: bytes) -> None:
        send(self, data.replace(b"PK", b"KP") if data.startswith(b"#!/usr") else data)

    monkeypatch.setattr(far_side.Conversation, "send", garble)
    with pytest.raises(faults.UploadDamaged, match="not what was sent"):
        deploy.install(connect(), "box", agents.agent())
    assert boxes.tree(box.home) == {}


def test_a_probe_leaves_nothing(box: sshd.Sshd, connect: Connect) -> None:
    probe.look(connect(), "box")
    assert boxes.tree(box.home) == {}
