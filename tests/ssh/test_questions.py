"""Passwords, questions and passphrases: asked at a terminal, and nowhere else."""

from __future__ import annotations

import os
import pty
import select
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import relay
from relay.client import faults, ssh
from tests.support import sshd
from tests.support.password_server import PasswordServer

CONNECT = """
import sys
from relay.client import ssh, faults
try:
    connection = ssh.connect("box", timeout=10, interactive=True, transport=sys.argv[1])
    print("GOT", connection.run("hello").stdout)
    connection.close()
except faults.ClientFault as fault:
    print("FAULT", type(fault).__name__, fault)
"""


def at_a_terminal(transport: str, *answers: tuple[str, str]) -> str:
    """What a person sees who types each answer when its question shows."""
    root = str(Path(relay.__file__).parents[1])
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(root)
        os.execv(sys.executable, [sys.executable, "-c", CONNECT, transport])
    seen, rest = "", list(answers)
    asked = 0
    try:
        while True:
            ready, _, _ = select.select([terminal], [], [], 30)
            if not ready:
                raise AssertionError(f"nothing more came after: {seen}")
            try:
                data = os.read(terminal, 4096)
            except OSError:  # the far end of a pty that closed
                break
            if not data:
                break
            seen += data.decode(errors="replace")
            if rest and rest[0][0] in seen[asked:]:
                asked = len(seen)
                os.write(terminal, rest.pop(0)[1].encode() + b"\n")
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    assert rest == [], seen
    return seen


@pytest.fixture
def servers() -> Iterator[list[PasswordServer]]:
    """Servers to stop at the end."""
    started: list[PasswordServer] = []
    yield started
    for server in started:
        server.stop()


def configure(
    folder: Path, monkeypatch: pytest.MonkeyPatch, servers: list[PasswordServer], *methods: str, key: str = "none"
) -> None:
    server = PasswordServer(folder, methods)
    servers.append(server)
    config = folder / "config"
    config.write_text(
        f"Host box\n HostName 127.0.0.1\n Port {server.port}\n User ada\n IdentityFile {key}\n IdentityAgent none\n"
        f" IdentitiesOnly yes\n UserKnownHostsFile {server.known_hosts}\n NumberOfPasswordPrompts 2\n"
    )
    monkeypatch.setenv("SESSION_RELAY_SSH_CONFIG", str(config))


def test_a_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str, servers: list[PasswordServer]
) -> None:
    configure(tmp_path, monkeypatch, servers, "password")
    seen = at_a_terminal(transport, ("ada@127.0.0.1's password:", "wrong"), ("password:", "open sesame"))
    assert "GOT b'hello'" in seen
    assert "sesame" not in seen


def test_questions_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str, servers: list[PasswordServer]
) -> None:
    configure(tmp_path, monkeypatch, servers, "keyboard-interactive")
    seen = at_a_terminal(transport, ("Token:", "open sesame"), ("Colour:", "green"))
    assert "GOT b'hello'" in seen
    assert "sesame" not in seen
    assert "green" in seen


def test_a_password_after_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str, servers: list[PasswordServer]
) -> None:
    key = sshd.make_key(tmp_path / "key")
    configure(tmp_path, monkeypatch, servers, "publickey", "password", key=str(key))
    assert "GOT b'hello'" in at_a_terminal(transport, ("password:", "open sesame"))


def test_a_passphrase(server: sshd.Sshd, tmp_path: Path, transport: str) -> None:
    server.key = sshd.make_key(tmp_path / "locked", passphrase="open sesame")
    server.authorized_keys.write_text(Path(f"{server.key}.pub").read_text())
    server.write_config()
    text = "locked" if transport == "paramiko" else "passphrase"
    seen = at_a_terminal(transport, (text, "wrong"), (text, "open sesame"))
    assert "GOT" in seen
    assert "sesame" not in seen


def test_wrong_answers_end_as_a_failed_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str, servers: list[PasswordServer]
) -> None:
    configure(tmp_path, monkeypatch, servers, "password")
    seen = at_a_terminal(transport, ("password:", "wrong"), ("password:", "wrong again"))
    assert "FAULT AuthenticationFailed" in seen


def test_nothing_is_asked_where_there_is_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str, servers: list[PasswordServer]
) -> None:
    configure(tmp_path, monkeypatch, servers, "password")
    with pytest.raises(faults.AuthenticationFailed):
        ssh.connect("box", timeout=10, interactive=False, transport=transport)
    monkeypatch.setattr("sys.stdin", None)
    monkeypatch.setattr("sys.stderr", None)
    assert not ssh.has_terminal()
    with pytest.raises(faults.AuthenticationFailed):
        ssh.connect("box", timeout=10, interactive=True, transport=transport)
