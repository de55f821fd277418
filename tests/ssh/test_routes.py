"""Ways to a host that lead through something else, by each transport."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from relay.client import faults, ssh
from tests.support import sshd


def greeting(transport: str, target: str) -> bytes:
    connection = ssh.connect(target, timeout=20, interactive=False, transport=transport)
    try:
        return connection.run("echo $NAME").stdout
    finally:
        connection.close()


def test_two_hops_of_proxy_jump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str) -> None:
    names = ("first", "second", "goal")
    servers = []
    try:
        for name in names:
            servers.append(sshd.Sshd(tmp_path / name, tmp_path / f"{name}-home", variables={"NAME": name}))
        config = tmp_path / "config"
        monkeypatch.setenv("SESSION_RELAY_SSH_CONFIG", str(config))
        first, second, goal = servers
        rounds = 0
        for way in (
            goal.config("goal", "ProxyJump first,second") + second.config("second") + first.config("first"),
            goal.config("goal", "ProxyJump second")
            + second.config("second", "ProxyJump first")
            + first.config("first"),
        ):
            config.write_text(way)
            assert greeting(transport, "goal") == b"goal\n"
            rounds += 1
            assert [server.log().count("Accepted publickey") for server in servers] == [rounds] * 3

        # Each hop's own key is checked.
        first.known_hosts.unlink()
        with pytest.raises(faults.HostKeyUnknown, match=str(first.port)):
            greeting(transport, "goal")
        first.trust()
        # Behind the last hop nobody listens.
        config.write_text(goal.config("goal", "ProxyJump first", f"Port {sshd.free_port()}") + first.config("first"))
        with pytest.raises(faults.Unreachable, match="No connection|jump host"):
            greeting(transport, "goal")
    finally:
        for server in servers:
            server.stop()


def test_a_proxy_command(server: sshd.Sshd, transport: str, tmp_path: Path) -> None:
    proxy = tmp_path / "proxy.py"
    proxy.write_text(
        "import os, select, socket, sys\n"
        "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "while True:\n"
        "    for ready in select.select([s, 0], [], [])[0]:\n"
        "        data = s.recv(65536) if ready is s else os.read(0, 65536)\n"
        "        if not data: sys.exit()\n"
        "        s.sendall(data) if ready == 0 else os.write(1, data)\n"
    )
    server.write_config(f"ProxyCommand {sys.executable} {proxy} %h %p")
    connection = ssh.connect("box", timeout=20, interactive=False, transport=transport)
    assert connection.run("echo hello").stdout == b"hello\n"
    connection.close()


def test_a_proxy_command_that_fails_says_how(server: sshd.Sshd, transport: str) -> None:
    server.write_config("ProxyCommand sh -c 'echo the way is shut >&2; exit 3'")
    with pytest.raises(faults.Unreachable) as raised:
        greeting(transport, "box")
    if transport == "paramiko":
        assert "exit code 3" in str(raised.value) and "the way is shut" in str(raised.value)


def test_a_circle_of_hops_ends(server: sshd.Sshd, transport: str) -> None:
    (server.folder / "ssh_config").write_text(
        server.config("one", "ProxyJump two") + server.config("two", "ProxyJump one")
    )
    with pytest.raises(faults.Unreachable, match="circle"):
        greeting(transport, "one")
