"""A fleet over real sshd servers: thirty-two boxes in one question, nine of them broken, each in a way of its own."""

from __future__ import annotations

import contextlib
import shlex
import socket
import sys
from pathlib import Path

import pytest

from relay.client import fanout
from relay.client.faults import (
    AgentMissing,
    AuthenticationFailed,
    HostKeyChanged,
    HostKeyUnknown,
    ProtocolFault,
    TimedOut,
    Unreachable,
)
from relay.client.host_ids import parse
from relay.client.hosts_file import Host
from relay.client.launcher import LAUNCHER
from relay.client.remote import RemoteHost
from relay.contract.requests import SearchRequest
from tests.support import sshd

AGENT = Path(__file__).with_name("fake_agent.py")
GOOD = 23

pytestmark = pytest.mark.skipif(not sshd.AVAILABLE, reason="needs OpenSSH's sshd")


@pytest.fixture
def servers(tmp_path):
    """Starts a server whose account has an agent of the given behaviour (None: no agent)."""
    with contextlib.ExitStack() as stack:

        def start(name, behaviour):
            server = stack.enter_context(
                sshd.running(tmp_path / name, tmp_path / f"{name}-account", options=("MaxStartups 100",))
            )
            if behaviour:
                launcher = Path(LAUNCHER.replace("~", str(server.home)))
                launcher.parent.mkdir(parents=True)
                words = [sys.executable, "-S", str(AGENT), behaviour]
                launcher.write_text(f"exec {shlex.join(words)}\n")
            return server

        yield start


def test_nine_broken_boxes_cost_the_others_nothing(servers, tmp_path, monkeypatch):
    good, empty = servers("good", "noisy"), servers("empty", None)
    stranger = sshd.make_key(tmp_path / "stranger")
    changed = tmp_path / "changed"
    changed.write_text(good.known_hosts.read_text().replace(*_keys(good, stranger)))
    nobody = tmp_path / "nobody"
    nobody.write_text("")
    silent = socket.create_server(("127.0.0.1", 0))
    config = [good.config(f"good{number}") for number in range(GOOD)]
    config += [servers(name, name).config(name) for name in ("lying", "flooding", "ancient")]
    config += [
        empty.config("empty"),
        good.config("changed", f"UserKnownHostsFile {changed}"),
        good.config("unknown", f"UserKnownHostsFile {nobody}"),
        good.config("refused", f"IdentityFile {stranger}").replace(f"IdentityFile {good.key}", ""),
        good.config("silent", f"Port {silent.getsockname()[1]}"),
        good.config("closed", f"Port {sshd.free_port()}"),
    ]
    (tmp_path / "config").write_text("".join(config))
    monkeypatch.setenv("SESSION_RELAY_SSH_CONFIG", str(tmp_path / "config"))
    names = [f"good{number}" for number in range(GOOD)]
    names += ["lying", "flooding", "ancient", "empty", "changed", "unknown", "refused", "silent", "closed"]
    hosts = [RemoteHost(Host(parse(f"ssh:{name}"))) for name in names]
    assert len(hosts) == 32

    merged = fanout.search(hosts, ValueError, SearchRequest(query="word", limit=100), timeout=15)
    fanout.close_all(hosts)
    silent.close()
    outcomes = {leg["executionHostId"][4:]: leg["outcome"] for leg in merged.response["hosts"]}
    assert {name for name, outcome in outcomes.items() if outcome == "results"} == set(names[:GOOD])
    assert outcomes["ancient"] == "unavailable"
    assert {hit["executionHostId"] for hit in merged.response["hits"]} <= {f"ssh:{name}" for name in names[:GOOD]}
    assert len(merged.response["hits"]) == 100
    assert {host_id[4:]: type(fault) for host_id, fault in merged.faults.items()} == {
        "lying": ProtocolFault,
        "flooding": ProtocolFault,
        "empty": AgentMissing,
        "changed": HostKeyChanged,
        "unknown": HostKeyUnknown,
        "refused": AuthenticationFailed,
        "silent": TimedOut,
        "closed": Unreachable,
    }


def _keys(server, other):
    """The server's public key and another one of the same kind, as known_hosts writes them."""
    return [Path(f"{key}.pub").read_text().split()[1] for key in (server.host_keys[0], other)]
