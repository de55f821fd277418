"""grok-cli's database, which shares its home with another Grok."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, List, Tuple

import pytest

from relay.transcripts.types import Message, Session, Unreadable
from tests.support.transcript_sources import database, keys, read, sources, unknown

SCHEMA = """
    PRAGMA journal_mode = WAL;
    CREATE TABLE workspaces (id TEXT PRIMARY KEY, canonical_path TEXT, git_root TEXT);
    CREATE TABLE sessions (id TEXT PRIMARY KEY, workspace_id TEXT, title TEXT, recap_text TEXT, model TEXT, mode TEXT,
        cwd_at_start TEXT, cwd_last TEXT, status TEXT, created_at TEXT, updated_at TEXT);
    CREATE TABLE messages (session_id TEXT, seq INTEGER, role TEXT, message_json TEXT, created_at TEXT);
    CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, session_id TEXT, message_seq INTEGER, tool_name TEXT);
    CREATE TABLE compactions (id INTEGER PRIMARY KEY, session_id TEXT, first_kept_seq INTEGER, summary TEXT);
"""
T = 1767607200000


def session(identity: str, title: Any = None, cwd: Any = "/w/app") -> Tuple[object, ...]:
    times = ("2026-01-05T10:00:00.000Z", "2026-01-05T10:00:09.000Z")
    return (identity, "w1", title, None, "grok", "agent", cwd, None, "active", *times)


def message(of: str, seq: int, role: str, content: Any) -> Tuple[object, ...]:
    return (of, seq, role, json.dumps({"role": role, "content": content}), f"2026-01-05T10:00:0{seq}.000Z")


def store(home: Path, sessions: List[Tuple[object, ...]], messages: List[Tuple[object, ...]]) -> Path:
    path = home / ".grok/grok.db"
    workspaces: List[Tuple[object, ...]] = [("w1", "/w/workspace", "/w")]
    database(path, SCHEMA, ("workspaces", workspaces), ("sessions", sessions), ("messages", messages))
    return path


def test_an_ordinary_session(tmp_path: Path) -> None:
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "bash", "input": {"command": "ls"}}
    result = {"type": "tool-result", "toolCallId": "c1", "output": {"type": "text", "value": "a.py"}}
    rows = [
        message("s1", 2, "assistant", [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "Sure."}, call]),
        message("s1", 1, "user", "list files"),
        message("s1", 3, "tool", [result]),
        message("s1", 4, "assistant", "One file."),
    ]
    store(tmp_path, [session("s1", "Listing")], rows)
    (source,) = sources("grok", tmp_path)
    assert read(source) == {
        "s1": (
            Session(
                "s1",
                "Listing",
                cwd="/w/app",
                created_at=T,
                updated_at=T + 9000,
                message_count=3,
                resume="grok --session s1",
            ),
            [
                Message(0, "user", "list files", T + 1000),
                Message(1, "assistant", "Sure.", T + 2000),
                Message(2, "tool", "bash command: ls", T + 2000),
                Message(3, "tool", "a.py", T + 3000),
                Message(4, "assistant", "One file.", T + 4000),
            ],
        )
    }


def test_images_json_results_unknown_blocks_and_keys(tmp_path: Path) -> None:
    picture = {"type": "image", "image": "QUJD" * 100, "mediaType": "image/jpeg"}
    result = {"type": "tool-result", "output": {"type": "json", "value": {"lines": 3}}}
    rows = [
        message("s1", 1, "system", "rules"),
        message("s1", 2, "user", [picture, {"type": "text", "text": "what is it?"}, {"type": "smell"}]),
        message("s1", 3, "tool", [result]),
    ]
    path = store(tmp_path, [session("s1", "", None), session("s2")], rows)
    (source,) = sources("grok", tmp_path)
    head, messages = read(source)["s1"]
    assert (head.title, head.cwd, head.message_count) == ("what is it?", "/w/workspace", 1)
    assert [one.text for one in messages] == ["[image image/jpeg 300]", "what is it?", "lines: 3"]
    assert unknown(source) == 1
    before = keys(source)
    database(path, "", ("messages", [message("s2", 1, "user", "hello")]))
    after = keys(source)
    assert {one for one in after if after[one] != before[one]} == {"s2"}


def test_a_broken_row_and_a_broken_database(tmp_path: Path) -> None:
    path = store(tmp_path, [session("s1")], [message("s1", 1, "user", "kept")])
    database(path, "INSERT INTO messages VALUES ('s1', 2, 'oracle', '{torn', NULL)")
    (source,) = sources("grok", tmp_path)
    assert [one.text for one in read(source)["s1"][1]] == ["kept"] and unknown(source) == 1
    database(path, "DROP TABLE messages")
    with pytest.raises(Unreadable, match="no table messages"):
        read(source)
