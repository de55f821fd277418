"""No name of a folder that is read or written reaches the peer, whatever goes wrong."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from tests.support.serving import Serving, call, claude_session, run, search

MARKER = "PLANTEDNAME"

STATUS = call("status", "aiVault.searchStatus")
FRESH = search("fresh", "reattach", freshness="wait-until-current", debug=True)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and XDG folders all below a folder whose name must stay here; one session, one that cannot be read."""
    home = tmp_path / f"{MARKER}-home"
    for name, folder in (("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config"), ("XDG_DATA_HOME", "data")):
        monkeypatch.setenv(name, str(tmp_path / f"{MARKER}-{folder}"))
    monkeypatch.setenv("HOME", str(home))
    claude_session(home, "s1", "the reattach race")
    claude_session(home / f"{MARKER}-further", "s2", "another reattach race")
    broken = home / ".gemini" / "tmp" / f"{MARKER}-project" / "chats" / "session-1.json"
    broken.parent.mkdir(parents=True)
    broken.write_text('{"messages": [')
    assert run("enable", "--root", f"claude={home}/{MARKER}-further/.claude").returncode == 0
    return tmp_path


@pytest.fixture
def agent(place: Path) -> Iterator[Serving]:
    """An agent that has answered; at the end everything it wrote is searched for the marker."""
    with Serving() as agent:
        agent.until(FRESH, found)
        yield agent
        agent.ask(STATUS)
        for wrong in (search(1, "q", filters={"scopePaths": 5}), call(2, "fs.readFile", {"path": "/"}), call(3, "x")):
            agent.ask(wrong)
        agent.send_bytes(b"{\n")
        agent.end()
        assert len(agent.said) > 500
        assert MARKER.encode() not in agent.said
        assert MARKER.encode() not in agent.complained


def found(answer: Any) -> bool:
    return bool(answer.get("result", {}).get("hits"))


def index(place: Path) -> Path:
    return place / f"{MARKER}-state" / "session-relay" / "index.db"


def test_hits_of_every_root_and_a_failed_file(agent: Serving) -> None:
    answer = agent.ask(FRESH)["result"]
    assert sorted(hit["sessionId"] for hit in answer["hits"]) == ["s1", "s2"]
    assert all(hit["source"] == {"presence": "present"} for hit in answer["hits"])
    assert agent.until(STATUS, lambda answer: answer["result"]["filesFailed"] == 1)["result"]["filesIndexed"] == 2


def test_a_root_that_cannot_be_read(place: Path, agent: Serving) -> None:
    root = place / f"{MARKER}-home" / ".claude" / "projects"
    root.rename(root.with_name("gone"))
    root.symlink_to(root)  # a loop, which not even root can read
    agent.ask(FRESH)
    status = agent.until(STATUS, lambda answer: answer["result"]["phase"] == "degraded")["result"]
    assert status["degradedRoots"] == [{"reason": "Source root could not be verified."}]
    hits = agent.ask(search(1, "reattach"))["result"]["hits"]
    presences = {hit["sessionId"]: hit["source"] for hit in hits}
    assert presences == {"s1": {"presence": "unverifiable"}, "s2": {"presence": "present"}}
    root.unlink()
    root.with_name("gone").rename(root)
    agent.until(FRESH, lambda answer: all(hit["source"]["presence"] == "present" for hit in answer["result"]["hits"]))


def header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"no database at all, " * 50)


def middle(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(min(8192, size // 2))
        file.write(os.urandom(size // 2))


def cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 3)


def removed(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("harm", [header, middle, cut, removed])
def test_a_database_that_is_harmed_under_it(place: Path, agent: Serving, harm: Callable[[Path], None]) -> None:
    with sqlite3.connect(index(place)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    harm(index(place))
    for _ in range(5):
        agent.ask(search(1, "reattach"))
        agent.ask(STATUS)
    agent.until(FRESH, found, 60)


def test_a_database_that_is_harmed_between_two_agents(place: Path, agent: Serving) -> None:
    agent.end()
    header(index(place))
    agent.start_again()
    agent.until(FRESH, found, 60)


@pytest.mark.parametrize("where", ["state", "config"])
def test_a_folder_of_ours_that_is_a_file(place: Path, agent: Serving, where: str) -> None:
    agent.end()
    folder = place / f"{MARKER}-{where}" / "session-relay"
    folder.rename(folder.with_name("was"))
    folder.write_text("in the way")
    agent.start_again()
    expected = {"state": "no-service", "config": "disabled"}[where]
    assert agent.ask(FRESH)["result"] == {"kind": "unavailable", "reason": expected}


def test_a_broken_policy(place: Path, agent: Serving) -> None:
    (place / f"{MARKER}-config" / "session-relay" / "policy.json").write_text("{")
    agent.until(STATUS, lambda answer: not answer["result"]["enabled"])
    assert agent.ask(FRESH)["result"] == {"kind": "unavailable", "reason": "disabled"}


def test_an_agent_that_cannot_even_import(place: Path) -> None:
    code = (
        "import sys; sys.modules['relay.indexer.indexer'] = None; sys.argv[1:] = ['serve'];"
        "from relay.__main__ import main; main()"
    )
    with Serving((sys.executable, "-c", code)) as agent:
        assert agent.ask(FRESH)["result"] == {"kind": "unavailable", "reason": "no-service"}
        assert agent.ask(STATUS)["result"]["enabled"] is False
        agent.end()
        assert MARKER.encode() not in agent.said + agent.complained
