"""Goose: what its database and its older files hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, List, Tuple

import pytest

from relay.transcripts.types import Message, Session, Unreadable
from tests.support.transcript_sources import database, keys, read, sources, unknown

SCHEMA = """
    PRAGMA journal_mode = WAL;
    CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '',
        user_set_name BOOLEAN DEFAULT FALSE, session_type TEXT NOT NULL DEFAULT 'user', working_dir TEXT NOT NULL,
        created_at TIMESTAMP, updated_at TIMESTAMP, parent_session_id TEXT);
    CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT NOT NULL,
        role TEXT NOT NULL, content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL,
        timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, tokens INTEGER, metadata_json TEXT);
    CREATE INDEX idx_messages_session ON messages (session_id);
"""
T = 1767607200  # 2026-01-05 10:00:00 UTC


def session(identity: str, name: str = "", kind: str = "user", parent: Any = None) -> Tuple[object, ...]:
    return (identity, name, "", 0, kind, "/w/app", "2026-01-05 10:00:00", "2026-01-05 10:00:30", parent)


def message(number: int, of: str, role: str, at: int, *blocks: Any, metadata: Any = None) -> Tuple[object, ...]:
    data = metadata if metadata is None else json.dumps(metadata)
    return (number, f"m{number}", of, role, json.dumps(blocks), at, "2026-01-05 10:00:00", None, data)


def said(text: str) -> "dict[str, str]":
    return {"type": "text", "text": text}


def store(home: Path, sessions: List[Tuple[object, ...]], messages: List[Tuple[object, ...]]) -> Path:
    path = home / ".local/share/goose/sessions/sessions.db"
    database(path, SCHEMA, ("sessions", sessions), ("messages", messages))
    return path


def test_an_ordinary_session(tmp_path: Path) -> None:
    request = {"status": "success", "value": {"name": "developer__shell", "arguments": {"command": "make"}}}
    response = {"status": "success", "value": {"content": [{"type": "text", "text": "ok"}], "isError": False}}
    store(
        tmp_path,
        [session("20260105_1", "Build it")],
        [
            message(1, "20260105_1", "user", T, said("please build")),
            message(
                2,
                "20260105_1",
                "assistant",
                T + 1,
                {"type": "thinking", "thinking": "hm", "signature": ""},
                said("Building."),
                {"type": "toolRequest", "id": "t1", "toolCall": request},
            ),
            message(3, "20260105_1", "user", T + 2, {"type": "toolResponse", "id": "t1", "toolResult": response}),
            message(4, "20260105_1", "assistant", T + 60, said("Done.")),
        ],
    )
    (source,) = sources("goose", tmp_path)
    assert read(source) == {
        "20260105_1": (
            Session(
                "20260105_1",
                "Build it",
                cwd="/w/app",
                created_at=T * 1000,
                updated_at=(T + 60) * 1000,
                message_count=3,
                resume="goose session --resume --session-id 20260105_1",
            ),
            [
                Message(0, "user", "please build", T * 1000),
                Message(1, "assistant", "Building.", (T + 1) * 1000),
                Message(2, "tool", "developer__shell command: make", (T + 1) * 1000),
                Message(3, "tool", "ok", (T + 2) * 1000),
                Message(4, "assistant", "Done.", (T + 60) * 1000),
            ],
        )
    }


def test_hidden_messages_failed_calls_old_results_and_milliseconds(tmp_path: Path) -> None:
    failed = {"status": "error", "error": "no such tool"}
    old = {"status": "success", "value": [{"type": "text", "text": "older shape"}]}
    picture = {"type": "image", "data": "QUJD" * 300, "mimeType": "image/png"}
    store(
        tmp_path,
        [session("s1", "New session 4")],
        [
            message(9, "s1", "user", T * 1000, said("<info-msg>now</info-msg>\nlook at this"), picture),
            message(2, "s1", "assistant", T + 1, {"type": "toolRequest", "id": "t", "toolCall": failed}),
            message(3, "s1", "user", T + 2, {"type": "toolResponse", "id": "t", "toolResult": old}),
            message(4, "s1", "user", T + 3, said("for the model alone"), metadata={"userVisible": False}),
            message(5, "s1", "assistant", T + 4, said("from before"), metadata={"agentVisible": False}),
            message(6, "s1", "assistant", T + 5, {"type": "telepathy", "thought": "later version"}),
        ],
    )
    (source,) = sources("goose", tmp_path)
    ((head, messages),) = read(source).values()
    assert (head.title, head.message_count, head.updated_at) == ("look at this", 3, (T + 30) * 1000)
    assert [(one.role, one.text) for one in messages] == [
        ("tool", "no such tool"),
        ("tool", "older shape"),
        ("assistant", "from before"),
        ("user", "<info-msg>now</info-msg>\nlook at this"),
        ("user", "[image image/png 900]"),
    ]
    assert unknown(source) == 1


def test_subagents_hidden_sessions_and_keys(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        [session("a", "A"), session("b", "B", "sub_agent", "a"), session("c", "C", "hidden"), session("d", "D")],
        [message(number, of, "user", T, said(f"in {of}")) for number, of in enumerate("abc", 1)],
    )
    (source,) = sources("goose", tmp_path)
    assert {identity: head.parent_id for identity, (head, _) in read(source).items()} == {"a": None, "b": "a"}
    before = keys(source)
    database(path, "", ("messages", [message(20, "d", "user", T, said("first words"))]))
    after = keys(source)
    assert {one for one in after if after[one] != before[one]} == {"d"}


def test_another_root_is_named_in_the_command(tmp_path: Path) -> None:
    path = tmp_path / "goose root/data/sessions/sessions.db"
    rows = ("messages", [message(1, "s 1", "user", T, said("hi"))])
    database(path, SCHEMA, ("sessions", [session("s 1")]), rows)
    (source,) = sources("goose", tmp_path, {"GOOSE_PATH_ROOT": str(tmp_path / "goose root")})
    ((head, _),) = read(source).values()
    assert head.resume == f"GOOSE_PATH_ROOT='{tmp_path}/goose root' goose session --resume --session-id 's 1'"


def test_a_file_of_the_time_before_the_database(tmp_path: Path) -> None:
    path = tmp_path / ".local/share/goose/sessions/20250801_120000.jsonl"
    path.parent.mkdir(parents=True)
    lines: List[Any] = [
        {"working_dir": "/w/old", "description": "Old talk", "message_count": 2},
        {"role": "user", "created": T, "content": [said("remember me")]},
        "torn {",
        {"role": "assistant", "created": T + 1, "content": [said("I do")]},
    ]
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    (source,) = sources("goose", tmp_path)
    assert read(source) == {
        "20250801_120000": (
            Session(
                "20250801_120000",
                "Old talk",
                cwd="/w/old",
                created_at=T * 1000,
                updated_at=(T + 1) * 1000,
                message_count=2,
                resume="goose session --resume --session-id 20250801_120000",
            ),
            [Message(0, "user", "remember me", T * 1000), Message(1, "assistant", "I do", (T + 1) * 1000)],
        )
    }


def test_a_broken_database_and_a_broken_row(tmp_path: Path) -> None:
    path = store(tmp_path, [session("a", "A")], [message(1, "a", "user", T, said("kept"))])
    database(path, f"INSERT INTO messages VALUES (2, 'm', 'a', 'user', '[{{torn', {T}, NULL, NULL, '{{')")
    (source,) = sources("goose", tmp_path)
    ((head, messages),) = read(source).values()
    assert [one.text for one in messages] == ["kept"] and unknown(source) == 1
    database(path, "ALTER TABLE messages RENAME TO talk")
    with pytest.raises(Unreadable, match="no table messages"):
        read(source)
