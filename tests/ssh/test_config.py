"""Settings from ssh itself and, where there is none, from paramiko's reading of the same file."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay.client import ssh_config


@pytest.fixture(params=["ssh", "paramiko"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who reads the configuration."""
    if request.param == "paramiko":
        monkeypatch.setattr(ssh_config, "ssh_program", lambda: None)
    return str(request.param)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration file in use."""
    path = tmp_path / "config"
    path.write_text("")
    monkeypatch.setenv("SESSION_RELAY_SSH_CONFIG", str(path))
    return path


def test_what_a_host_block_says(reader: str, config: Path) -> None:
    config.write_text(
        "Host box\n  HostName box.example.com\n  Port 2222\n  User ada\n  HostKeyAlias pet\n  IdentitiesOnly yes\n"
        "  IdentityFile /keys/%h\n  IdentityAgent none\n  UserKnownHostsFile /known/one /known/two\n"
        "  ServerAliveInterval 7\n  ConnectTimeout 9\n"
    )
    found = ssh_config.read("box")
    assert (found.hostname, found.port, found.user, found.known_as) == ("box.example.com", 2222, "ada", "pet")
    assert (found.identities_only, found.identity_agent) == (True, None)
    assert found.identity_files == ("/keys/box.example.com",)
    assert found.user_known_hosts == ("/known/one", "/known/two")
    assert (found.alive_interval, found.connect_timeout) == (7, 9.0)


def test_hops_and_proxies(reader: str, config: Path) -> None:
    config.write_text("Host a\n  ProxyJump u@one:22,two\nHost b\n  ProxyCommand nc -x %% %h %p\n")
    assert ssh_config.read("a").proxy_jump == ("u@one:22", "two")
    assert ssh_config.read("b").proxy_command == "nc -x % b 22"


def test_the_target_may_say_user_and_port(reader: str, config: Path) -> None:
    for target in ("ada@box:2222", "ssh://ada@box:2222"):
        found = ssh_config.read(target)
        assert (found.user, found.hostname, found.port, found.known_as) == ("ada", "box", 2222, "[box]:2222")


def test_an_agent_socket_from_a_variable(reader: str, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/one")
    monkeypatch.setenv("MY_AGENT", "/two")
    assert ssh_config.read("box").identity_agent == "/one"
    config.write_text("IdentityAgent $MY_AGENT\n")
    assert ssh_config.read("box").identity_agent == "/two"


def test_forbidden_methods_are_not_tried(config: Path) -> None:
    config.write_text("PasswordAuthentication no\nPreferredAuthentications keyboard-interactive,password,publickey\n")
    assert ssh_config.read("box").methods == ("keyboard-interactive", "publickey")


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("box", (None, "box", None)),
        ("ada@box", ("ada", "box", None)),
        ("ada@box:22", ("ada", "box", "22")),
        ("ssh://ada@[::1]:22/", ("ada", "::1", "22")),
        ("[::1]:22", (None, "::1", "22")),
        ("::1", (None, "::1", None)),
    ],
)
def test_the_parts_of_a_target(target: str, parts: tuple[str, str, str]) -> None:
    assert ssh_config.split_target(target) == parts


@pytest.mark.parametrize(
    ("target", "typed"),
    [
        ("box", "box"),
        ("ada@box", "ada@box"),
        ("ada@box:22", "ssh://ada@box:22"),
        ("::1", "::1"),
        ("[::1]:2222", "-p 2222 ::1"),
        ("ada@[fe80::1]:22", "-p 22 ada@fe80::1"),
        ("[::1]", "::1"),
    ],
)
def test_a_target_as_ssh_takes_it(target: str, typed: str) -> None:
    assert " ".join(ssh_config.destination(target)) == typed


def test_an_address_of_ipv6_with_a_port(reader: str, config: Path) -> None:
    config.write_text("")
    settings = ssh_config.read("ada@[::1]:2222")
    assert (settings.user, settings.hostname, settings.port) == ("ada", "::1", 2222)
