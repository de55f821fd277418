"""The page docs/adding-an-agent.md, followed to the letter: its row and its module, through every layer."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

import relay.transcripts
from relay.contract.requests import SearchRequest
from relay.indexer.full_pass import run_full_pass
from relay.indexer.indexer import Indexer
from relay.search.engine import Engine
from relay.transcripts import globs, registry, rows
from relay.transcripts.registry import Env
from relay.transcripts.types import Message, Session
from tests.support.transcript_sources import lines, read, sources, text, unknown

PAGE = Path(__file__).parents[2] / "docs" / "adding-an-agent.md"


def block(language: str, containing: str) -> str:
    """The page's code block that contains these words."""
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    (one,) = [code for code in found if containing in code]
    return str(one)


@pytest.fixture
def parrot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent added: its module where modules lie, its row among the rows, and nothing else."""
    modules = tmp_path / "modules"
    text(modules / "parrot.py", block("python", "class ParrotReader"))
    monkeypatch.setattr(relay.transcripts, "__path__", [*relay.transcripts.__path__, str(modules)])
    monkeypatch.delitem(sys.modules, "relay.transcripts.parrot", raising=False)
    names: Dict[str, Any] = {
        "Agent": registry.Agent,
        "APPEND": registry.APPEND,
        "homes": globs.homes,
        "store": globs.store,
    }
    exec(block("python", "PARROT = Agent"), names)
    monkeypatch.setattr(rows, "AGENTS", (*rows.AGENTS, names["PARROT"]))


@pytest.fixture
def talk(home: Path) -> Path:
    return text(home / ".parrot/talks/app/p-1.jsonl", block("json", '"kind": "talk"'))


def found(state: Path, env: Env, words: str) -> List[Dict[str, Any]]:
    """What a search answers over the index in ``state``."""
    engine = Engine(Indexer(str(state), env, None).database_path)
    try:
        return list(engine.search(SearchRequest(query=words))["hits"])
    finally:
        engine.close()


def test_the_page_is_read_as_it_says(parrot: None, home: Path, talk: Path) -> None:
    (source,) = sources("parrot", home)
    start = 1_777_708_800_000
    assert read(source) == {
        "p-1": (
            Session(
                "p-1",
                "Whistling",
                cwd="/w/app",
                created_at=start,
                updated_at=start + 4000,
                message_count=2,
                resume="parrot --perch p-1",
            ),
            [
                Message(0, "user", "teach me to whistle", start + 1000),
                Message(1, "assistant", "Purse your beak.", start + 2000),
                Message(2, "tool", "sing tune: scales", start + 3000),
            ],
        )
    }
    assert unknown(source) == 0


def test_it_is_indexed_found_and_can_be_resumed(parrot: None, home: Path, talk: Path, tmp_path: Path) -> None:
    env = Env(str(home))
    state = tmp_path / "state"
    state.mkdir()
    run_full_pass(str(state), env, None, lambda progress: None)
    (hit,) = found(state, env, "whistle")
    assert (hit["agent"], hit["sessionId"], hit["title"], hit["cwd"]) == ("parrot", "p-1", "Whistling", "/w/app")
    assert (hit["evidence"]["snippet"], hit["messageCount"]) == ("teach me to [[whistle]]", 2)
    assert hit["source"]["filePath"] == str(talk)
    assert "parrot --perch p-1" in hit["resumeCommand"]
    with open(talk, "a", encoding="utf-8") as file:
        file.write('{"kind": "bird", "says": "Now blow softly.", "when": "2026-05-02T08:01:00Z"}\n')
    run_full_pass(str(state), env, None, lambda progress: None)
    assert [hit["messageCount"] for hit in found(state, env, "blow softly")] == [3]


SID = "0199a000-0000-7000-8000-000000000001"


def rename_codex(home: Path, name: str) -> None:
    with open(home / ".codex/session_index.jsonl", "a", encoding="utf-8") as file:
        file.write(f'{{"id":"{SID}","thread_name":"{name}"}}\n')


def rename_copilot(home: Path, name: str) -> None:
    text(home / f".copilot/session-state/{SID}/workspace.yaml", f"name: {name}\n")


@pytest.mark.parametrize(
    ("file", "record", "rename"),
    [
        (
            f".codex/sessions/2026/05/02/rollout-2026-05-02T08-00-00-{SID}.jsonl",
            {"type": "event_msg", "payload": {"type": "user_message", "message": "whistle"}},
            rename_codex,
        ),
        (
            f".copilot/session-state/{SID}/events.jsonl",
            {"type": "user.message", "data": {"content": "whistle"}},
            rename_copilot,
        ),
    ],
)
def test_a_name_given_beside_the_transcript_arrives(
    home: Path, tmp_path: Path, file: str, record: Dict[str, Any], rename: Callable[[Path, str], None]
) -> None:
    lines(home / file, record)
    env = Env(str(home))
    state = tmp_path / "state"
    state.mkdir()
    for name in ("", "First name", "Second name"):
        if name:
            rename(home, name)
        run_full_pass(str(state), env, None, lambda progress: None)
        assert [hit["title"] for hit in found(state, env, "whistle")] == [name or "whistle"]
