"""The server over real pipes: exactly one response to each call, whatever happens."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections import Counter
from typing import Any, Callable, Iterator, List, Mapping, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.rpc.lanes import Lane
from relay.rpc.messages import ParamsError
from relay.rpc.server import Handover, Method, Server


class Peer:
    """A server with its two pipes, and the other ends of them."""

    def __init__(self, methods: Mapping[str, Any], grace: float = 2.0) -> None:
        server_input, self.input = os.pipe()
        output, server_output = os.pipe()
        self.output = open(output, "rb")
        self._fds = [server_input, server_output]
        before = set(threading.enumerate())
        self.server = Server(methods, server_input, server_output, grace)
        self._thread = threading.Thread(target=self.server.serve)
        self._thread.start()
        self._streams = [thread for thread in set(threading.enumerate()) - before if thread.name in ("input", "output")]

    def send(self, *values: Any) -> None:
        for value in values:
            self.send_bytes(json.dumps(value).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.input, data) :]

    def receive(self) -> Any:
        return json.loads(self.output.readline())

    def ask(self, id: Any, method: str, params: Any = None) -> Any:
        self.send(call(id, method, params))
        return self.receive()

    def end(self) -> List[Any]:
        """Close the input, wait for the server, and give what it still said."""
        os.close(self.input)
        self.input = -1
        return self.rest()

    def rest(self) -> List[Any]:
        """What an ending server still says."""
        self.join()
        os.close(self._fds.pop())
        lines = self.output.read()
        assert not lines or lines.endswith(b"\n")
        return [json.loads(line) for line in lines.splitlines()]

    def join(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive()

    def close(self) -> None:
        self.server.stop()
        self.join()
        if self.input >= 0:
            os.close(self.input)
        self.output.close()
        # Its threads end with the process, not with the server: they must not meet another test's descriptors.
        for thread in self._streams:
            thread.join(30)
        for fd in self._fds:
            os.close(fd)


@pytest.fixture
def start() -> Iterator[Callable[..., Peer]]:
    peers: List[Peer] = []

    def start(methods: Optional[Mapping[str, Any]] = None, grace: float = 2.0) -> Peer:
        peers.append(Peer(METHODS if methods is None else methods, grace))
        return peers[-1]

    yield start
    for peer in peers:
        peer.close()


def echo(params: Any) -> Any:
    return {"params": params}


def fail(params: Any) -> Any:
    raise OSError(2, "No such file", "/home/SECRET/file")


def parse(params: Any) -> Any:
    if not isinstance(params, dict):
        raise ParamsError([{"path": "", "message": "must be an object"}])
    return params


METHODS = {"echo": Method(echo, parse), "plain": echo, "fail": fail, "unserializable": lambda params: object()}


def call(id: Any, method: str, params: Any = None) -> Any:
    return {"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})}


def failed(id: Any, code: int, message: str) -> Any:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


def test_a_call_is_answered(start: Callable[..., Peer]) -> None:
    assert start().ask(1, "echo", {"a": 1}) == {"jsonrpc": "2.0", "id": 1, "result": {"params": {"a": 1}}}


def test_wrong_params_are_answered_with_their_issues(start: Callable[..., Peer]) -> None:
    answer = start().ask("x", "echo", [1])
    assert (answer["id"], answer["error"]["code"]) == ("x", -32602)
    assert answer["error"]["data"] == {"issues": [{"path": "", "message": "must be an object"}]}


@pytest.mark.parametrize("method", ["rpc.discover", "aiVault.listSessions", "fs.readFile", "pty.spawn", "", "Echo"])
def test_an_unknown_method(start: Callable[..., Peer], method: str) -> None:
    assert start().ask(5, method, {"path": "/etc"}) == failed(5, -32601, "Method not found")


def test_a_method_that_fails_tells_nothing(start: Callable[..., Peer]) -> None:
    peer = start()
    assert peer.ask(1, "fail") == failed(1, -32603, "Internal error")
    assert peer.ask(2, "unserializable") == failed(2, -32603, "Internal error")
    assert peer.ask(3, "plain")["result"] == {"params": None}


def test_lines_that_are_no_request(start: Callable[..., Peer]) -> None:
    peer = start()
    peer.send_bytes(b"hello\n\n{}\n[]\n")
    assert [peer.receive() for _ in range(4)] == [
        failed(None, -32700, "Parse error"),
        failed(None, -32700, "Parse error"),
        failed(None, -32600, "Invalid Request"),
        failed(None, -32600, "Invalid Request"),
    ]


def test_a_line_over_the_limit_is_answered_once(start: Callable[..., Peer]) -> None:
    peer = start()
    sender = threading.Thread(target=lambda: peer.send_bytes(b'{"a":"' + b"x" * (10 << 20) + b'"}\n'))
    sender.start()
    assert peer.receive() == failed(None, -32600, "Invalid Request")
    sender.join()
    assert peer.ask(1, "plain")["id"] == 1


def test_notifications_are_never_answered(start: Callable[..., Peer]) -> None:
    peer = start()
    peer.send({"jsonrpc": "2.0", "method": "fail"}, {"jsonrpc": "2.0", "method": "unknown"})
    peer.send([{"jsonrpc": "2.0", "method": "plain"}])
    assert peer.ask(1, "plain")["id"] == 1
    assert peer.end() == []


def test_a_batch_is_one_line(start: Callable[..., Peer]) -> None:
    peer = start()
    peer.send([call(1, "plain"), 7, {"jsonrpc": "2.0", "method": "plain"}, call("b", "none"), call(None, "fail")])
    answers = peer.receive()
    assert len(answers) == 4
    assert {"jsonrpc": "2.0", "id": 1, "result": {"params": None}} in answers
    assert failed(None, -32600, "Invalid Request") in answers
    assert failed("b", -32601, "Method not found") in answers
    assert failed(None, -32603, "Internal error") in answers


def test_a_batch_of_half_a_million_faults_is_answered(start: Callable[..., Peer]) -> None:
    peer = start()
    sender = threading.Thread(target=lambda: peer.send_bytes(b"[" + b"1," * 400_000 + b"1]\n"))
    sender.start()
    line = peer.output.readline()
    sender.join()
    assert line.count(b"-32600") == 400_001


def test_a_batch_whose_answers_grow_too_large_fails_in_part(start: Callable[..., Peer]) -> None:
    peer = start({"large": lambda params: "x" * (1 << 20)})
    peer.send([call(number, "large") for number in range(100)])
    answers = peer.receive()
    assert sorted(answer["id"] for answer in answers) == list(range(100))
    good = [answer for answer in answers if "result" in answer]
    assert 8 <= len(good) <= 8 + 2 * 4  # each worker may have had one under way
    assert all(answer["error"]["code"] == -32603 for answer in answers if answer not in good)


def test_equal_ids_are_each_answered(start: Callable[..., Peer]) -> None:
    peer = start()
    peer.send(call(1, "plain", ["a"]), call(1, "plain", ["b"]))
    assert sorted(peer.receive()["result"]["params"][0] for _ in range(2)) == ["a", "b"]


def test_an_unknown_method_and_another_lane_are_answered_while_workers_wait(start: Callable[..., Peer]) -> None:
    gate = threading.Event()
    slow, quick = Lane("slow", 2), Lane("quick", 1)
    peer = start(
        {
            "slow": Method(lambda params: gate.wait(30), lane=lambda request: slow),
            "quick": Method(echo, lane=lambda request: quick),
        }
    )
    peer.send(*(call(number, "slow") for number in range(50)))
    assert peer.ask("u", "unknown")["id"] == "u"
    assert peer.ask("q", "quick")["id"] == "q"
    gate.set()
    assert sorted(peer.receive()["id"] for _ in range(50)) == list(range(50))


def test_a_call_can_go_on_in_another_lane(start: Callable[..., Peer]) -> None:
    second = Lane("second", 1)
    names: List[str] = []

    def name() -> str:
        names.append(threading.current_thread().name)
        return "done"

    def first(params: Any) -> Any:
        return Handover(second, name)

    assert start({"first": first}).ask(1, "first")["result"] == "done"
    assert names == ["second"]


def test_the_last_line_needs_no_end(start: Callable[..., Peer]) -> None:
    peer = start()
    peer.send_bytes(json.dumps(call(1, "plain")).encode())
    assert [answer["id"] for answer in peer.end()] == [1]


def test_what_is_in_flight_when_the_input_ends_is_finished(start: Callable[..., Peer]) -> None:
    gate = threading.Event()
    peer = start({"slow": lambda params: gate.wait(30)})
    peer.send(*(call(number, "slow") for number in range(20)))
    threading.Timer(0.2, gate.set).start()
    answers = peer.end()
    assert sorted(answer["id"] for answer in answers) == list(range(20))
    assert all(answer["result"] is True for answer in answers)


@pytest.mark.parametrize("batch", [False, True])
def test_what_cannot_be_finished_in_time_is_answered_with_an_error(start: Callable[..., Peer], batch: bool) -> None:
    gate = threading.Event()
    peer = start({"slow": lambda params: gate.wait(30)}, grace=0.2)
    calls = [call(number, "slow") for number in range(10)]
    peer.send(*([calls] if batch else calls))
    answers = peer.end()
    gate.set()
    if batch:
        (answers,) = answers
    assert sorted(answer["id"] for answer in answers) == list(range(10))
    assert {answer["error"]["code"] for answer in answers} == {-32603}


def test_a_call_may_have_a_second_chance_at_the_end(start: Callable[..., Peer]) -> None:
    gate = threading.Event()
    slow = Method(lambda params: gate.wait(30), late=lambda params: {"late": params})
    peer = start({"slow": slow}, grace=0.4)
    peer.send(call(1, "slow", ["a"]), call(2, "slow", ["b"]))
    answers = peer.end()
    gate.set()
    assert sorted((answer["id"], answer["result"]["late"]) for answer in answers) == [(1, ["a"]), (2, ["b"])]


def test_stop_ends_it_while_the_input_is_open(start: Callable[..., Peer]) -> None:
    peer = start()
    assert peer.ask(1, "plain")["id"] == 1
    peer.server.stop()
    assert peer.rest() == []


def test_a_peer_that_is_gone_ends_it(start: Callable[..., Peer]) -> None:
    peer = start()
    peer.output.close()
    peer.send(call(1, "plain"))
    peer.join()


def test_a_peer_that_stops_reading_is_not_read_from(start: Callable[..., Peer]) -> None:
    peer = start({"large": lambda params: "x" * (1 << 16)}, grace=0.2)
    os.set_blocking(peer.input, False)
    sent = 0
    frame = json.dumps(call(1, "large", ["y" * 500])).encode() + b"\n"
    with pytest.raises(BlockingIOError):
        stalled = threading.Event()
        while not stalled.wait(0.0005 if sent > 20_000 else 0):
            sent += os.write(peer.input, frame) // len(frame)
            assert sent < 100_000
    os.set_blocking(peer.input, True)
    peer.server.stop()
    peer.join()


def test_descriptors_that_do_not_block_are_served_too() -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    server = Server({"large": lambda params: "x" * (1 << 20)}, theirs.fileno(), theirs.fileno())
    thread = threading.Thread(target=server.serve)
    thread.start()
    with ours, theirs, ours.makefile("rb") as lines:
        for number in range(3):
            ours.sendall(json.dumps(call(number, "large")).encode() + b"\n")
            assert json.loads(lines.readline())["id"] == number
        ours.shutdown(socket.SHUT_WR)
        thread.join(30)
    assert not thread.is_alive()


IDS = st.none() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.sampled_from(["echo", "plain", "fail", "unserializable", "unknown", "rpc.discover"])
PARAMS = st.none() | st.dictionaries(st.text(max_size=3), st.integers()) | st.lists(st.text(max_size=3)) | st.integers()
CALLS = st.builds(call, IDS, NAMES, PARAMS)
NOISE = st.sampled_from(
    [1, None, "x", {}, {"id": 1}, {"jsonrpc": "2.0", "method": "plain"}, {"jsonrpc": "2.0", "id": []}]
)
VALUES = CALLS | NOISE | st.lists(CALLS | NOISE, min_size=1, max_size=4)


def expected(value: Any) -> List[str]:
    """The ids, as JSON, under which a value must be answered; "invalid" stands for an error with a null id."""
    if isinstance(value, list):
        return [id for item in value for id in expected(item)]
    if not isinstance(value, dict) or not isinstance(value.get("method"), str):
        return ["invalid"]
    return [json.dumps(value["id"])] if "id" in value else []


def answered(answer: Any) -> List[str]:
    if isinstance(answer, list):
        assert answer
        return [id for item in answer for id in answered(item)]
    assert answer["jsonrpc"] == "2.0" and set(answer) - {"result", "error"} == {"jsonrpc", "id"}
    assert ("result" in answer) != ("error" in answer)
    invalid = "error" in answer and answer["error"]["code"] in (-32600, -32700)
    return ["invalid"] if invalid else [json.dumps(answer["id"])]


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES | st.binary(max_size=20), max_size=12), st.lists(st.integers(0, 2000), max_size=6))
def test_any_stream_in_any_portions_gets_exactly_its_answers(values: List[Any], cuts: List[int]) -> None:
    lines = []
    due: List[str] = []
    for value in values:
        if isinstance(value, bytes):
            # never a valid value, whatever follows in its line
            line = b"\xff" + value.replace(b"\n", b"")
            due.append("invalid")
        else:
            line = json.dumps(value).encode()
            due += expected(value)
        lines.append(line)
    stream = b"".join(line + b"\n" for line in lines)
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    peer = Peer(METHODS)
    try:
        for start, end in zip(places, places[1:]):
            peer.send_bytes(stream[start:end])
        answers = peer.end()
    finally:
        peer.close()
    assert Counter(id for answer in answers for id in answered(answer)) == Counter(due)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_answered_with_whole_lines_of_json(stream: bytes) -> None:
    peer = Peer(METHODS)
    try:
        peer.send_bytes(stream)
        for answer in peer.end():
            answered(answer)
    finally:
        peer.close()
