"""Reaching a real sshd, by each transport: what runs, and which fault it is when it does not come to that."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from relay.client import faults, ssh
from relay.client.streams import Connection
from tests.support import sshd
from tests.support.boxes import until


def connect(transport: str, target: str = "box", **choices: object) -> Connection:
    choices.setdefault("timeout", 15.0)
    return ssh.connect(target, interactive=False, transport=transport, **choices)  # type: ignore[arg-type]


def greeting(transport: str, target: str = "box") -> bytes:
    connection = connect(transport, target)
    try:
        return connection.run("echo hello").stdout
    finally:
        connection.close()


def test_a_command_gets_input_and_gives_both_outputs_and_its_code(server: sshd.Sshd, transport: str) -> None:
    connection = connect(transport)
    ended = connection.run("cat; echo problem >&2; exit 3", b"line\n" * 3)
    assert ended == (3, b"line\nline\nline\n", b"problem\n")
    assert connection.run("cat", iter([b"one ", b"two"])).stdout == b"one two"
    connection.close()


def test_a_command_that_writes_much_to_both_outputs_neither_stops_nor_fills_memory(
    server: sshd.Sshd, transport: str
) -> None:
    connection = connect(transport)
    ended = connection.run("head -c 6000000 /dev/zero; head -c 6000000 /dev/zero >&2")
    assert (ended.code, len(ended.stdout), len(ended.stderr)) == (0, 1 << 20, 1 << 20)
    connection.close()


def test_streams_carry_bytes_both_ways_while_stderr_is_flooded(server: sshd.Sshd, transport: str) -> None:
    connection = connect(transport)
    streams = connection.open("head -c 6000000 /dev/zero >&2; echo last words >&2; cat; exit 7")
    streams.writer.write(b"ping")
    streams.writer.flush()
    assert streams.reader.read1(100) == b"ping"
    assert until(lambda: streams.stderr_tail().endswith(b"last words\n"))
    streams.close()
    assert streams.reader.read1(100) == b""
    connection.close()


def test_closing_streams_ends_a_read_that_waits(server: sshd.Sshd, transport: str) -> None:
    connection = connect(transport)
    streams = connection.open("sleep 60")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(streams.reader.read1(10)))
    reader.start()
    time.sleep(0.1)
    streams.close()
    reader.join(10)
    assert got == [b""]
    connection.close()


def test_several_commands_run_at_once(server: sshd.Sshd, transport: str) -> None:
    connection = connect(transport)
    waiting = connection.open("cat")
    assert connection.run("echo meanwhile").stdout == b"meanwhile\n"
    waiting.close()
    connection.close()


def test_a_command_that_does_not_end_is_given_up(server: sshd.Sshd, transport: str) -> None:
    connection = connect(transport)
    with pytest.raises(faults.TimedOut, match="did not finish"):
        connection.run("sleep 60", timeout=0.5)
    connection.close()


def test_a_connection_that_is_cut_says_so(server: sshd.Sshd, transport: str) -> None:
    connection = connect(transport)
    streams = connection.open("cat")
    server.cut()
    assert streams.reader.read1(10) == b""
    if transport == "openssh":  # it goes back by itself
        assert connection.run("echo hello").stdout == b"hello\n"
    else:
        with pytest.raises(faults.ConnectionLost, match="Try again"):
            connection.run("echo hello")
    connection.close()
    connection.close()


def test_a_port_can_stand_in_the_target(server: sshd.Sshd, transport: str) -> None:
    server.write_config()
    config = Path(server.folder / "ssh_config")
    config.write_text(server.config("127.0.0.1").replace(f"Port {server.port}", "Port 1"))
    assert greeting(transport, f"{server.user}@127.0.0.1:{server.port}") == b"hello\n"


def test_include_match_and_tokens_of_the_configuration_count(
    server: sshd.Sshd, transport: str, tmp_path: Path
) -> None:
    inner = tmp_path / "inner"
    inner.write_text(server.config("inner-box", f"IdentityFile {server.folder}/%n-missing"))
    (server.folder / "ssh_config").write_text(
        f"Include {inner}\nMatch originalhost inner-box\n    HostKeyAlias other\n"
    )
    server.trust("other")
    assert greeting(transport, "inner-box") == b"hello\n"


def test_a_host_key_alias_is_looked_up_in_place_of_the_address(server: sshd.Sshd, transport: str) -> None:
    server.write_config("HostKeyAlias pet-name")
    server.trust("pet-name")
    assert greeting(transport) == b"hello\n"
    server.trust("another-name")
    with pytest.raises(faults.HostKeyUnknown, match="pet-name"):
        connect(transport)


def test_hashed_known_hosts_are_understood(server: sshd.Sshd, transport: str) -> None:
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(server.known_hosts)], check=True, capture_output=True)
    assert "127.0.0.1" not in server.known_hosts.read_text()
    assert greeting(transport) == b"hello\n"


def fingerprint(key: Path) -> str:
    said = subprocess.run(["ssh-keygen", "-l", "-f", f"{key}.pub"], check=True, capture_output=True, text=True).stdout
    return said.split()[1]


def test_an_unknown_host_key_is_refused_with_its_fingerprint(server: sshd.Sshd, transport: str) -> None:
    server.known_hosts.unlink()
    with pytest.raises(faults.HostKeyUnknown) as caught:
        connect(transport)
    assert fingerprint(server.host_keys[0]) in str(caught.value)
    assert "--accept-new" in str(caught.value)
    assert not server.known_hosts.exists()


def test_an_unknown_host_key_is_added_when_that_is_asked_for(server: sshd.Sshd, transport: str) -> None:
    server.write_config("HashKnownHosts yes")
    server.known_hosts.unlink()
    connect(transport, accept_new=True).close()
    assert server.known_hosts.read_text().startswith("|1|")
    assert greeting(transport) == b"hello\n"


def test_the_configuration_may_accept_new_keys_itself(server: sshd.Sshd, transport: str) -> None:
    server.write_config("StrictHostKeyChecking accept-new")
    server.known_hosts.unlink()
    assert greeting(transport) == b"hello\n"
    assert f"[127.0.0.1]:{server.port}" in server.known_hosts.read_text()


@pytest.mark.parametrize("accept_new", [False, True])
@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
def test_a_changed_host_key_is_never_accepted(
    server: sshd.Sshd, transport: str, tmp_path: Path, kind: str, accept_new: bool
) -> None:
    other = sshd.make_key(tmp_path / "other", kind)
    public = " ".join(Path(f"{other}.pub").read_text().split()[:2])
    server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {public}\n")
    before = server.known_hosts.read_text()
    with pytest.raises(faults.HostKeyChanged) as caught:
        connect(transport, accept_new=accept_new)
    assert fingerprint(server.host_keys[0]) in str(caught.value)
    assert server.known_hosts.read_text() == before


def test_the_known_type_of_key_is_asked_for_where_a_host_has_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    with sshd.running(tmp_path / "sshd", tmp_path / "account", host_keys=("ed25519", "ecdsa", "rsa")) as server:
        monkeypatch.setenv("SESSION_RELAY_SSH_CONFIG", str(server.write_config()))
        for line in server.known_hosts.read_text().splitlines():
            server.known_hosts.write_text(line + "\n")
            assert greeting(transport) == b"hello\n"


def test_a_wrong_key_is_an_authentication_failure_that_names_it(
    server: sshd.Sshd, transport: str, tmp_path: Path
) -> None:
    server.key = sshd.make_key(tmp_path / "stranger")
    server.write_config()
    with pytest.raises(faults.AuthenticationFailed, match="stranger") as caught:
        connect(transport)
    assert "ssh box" in str(caught.value)


def test_no_key_at_all_is_an_authentication_failure(server: sshd.Sshd, transport: str) -> None:
    server.write_config("IdentityFile none")
    config = server.folder / "ssh_config"
    config.write_text(config.read_text().replace(f"    IdentityFile {server.key}\n", ""))
    with pytest.raises(faults.AuthenticationFailed, match="box"):
        connect(transport)


def test_nobody_listening_is_unreachable(transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSION_RELAY_SSH_CONFIG", str(tmp_path / "config"))
    (tmp_path / "config").write_text(f"Host box\n    HostName 127.0.0.1\n    Port {sshd.free_port()}\n")
    with pytest.raises(faults.Unreachable, match="refused"):
        connect(transport)


def test_a_name_that_does_not_resolve_is_unreachable(
    transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSION_RELAY_SSH_CONFIG", str(tmp_path / "config"))
    (tmp_path / "config").write_text("Host box\n    HostName no-such-host.invalid\n")
    with pytest.raises(faults.Unreachable, match="no-such-host.invalid"):
        connect(transport)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.0 400 Bad Request\r\n\r\n"])
def test_something_other_than_ssh_is_unreachable(
    transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer_once() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(answer)

        threading.Thread(target=answer_once, daemon=True).start()
        monkeypatch.setenv("SESSION_RELAY_SSH_CONFIG", str(tmp_path / "config"))
        (tmp_path / "config").write_text(f"Host box\n    HostName 127.0.0.1\n    Port {listener.getsockname()[1]}\n")
        with pytest.raises(faults.Unreachable):
            connect(transport)


def test_a_host_that_says_nothing_times_out(transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("SESSION_RELAY_SSH_CONFIG", str(tmp_path / "config"))
        (tmp_path / "config").write_text(f"Host box\n    HostName 127.0.0.1\n    Port {listener.getsockname()[1]}\n")
        with pytest.raises((faults.TimedOut, faults.Unreachable)):
            connect(transport, timeout=1.0)


def test_a_host_that_starts_no_session_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    with sshd.running(tmp_path / "sshd", tmp_path / "account", options=["MaxSessions 0"]) as server:
        monkeypatch.setenv("SESSION_RELAY_SSH_CONFIG", str(server.write_config()))
        with pytest.raises(faults.SessionRefused, match="MaxSessions"):
            greeting(transport)


def test_a_broken_configuration_is_named(transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSION_RELAY_SSH_CONFIG", str(tmp_path / "config"))
    (tmp_path / "config").write_text("Host box\n    Port many\n")
    with pytest.raises(faults.Unreachable, match="configuration"):
        connect(transport)
    with pytest.raises(faults.Unreachable, match="option"):
        connect(transport, "-oProxyCommand=touch /tmp/owned")


def test_no_ssh_and_no_folder_outlive_our_process(server: sshd.Sshd) -> None:
    code = (
        "from relay.client import ssh, openssh\n"
        "ssh.connect('box', timeout=15, interactive=False, transport='openssh')\n"
        "print(*[connection._command for connection in openssh._open][0])\n"
    )
    root = Path(ssh.__file__).parents[2]
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root).stdout
    socket_path = said.split(" -S ")[1].split()[0]
    assert not Path(socket_path).parent.exists()
    assert socket_path not in subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, text=True).stdout


def test_a_revoked_host_key_is_told_from_a_changed_one(server: sshd.Sshd, transport: str) -> None:
    server.known_hosts.write_text("".join(f"@revoked {line}\n" for line in server.known_hosts.read_text().splitlines()))
    with pytest.raises(faults.HostKeyChanged, match="revoked") as raised:
        ssh.connect("box", timeout=20, interactive=False, transport=transport)
    assert "ssh-keygen" not in str(raised.value), "nobody should take the mark of a revoked key away"


def test_a_remote_command_of_the_configuration_does_not_stand_in_the_way(server: sshd.Sshd, transport: str) -> None:
    server.write_config("RemoteCommand tmux attach", "RequestTTY force")
    connection = ssh.connect("box", timeout=20, interactive=False, transport=transport)
    assert connection.run("echo hello").stdout == b"hello\n"
    connection.close()


def test_a_key_with_a_passphrase_that_nobody_is_asked_for_is_named(
    server: sshd.Sshd, transport: str, tmp_path: Path
) -> None:
    locked = sshd.make_key(tmp_path / "locked", passphrase="secret")
    server.authorized_keys.write_text(Path(f"{locked}.pub").read_text())
    server.write_config()
    config = server.folder / "ssh_config"
    config.write_text(config.read_text().replace(str(server.key), str(locked)))
    with pytest.raises(faults.AuthenticationFailed, match="passphrase.*ssh-add"):
        ssh.connect("box", timeout=20, interactive=False, transport=transport)
