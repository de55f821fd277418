"""Sessions of several files, through to the index: a change of any part is seen."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest

from relay.index import opening
from relay.indexer.full_pass import run_full_pass
from relay.transcripts import jsonl
from relay.transcripts.registry import Env
from tests.support.transcript_sources import document, lines, text


def index(home: Path) -> List[Tuple[Any, ...]]:
    """One full pass over ``home``: (agent, id, title, messages, rows) of each session that answers."""
    state = str(home / "state" / "session-relay")
    run_full_pass(state, Env(str(home)), None, lambda progress: None)
    with contextlib.closing(opening.open_for_reading(opening.database_path(state))) as connection:
        return connection.execute(
            "SELECT agent, session_id, title, message_count, "
            "(SELECT count(*) FROM rows WHERE rows.id >> 28 = sessions.id) "
            "FROM sessions WHERE live = 1 ORDER BY agent, session_id"
        ).fetchall()


def test_a_title_beside_an_appended_log(tmp_path: Path) -> None:
    folder = tmp_path / ".kimi-code/sessions/wd_a/session_1"
    wire = folder / "agents/main/wire.jsonl"
    prompt = {"type": "turn.prompt", "input": [{"type": "text", "text": "hello"}], "origin": {"kind": "user"}}
    lines(wire, prompt)
    assert index(tmp_path) == [("kimi", "session_1", "hello", 1, 1)]
    document(folder / "state.json", {"title": "Greeting"})
    assert index(tmp_path) == [("kimi", "session_1", "Greeting", 1, 1)]
    lines(wire, prompt, {**prompt, "input": "again"})
    document(folder / "state.json", {"title": "Greetings"})
    assert index(tmp_path) == [("kimi", "session_1", "Greetings", 2, 2)]


def test_a_folder_of_documents(tmp_path: Path) -> None:
    folder = tmp_path / ".grok/sessions/%2Fw/s1"
    document(folder / "summary.json", {"info": {"id": "s1"}})
    assert index(tmp_path) == []
    lines(folder / "chat_history.jsonl", {"role": "user", "content": "hello"})
    assert index(tmp_path) == [("grok", "s1", "hello", 1, 1)]
    document(folder / "summary.json", {"info": {"id": "s1"}, "generated_title": "Greeting"})
    assert index(tmp_path) == [("grok", "s1", "Greeting", 1, 1)]


def test_a_replayed_log_and_the_document_it_came_from(tmp_path: Path) -> None:
    chats = tmp_path / ".gemini/tmp/app/chats"
    head = {"sessionId": "g1", "projectHash": "x", "lastUpdated": "2026-06-01T09:00:00Z"}
    said = {"id": "m1", "type": "user", "content": "first", "timestamp": "2026-06-01T09:00:00Z"}
    log = lines(chats / "session-a.jsonl", head, said)
    assert index(tmp_path) == [("gemini", "g1", "first", 1, 1)]
    lines(log, head, said, {"$rewindTo": "m1"}, {**said, "id": "m2", "content": "second"})
    assert index(tmp_path) == [("gemini", "g1", "second", 1, 1)]


def test_a_document_that_is_torn_keeps_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / ".local/share/amp/threads/T-1.json"
    document(path, {"messages": [{"role": "user", "content": "hello"}]})
    expected = [("amp", "T-1", "hello", 1, 1)]
    assert index(tmp_path) == expected
    text(path, '{"messages": [{"role": "user", "con')
    assert index(tmp_path) == expected
    document(path, {"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]})
    assert index(tmp_path) == [("amp", "T-1", "hello", 2, 2)]


def test_a_chat_named_after_its_transcript_was_read(tmp_path: Path) -> None:
    chat = "ff000000-1111-4222-8333-000000000001"
    lines(
        tmp_path / f".cursor/projects/w/agent-transcripts/{chat}.jsonl",
        {"role": "user", "message": {"content": "<user_query>hello</user_query>"}},
    )
    assert index(tmp_path) == [("cursor", chat, "hello", 1, 1)]
    document(tmp_path / f".cursor/chats/0123/{chat}/meta.json", {"title": "Greeting"})
    assert index(tmp_path) == [("cursor", chat, "Greeting", 1, 1)]
    document(tmp_path / f".cursor/chats/0123/{chat}/meta.json", {"title": "Greetings"})
    assert index(tmp_path) == [("cursor", chat, "Greetings", 1, 1)]


def failures(home: Path) -> List[Any]:
    """Why sources failed, by the index that ``index`` made."""
    with contextlib.closing(
        opening.open_for_reading(opening.database_path(str(home / "state" / "session-relay")))
    ) as connection:
        return [reason for (reason,) in connection.execute("SELECT failure FROM sources")]


#: Logs that are read whole: where they lie, and a record in which something is said.
LOGS = {
    "hermes": (".hermes/sessions/20260101_000000_ab.jsonl", {"role": "user", "content": "hello"}),
    "goose": (".local/share/goose/sessions/a.jsonl", {"role": "user", "content": [{"type": "text", "text": "hello"}]}),
    "antigravity": (
        ".gemini/antigravity-cli/brain/a/logs/transcript.jsonl",
        {"type": "USER_INPUT", "source": "USER_EXPLICIT", "content": "hello"},
    ),
    "kimi": (".kimi/sessions/ab/s1/context.jsonl", {"role": "user", "content": "hello"}),
    "gemini": (".gemini/tmp/a/chats/session-1.jsonl", {"id": "m1", "type": "user", "content": "hello"}),
    "grok": (".grok/sessions/%2Fw/s1/chat_history.jsonl", {"role": "user", "content": "hello"}),
}


@pytest.mark.parametrize("agent", sorted(LOGS))
def test_what_cannot_be_read_of_a_log_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str) -> None:
    monkeypatch.setattr(jsonl, "LINE_CAP", 6 << 20)
    name, record = LOGS[agent]
    if agent == "grok":
        document(tmp_path / name.replace("chat_history.jsonl", "summary.json"), {"info": {"id": "s1"}})
    text(tmp_path / name, "\x00 no record\n\x01 at all\n")
    assert index(tmp_path) == []
    assert failures(tmp_path) == ["No line of the file is JSON."]
    text(tmp_path / name, json.dumps(record) + "\n" + json.dumps({**record, "more": "x" * (7 << 20)}) + "\n")
    assert [(found[0], found[2:]) for found in index(tmp_path)] == [(agent, ("hello", 1, 1))]
    assert failures(tmp_path) == ["A line is too long to be read."]
    text(tmp_path / name, json.dumps(record) + "\n")
    assert len(index(tmp_path)) == 1
    assert failures(tmp_path) == [None]


LINES = {
    "claude": (".claude/projects/-w/a.jsonl", {"type": "file-history-snapshot"}),
    "codex": (".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-a.jsonl", {"type": "world_state"}),
    # Grok's session is known by its summary; a Gemini log may be a whole document.
    **{agent: (name, None) for agent, (name, _) in LOGS.items() if agent not in ("grok", "gemini")},
}


@pytest.mark.parametrize("agent", sorted(LINES))
def test_a_file_of_another_program_is_failed(tmp_path: Path, agent: str) -> None:
    name, silent = LINES[agent]
    path = lines(tmp_path / name, {"loglines": [{"a": 1}]}, {"no": {"type": "user"}})
    assert index(tmp_path) == []
    assert failures(tmp_path) == ["It holds no record of this agent."]
    text(path, json.dumps({"loglines": [{}, {"a": {}}], "more": 1}, indent=1) + "\n{}\n")
    assert index(tmp_path) == []
    assert failures(tmp_path) == ["It holds no record of this agent."]
    if silent is not None:
        lines(path, silent, {"loglines": []})
        assert index(tmp_path) == []
        assert failures(tmp_path) == [None]


def test_a_folder_registered_later_reaches_a_session_that_does_not_change(home: Path, tmp_path: Path) -> None:
    kimi = home / ".kimi-code"
    log = kimi / "sessions" / "wd_app_0123456789ab" / "session_1" / "agents" / "main" / "wire.jsonl"
    log.parent.mkdir(parents=True)
    said = {"type": "turn.prompt", "time": 1764000000000, "input": [{"type": "text", "text": "hello kimi"}]}
    log.write_text(json.dumps(said) + "\n")
    chat = home / ".gemini" / "tmp" / "app" / "chats" / "session-2026-06-01T09-00-9f1c0000.json"
    chat.parent.mkdir(parents=True)
    message = {"id": "m1", "timestamp": "2026-06-01T09:00:05.000Z", "type": "user", "content": "hello gemini"}
    chat.write_text(json.dumps({"sessionId": "9f1c0000-1", "projectHash": "app", "messages": [message]}))

    def folders() -> Dict[str, Optional[str]]:
        run_full_pass(str(tmp_path / "state"), Env(str(home)), None, lambda progress: None)
        with contextlib.closing(opening.open_for_reading(opening.database_path(str(tmp_path / "state")))) as connection:
            return dict(connection.execute("SELECT agent, cwd FROM sessions WHERE live = 1").fetchall())

    assert folders() == {"kimi": None, "gemini": None}
    (kimi / "session_index.jsonl").write_text(json.dumps({"sessionId": "session_1", "workDir": "/w/kimi"}) + "\n")
    (home / ".gemini" / "projects.json").write_text(json.dumps({"projects": {"/w/gemini": "app"}}))
    assert folders() == {"kimi": "/w/kimi", "gemini": "/w/gemini"}
