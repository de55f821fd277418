"""Sessions of several files, through to the index: a change of any part is seen."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, List, Tuple

from relay.index import opening
from relay.indexer.full_pass import run_full_pass
from relay.transcripts.registry import Env
from tests.support.transcript_sources import document, lines, text


def index(home: Path) -> List[Tuple[Any, ...]]:
    """One full pass over ``home``: (agent, id, title, messages, rows) of each session that answers."""
    state = str(home / "state" / "session-relay")
    run_full_pass(state, Env(str(home)), None, lambda progress: None)
    with contextlib.closing(opening.open_for_reading(opening.database_path(state))) as connection:
        return connection.execute(
            "SELECT agent, session_id, title, message_count, (SELECT count(*) FROM rows WHERE rows.id >> 28 = sessions.id) "
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
