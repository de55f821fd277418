"""Keys, agents and certificates against a real sshd."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay.client import faults, ssh, ssh_keys
from tests.support import sshd
from tests.support.boxes import until


def greeting(transport: str) -> bytes:
    connection = ssh.connect("box", timeout=20, interactive=False, transport=transport)
    try:
        return connection.run("echo hello").stdout
    finally:
        connection.close()


@pytest.fixture
def agent(short: Path) -> Iterator[Path]:
    """The socket of an ssh-agent without keys."""
    path = short / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    assert until(lambda: listens(path))
    yield path
    os.kill(process.pid, signal.SIGTERM)
    process.wait()


def listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as attempt:
        return attempt.connect_ex(str(path)) == 0


def add(agent: Path, key: Path) -> None:
    subprocess.run(["ssh-add", "-q", str(key)], env={**os.environ, "SSH_AUTH_SOCK": str(agent)}, check=True)


def without_identity_file(server: sshd.Sshd, *more: str) -> None:
    text = server.config("box", *more).replace(f"    IdentityFile {server.key}\n", "")
    (server.folder / "ssh_config").write_text(text)


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_every_kind_of_key(server: sshd.Sshd, transport: str, tmp_path: Path, kind: str) -> None:
    server.key = sshd.make_key(tmp_path / "key", kind)
    server.authorized_keys.write_text(Path(f"{server.key}.pub").read_text())
    server.write_config()
    assert greeting(transport) == b"hello\n"


def test_a_key_in_the_old_pem_form(server: sshd.Sshd, transport: str, tmp_path: Path) -> None:
    key = tmp_path / "pem"
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "", "-f", str(key)], check=True)
    server.key = key
    server.authorized_keys.write_text(Path(f"{key}.pub").read_text())
    server.write_config()
    assert greeting(transport) == b"hello\n"


@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
def test_a_key_that_only_an_agent_holds(
    server: sshd.Sshd, transport: str, agent: Path, kind: str, tmp_path: Path
) -> None:
    key = sshd.make_key(tmp_path / "held", kind)
    server.authorized_keys.write_text(Path(f"{key}.pub").read_text())
    add(agent, key)
    key.unlink()
    without_identity_file(server, f"IdentityAgent {agent}", "IdentitiesOnly no", "IdentityFile /nonexistent/key")
    assert greeting(transport) == b"hello\n"


def test_the_agent_of_the_environment(
    server: sshd.Sshd, transport: str, agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(agent, server.key)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))
    without_identity_file(server, "IdentityAgent SSH_AUTH_SOCK", "IdentitiesOnly no", "IdentityFile /nonexistent/key")
    assert greeting(transport) == b"hello\n"


def test_identities_only_keeps_an_agents_other_keys_back(
    server: sshd.Sshd, transport: str, agent: Path, tmp_path: Path
) -> None:
    for number in range(8):  # more than a host listens to
        add(agent, sshd.make_key(tmp_path / f"other{number}"))
    add(agent, server.key)
    public = tmp_path / "only.pub"
    public.write_text(Path(f"{server.key}.pub").read_text())
    without_identity_file(server, f"IdentityAgent {agent}", f"IdentityFile {tmp_path / 'only'}")
    assert greeting(transport) == b"hello\n"
    without_identity_file(server, f"IdentityAgent {agent}", "IdentitiesOnly no", "IdentityFile /nonexistent/key")
    with pytest.raises(faults.AuthenticationFailed):
        greeting(transport)


def test_an_agent_that_is_gone_does_not_matter(server: sshd.Sshd, transport: str, tmp_path: Path) -> None:
    server.write_config(f"IdentityAgent {tmp_path / 'nobody'}")
    assert greeting(transport) == b"hello\n"


@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
def test_a_certificate_opens_where_the_bare_key_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str, kind: str
) -> None:
    authority = sshd.make_key(tmp_path / "authority")
    key = sshd.make_key(tmp_path / "key", kind)
    options = [f"TrustedUserCAKeys {authority}.pub"]
    with sshd.running(tmp_path / "sshd", tmp_path / "account", options=options) as server:
        server.authorized_keys.write_text("")
        server.key = key
        monkeypatch.setenv("SESSION_RELAY_SSH_CONFIG", str(server.write_config()))
        with pytest.raises(faults.AuthenticationFailed):
            greeting(transport)
        command = ["ssh-keygen", "-q", "-s", str(authority), "-I", "test", "-n", server.user, f"{key}.pub"]
        subprocess.run(command, check=True)
        assert greeting(transport) == b"hello\n"
        elsewhere = tmp_path / "elsewhere.pub"
        Path(f"{key}-cert.pub").rename(elsewhere)
        server.write_config(f"CertificateFile {elsewhere}")
        assert greeting(transport) == b"hello\n"


@pytest.mark.parametrize("pem", [[], ["-m", "PEM"]])
def test_a_locked_key_without_a_terminal_says_what_to_do(server: sshd.Sshd, tmp_path: Path, pem: list[str]) -> None:
    key = tmp_path / "locked"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "open sesame", *pem, "-f", str(key)], check=True
    )
    server.key = key
    server.write_config()
    with pytest.raises(faults.AuthenticationFailed, match="ssh-add .*locked"):
        greeting("paramiko")


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_the_public_half_is_read_without_the_passphrase(tmp_path: Path, kind: str) -> None:
    key = sshd.make_key(tmp_path / "key", kind, passphrase="open sesame")
    expected = ssh_keys.public_key(f"{key}.pub")
    Path(f"{key}.pub").unlink()
    assert ssh_keys.public_key(str(key)) == expected is not None
    (tmp_path / "nonsense").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END")
    assert ssh_keys.public_key(str(tmp_path / "nonsense")) is None
    assert ssh_keys.public_key(str(tmp_path / "missing")) is None
