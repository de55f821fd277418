"""The JSON-RPC client against far sides that misbehave, over real pipes."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.client.command import CommandStreams
from relay.client.faults import AgentMissing, ConnectionLost, ProtocolFault, RemoteError, TimedOut, Unreachable
from relay.client.protocol import JsonRpcClient, MethodNotFound

AGENT = str(Path(__file__).with_name("fake_agent.py"))
SEARCH = {"query": "word", "limit": 3}


@pytest.fixture
def client():
    """Starts a fake agent that behaves as named."""
    opened = []

    def start(*behaviour, **limits):
        streams = CommandStreams((sys.executable, "-S", AGENT, *behaviour))
        opened.append(streams)
        return JsonRpcClient(streams, "runtime:fake", "Install one.", **limits)

    yield start
    for streams in opened:
        streams.close()
        streams._end()


@pytest.mark.parametrize("behaviour", ["well", "noisy", "other-ids", "stderr", "echoing"])
def test_the_answer_is_found_whatever_surrounds_it(client, behaviour):
    agent = client(behaviour)
    for _ in range(2):
        assert agent.call("aiVault.searchStatus", {}, 30)["filesIndexed"] == 5
        assert len(agent.call("aiVault.searchSessions", SEARCH, 30)["hits"]) == 3


def test_an_unknown_method_has_a_fault_of_its_own(client):
    agent = client("ancient")
    for _ in range(2):
        with pytest.raises(MethodNotFound):
            agent.call("aiVault.searchStatus", {}, 30)


def test_another_error_stays_one_and_its_text_is_not_shown(client):
    with pytest.raises(RemoteError) as raised:
        client("failing").call("aiVault.searchSessions", SEARCH, 30)
    assert raised.value.code == -32603
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("behaviour", ["silent", "deaf", "stubborn"])
def test_silence_ends_with_the_time(client, behaviour):
    agent = client(behaviour)
    with pytest.raises(TimedOut, match="runtime:fake"):
        agent.call("aiVault.searchStatus", {}, 0.4)
        agent.call("aiVault.searchStatus", {}, 0.4)


def test_a_peer_that_does_not_read_ends_with_the_time(client):
    with pytest.raises(TimedOut):
        client("deaf").call("aiVault.searchSessions", {"query": "q" * 500000}, 0.4)


@pytest.mark.parametrize("behaviour", ["flooding", "chatty"])
def test_a_flood_is_cut_off(client, behaviour):
    with pytest.raises(ProtocolFault, match="no answer"):
        client(behaviour).call("aiVault.searchStatus", {}, 60)


def test_an_answer_over_the_line_limit_is_dropped(client):
    with pytest.raises(ProtocolFault, match="--limit"):
        client("well", line_limit=100).call("aiVault.searchSessions", SEARCH, 1)


def test_dying_in_the_middle_of_a_line(client):
    with pytest.raises(ConnectionLost, match="exit code 3"):
        client("dying").call("aiVault.searchSessions", SEARCH, 30)


def test_no_program_there(client):
    with pytest.raises(AgentMissing, match="Install one") as raised:
        client("not-found").call("aiVault.searchStatus", {}, 30)
    assert "secret" not in str(raised.value)


def test_no_program_here():
    with pytest.raises(Unreachable, match="no-such-program"):
        CommandStreams(("no-such-program",))


def test_a_request_no_host_takes_is_not_sent(client):
    agent = client("well")
    with pytest.raises(ProtocolFault, match="1 MiB"):
        agent.call("aiVault.searchSessions", {"query": "q" * (1 << 20)}, 30)
    assert agent.call("aiVault.searchStatus", {}, 30)["enabled"]


class Canned:
    """Streams whose far side says ``lines``, in portions; ``{id}`` stands for the id of the request."""

    def __init__(self, lines, portion=lambda size: size):
        self.lines = lines
        self.portion = portion
        self.reader = self.writer = self

    def read1(self, size):
        length = self.portion(len(self.left)) if self.left else 0
        piece, self.left = self.left[:length], self.left[length:]
        return piece

    def write(self, data):
        request_id = json.loads(data)["id"].encode()
        self.left = b"".join(line.replace(b"{id}", request_id) + b"\n" for line in self.lines)

    def flush(self):
        pass

    def exit_code(self, timeout):
        return 0

    def stderr_tail(self):
        return b""

    def close(self):
        pass


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":"{id}"}',
        b'{"jsonrpc":"2.0","id":["{id}"],"result":1}',
        b'{"id":"{id}","result":' + b"9" * 5000 + b"}",
        b'{"id":"{id}","result":NaN}',
        b'{"id":"{id}","result":' + b"[" * 200000,
        b'["{id}"]',
        b'"{id}',
        b"\xff{id}",
    ],
)
def test_what_only_looks_like_an_answer_is_skipped(line):
    good = b'{"jsonrpc":"2.0","id":"{id}","result":"right"}'
    assert JsonRpcClient(Canned([line, good]), "x", "").call("m", {}, 30) == "right"


@pytest.mark.parametrize("noise", [b"Welcome", b"\xff\x00", b"{", b'{"jsonrpc":"2.0"', b'{"jsonrpc":"2.0","id":1}'])
def test_noise_may_end_without_a_line_break(noise):
    good = noise + b'{"jsonrpc":"2.0","id":"{id}","result":"right"}'
    assert JsonRpcClient(Canned([good]), "x", "").call("m", {}, 30) == "right"


@pytest.mark.parametrize("error", [b"1", b"null", b'{"message":"x"}', b'{"code":"-32601"}', b'{"code":true}'])
def test_an_error_that_is_none(error):
    with pytest.raises(ProtocolFault):
        JsonRpcClient(Canned([b'{"id":"{id}","error":' + error + b"}"]), "x", "").call("m", {}, 30)


@given(st.lists(st.binary(max_size=12).map(lambda part: part.replace(b"\n", b"n")), max_size=12), st.data())
def test_the_answer_is_found_however_it_is_portioned(noise, data):
    lines = [*noise, b'{"jsonrpc":"2.0","id":"{id}","result":"right"}']
    canned = Canned(lines, lambda size: data.draw(st.integers(1, size)))
    assert JsonRpcClient(canned, "x", "").call("m", {}, 30) == "right"


def test_closing_from_another_thread_ends_the_wait(client):
    agent = client("silent")
    threading.Timer(0.2, agent.close).start()
    with pytest.raises(ConnectionLost):
        agent.call("aiVault.searchStatus", {}, 60)
