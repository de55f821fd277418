"""Hosts over a real sshd: a server that is too busy, one that hangs, and an agent that is not there."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import socket
import sys
import threading
from pathlib import Path

import pytest

from relay.client.faults import AgentMissing, ClientFault, TimedOut, Unreachable
from relay.client.host_ids import parse
from relay.client.hosts_file import Host
from relay.client.launcher import LAUNCHER
from relay.client.remote import RemoteHost
from relay.contract.requests import SearchRequest
from tests.support import sshd

AGENT = Path(__file__).with_name("fake_agent.py")
REQUEST = SearchRequest(query="word", limit=3)

pytestmark = pytest.mark.skipif(not sshd.AVAILABLE, reason="needs OpenSSH's sshd")


@pytest.fixture(params=["paramiko", "openssh"])
def remote(request):
    """A host of the configuration, by either transport; closed at the end."""
    host = RemoteHost(Host(parse("ssh:box"), transport=request.param))
    yield host
    host.close()


@pytest.fixture
def box(tmp_path, monkeypatch):
    """A server whose account has a fake agent in the launcher's place."""
    with sshd.running(tmp_path / "sshd", tmp_path / "account") as server:
        launcher = Path(LAUNCHER.replace("~", str(server.home)))
        launcher.parent.mkdir(parents=True)
        launcher.write_text(f"exec {shlex.quote(sys.executable)} -S {shlex.quote(str(AGENT))} noisy\n")
        monkeypatch.setenv("SESSION_RELAY_SSH_CONFIG", str(server.write_config()))
        yield server


class Door:
    """A port in front of a server: turns the first ``refused`` callers away; holds everybody, when ``hold`` is set."""

    def __init__(self, port, refused=0, hold=False):
        self.callers = 0
        self.refused, self.hold, self.behind = refused, hold, port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.open = [self.listener]
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self.listener.accept()
                self.callers += 1
                if self.callers <= self.refused:
                    caller.close()
                    continue
                self.open.append(caller)
                if not self.hold:
                    server = socket.create_connection(("127.0.0.1", self.behind))
                    self.open.append(server)
                    for one, other in ((caller, server), (server, caller)):
                        threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one, other):
        with contextlib.suppress(OSError):
            for data in iter(lambda: one.recv(65536), b""):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def close(self):
        for opened in self.open:
            opened.close()


@pytest.fixture
def door(box, monkeypatch):
    opened = []

    def make(**choices):
        opened.append(Door(box.port, **choices))
        box.port, box.behind = opened[-1].port, box.port
        box.trust()
        monkeypatch.setenv("SESSION_RELAY_SSH_CONFIG", str(box.write_config()))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def test_a_host_answers_over_either_transport(box, remote):
    assert len(remote.search(REQUEST, 30)["hits"]) == 3
    assert remote.status(30)["filesIndexed"] == 5


def test_a_server_that_takes_no_further_connection_is_tried_again(door, remote):
    entrance = door(refused=2)
    assert remote.search(REQUEST, 30)["hits"][0]["executionHostId"] == "ssh:box"
    assert entrance.callers > 2


def test_a_server_that_never_takes_one_is_given_up(door, remote):
    door(refused=1000)
    with pytest.raises(ClientFault):
        remote.search(REQUEST, 30)


def test_a_server_that_hangs_costs_its_time_and_no_more(door, remote):
    door(hold=True)
    with pytest.raises((TimedOut, Unreachable)):  # whichever clock is first, ours or ssh's
        remote.search(REQUEST, 2)


def test_a_box_without_an_agent(box, remote):
    shutil.rmtree(box.home / ".local")
    with pytest.raises(AgentMissing, match="relay-installer install ssh:box"):
        remote.status(30)


def test_closing_while_connecting(door, remote):
    door(hold=True)
    threading.Timer(0.3, remote.close).start()
    with pytest.raises(ClientFault):
        remote.status(2)
