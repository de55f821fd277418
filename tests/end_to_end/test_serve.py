"""``relay serve`` from outside: real processes on real pipes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any, List

import pytest

from relay.contract.responses import ABSENT_STATUS
from tests.support.serving import RELAY, Serving, call, claude_session, run, search

STATUS = call("status", "aiVault.searchStatus")
DISABLED = {"kind": "unavailable", "reason": "disabled"}

#: The agent with a service that waits for a file to appear, and prints where nothing may be printed.
SLOW = """
    import os, sys, time
    from relay.cli import serve
    from relay.contract.responses import ABSENT_STATUS
    class Slow:
        def start(self):
            print("a stray print at start")
        def wait(self):
            print("a stray print of a method")
            os.write(1, b"a stray write\\n")
            while not os.path.exists(sys.argv[1]):
                time.sleep(0.01)
            return True
        def wait_until_current(self, request):
            return self.wait()
        def answer(self, request, current):
            if request.query == "slow":
                self.wait()
            return {"kind": "malformed-cursor"}
        def status(self):
            return ABSENT_STATUS
        def close(self, timeout):
            print("closed")
    serve.Service.of_this_account = classmethod(lambda cls: Slow())
    sys.exit(serve.run())
"""


def slow_agent(gate: Path) -> Serving:
    return Serving((sys.executable, "-c", textwrap.dedent(SLOW), str(gate)))


def sessions(answer: Any) -> List[str]:
    return [hit["sessionId"] for hit in answer["result"]["hits"]]


def results(answer: Any) -> bool:
    return bool(answer["result"]["kind"] == "results")


def test_the_two_methods_and_nothing_else() -> None:
    with Serving() as agent:
        assert agent.ask(STATUS)["result"]["enabled"] is False
        assert agent.ask(search(1, "anything"))["result"] == DISABLED
        for method in (
            "aiVault.listSessions",
            "aiVault.searchConfigure",
            "aiVault.clearSearchIndex",
            "rpc.discover",
            "fs.readFile",
            "pty.spawn",
            "aivault.searchstatus",
        ):
            assert agent.ask(call(method, method, {"path": "/etc/passwd"})) == {
                "jsonrpc": "2.0",
                "id": method,
                "error": {"code": -32601, "message": "Method not found"},
            }
        assert agent.end() == []


def test_nothing_is_made_without_consent(home: Path) -> None:
    claude_session(home, "s1", "something to find")
    before = sorted(home.rglob("*"))
    with Serving() as agent:
        agent.send(search(1, "something"), search(2, "something", freshness="wait-until-current"), STATUS)
        assert len(agent.end()) == 3
    assert sorted(home.rglob("*")) == before


def test_wrong_params_come_back_with_their_issues() -> None:
    with Serving() as agent:
        answer = agent.ask(search(1, "q", scope="every", filters={"agents": ["claude", "clod"]}))
    assert answer["error"]["code"] == -32602
    assert [issue["path"] for issue in answer["error"]["data"]["issues"]] == ["scope", "filters.agents.1"]


def test_a_pipe_by_hand() -> None:
    for text in (
        b'{"jsonrpc":"2.0","id":1,"method":"aiVault.searchStatus"}',
        b'{"jsonrpc":"2.0","id":1,"method":"x"}\r\n',
    ):
        done = run("serve", input=text)
        assert (done.returncode, done.stderr) == (0, b"")
        assert json.loads(done.stdout)["id"] == 1 and done.stdout.endswith(b"}\n")


def test_a_line_of_ten_mebibytes_is_answered_once_and_not_kept() -> None:
    with Serving() as agent:
        agent.ask(STATUS)
        before = agent.memory()
        sender = threading.Thread(target=lambda: agent.send_bytes(b'{"x":"' + b"y" * (10 << 20) + b'"}\n'))
        sender.start()
        assert agent.receive() == {
            "jsonrpc": "2.0",
            "id": None,
            "error": {"code": -32600, "message": "Invalid Request"},
        }
        sender.join()
        assert agent.ask(call(1, "x"))["id"] == 1
        assert agent.memory() - before < 8 << 10
        assert agent.end() == []


def test_stray_output_lands_on_stderr(tmp_path: Path) -> None:
    (tmp_path / "gate").touch()
    with slow_agent(tmp_path / "gate") as agent:
        assert agent.ask(search(1, "slow"))["result"] == {"kind": "malformed-cursor"}
        assert agent.end() == []
    for stray in (b"a stray print at start", b"a stray print of a method", b"a stray write", b"closed"):
        assert stray in agent.complained


def test_searches_that_wait_hold_up_nothing(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with slow_agent(gate) as agent:
        agent.send(*(search(number, "q", freshness="wait-until-current") for number in range(100)))
        assert agent.ask(search("other", "q"))["id"] == "other"
        agent.send(*(search(100 + number, "slow") for number in range(20)))
        assert agent.ask(STATUS)["id"] == "status"
        assert agent.ask(call("unknown", "rpc.discover"))["id"] == "unknown"
        gate.touch()
        assert sorted(agent.receive()["id"] for _ in range(120)) == list(range(120))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_lets_what_is_in_flight_finish(tmp_path: Path, number: int) -> None:
    gate = tmp_path / "gate"
    with slow_agent(gate) as agent:
        agent.send(*(search(number, "slow") for number in range(8)))
        assert agent.ask(STATUS)["id"] == "status"
        agent.process.send_signal(number)
        threading.Timer(0.3, gate.touch).start()
        answers = agent.rest()
        assert sorted(answer["id"] for answer in answers) == list(range(8))
        assert all("result" in answer for answer in answers)
        assert b"closed" in agent.complained


@pytest.mark.parametrize("way", ["end of input", "SIGTERM"])
def test_what_takes_longer_than_two_seconds_is_an_error(tmp_path: Path, way: str) -> None:
    with slow_agent(tmp_path / "never") as agent:
        agent.send(*(search(number, "slow") for number in range(8)), call(8, "aiVault.searchStatus"))
        answers = [agent.receive()]
        if way == "SIGTERM":
            agent.process.send_signal(signal.SIGTERM)
        answers += agent.end()
    assert sorted(answer["id"] for answer in answers) == list(range(9))
    assert {answer["error"]["code"] for answer in answers if "error" in answer} == {-32603}


def test_a_wait_for_freshness_is_given_up_at_the_end(tmp_path: Path) -> None:
    with slow_agent(tmp_path / "never") as agent:
        agent.send(*(search(number, "q", freshness="wait-until-current") for number in range(50)))
        answers = agent.end()
    assert sorted(answer["id"] for answer in answers) == list(range(50))
    assert all(answer["result"] == {"kind": "malformed-cursor"} for answer in answers)


def test_a_peer_that_stops_reading_is_held_up_and_loses_nothing() -> None:
    with Serving() as agent:
        agent.ask(STATUS)
        before = agent.memory()
        count = agent.flood(json.dumps(call("a long id to be sent back " * 4, "unknown")).encode() + b"\n")
        assert agent.memory() - before < 24 << 10
        for _ in range(count):
            assert agent.receive()["error"]["code"] == -32601
        assert agent.end() == []


def test_a_flood_of_searches_from_a_peer_that_stops_reading(home: Path) -> None:
    for number in range(30):
        claude_session(home, f"s{number}", "something to find " * 20)
    run("enable")
    run("index")
    with Serving() as agent:
        assert results(agent.ask(search(0, "something")))
        count = agent.flood(json.dumps(search(1, "something" + " " * 20_000)).encode() + b"\n")
        assert agent.memory() < 150 << 10
        for _ in range(count):
            assert results(agent.receive())
        assert agent.end() == []


def test_a_signal_ends_it_although_the_peer_does_not_read() -> None:
    with Serving() as agent:
        agent.ask(STATUS)
        agent.flood(json.dumps(call(1, "unknown")).encode() + b"\n")
        agent.process.send_signal(signal.SIGTERM)
        assert agent.process.wait(30) == 0


def test_a_peer_that_went_away_ends_it() -> None:
    with Serving() as agent:
        agent.ask(STATUS)
        assert agent.process.stdout is not None
        agent.process.stdout.close()
        agent.send(STATUS)
        assert agent.process.wait(30) == 0


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_at_start(closed: str) -> None:
    line = f"echo '{json.dumps(STATUS)}' | {{ {' '.join(RELAY)} serve {closed}; }}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
    assert done.stderr == b""
    assert bool(done.stdout) is (closed == "2>&-")


@pytest.mark.parametrize(
    "lack",
    ["import relay.index.opening as opening; opening.fts5_available = lambda: False", "sys.modules['sqlite3'] = None"],
)
def test_a_python_that_can_have_no_index(home: Path, lack: str) -> None:
    claude_session(home, "s1", "the reattach race")
    run("enable")
    code = f"import sys; {lack}; sys.argv[1:] = ['serve']; from relay.__main__ import main; main()"
    with Serving((sys.executable, "-c", code)) as agent:
        for freshness in ("indexed", "wait-until-current"):
            answer = agent.ask(search(1, "reattach", freshness=freshness))
            assert answer["result"] == {"kind": "unavailable", "reason": "no-service"}
        assert agent.ask(STATUS)["result"] == ABSENT_STATUS
        assert agent.end() == []
    assert not (home / ".local").exists()


def test_from_consent_to_an_answer_and_back(home: Path) -> None:
    claude_session(home, "s1", "the reattach race")
    with Serving() as agent:
        assert agent.ask(search(1, "reattach"))["result"] == DISABLED
        assert run("enable").returncode == 0
        fresh = search(2, "reattach", freshness="wait-until-current")
        answer = agent.until(fresh, results)
        assert sessions(answer) == ["s1"]
        assert answer["result"]["hits"][0]["source"] == {"presence": "present"}
        assert "resumeCommand" not in answer["result"]["hits"][0]
        claude_session(home, "s2", "another reattach race")
        assert sorted(sessions(agent.ask(fresh))) == ["s1", "s2"]
        status = agent.ask(STATUS)["result"]
        assert (status["enabled"], status["filesIndexed"], status["degradedRoots"]) == (True, 2, [])
        assert run("disable").returncode == 0
        agent.until(fresh, lambda answer: answer["result"] == DISABLED)
        assert agent.ask(STATUS)["result"]["enabled"] is False
        assert (home / ".local/state/session-relay/index.db").exists()
        assert run("disable", "--clear").returncode == 0
        assert not (home / ".local/state/session-relay/index.db").exists()
        assert agent.end() == []


def test_clear_under_a_running_agent_makes_cursors_stale_and_loses_no_transcript(home: Path) -> None:
    transcripts = [claude_session(home, f"s{number}", f"the reattach race {number}") for number in range(3)]
    written = [path.read_bytes() for path in transcripts]
    run("enable")
    with Serving() as agent:
        fresh = search(1, "reattach", limit=1, freshness="wait-until-current")
        page = agent.until(fresh, lambda answer: results(answer) and answer["result"]["page"]["hasMore"])["result"]
        follow = search(2, "reattach", limit=1, cursor=page["page"]["cursor"])
        assert agent.ask(follow)["result"]["kind"] == "results"
        assert run("clear").returncode == 0
        kinds = set()

        def stale(answer: Any) -> bool:
            kinds.add(answer["result"].get("reason") or answer["result"]["kind"])
            return bool(answer["result"]["kind"] == "stale-cursor")

        agent.until(follow, stale)
        assert kinds <= {"results", "not-ready", "stale-cursor"}
        again = agent.until(fresh, lambda answer: results(answer) and answer["result"]["page"]["hasMore"])
        assert agent.ask(follow)["result"]["kind"] == "stale-cursor"
        assert again["result"]["page"]["cursor"] != page["page"]["cursor"]
        assert agent.end() == []
    assert [path.read_bytes() for path in transcripts] == written


def test_the_index_is_released_at_the_end(home: Path) -> None:
    claude_session(home, "s1", "the reattach race")
    run("enable")
    with Serving() as agent:
        agent.until(search(1, "reattach", freshness="wait-until-current"), results)
        agent.end()
    import fcntl

    with open(home / ".local/state/session-relay/writer.lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
