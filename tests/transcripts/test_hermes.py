"""Hermes: the same session in a database, in lines and in a document; chains, branches and subagents."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, List, Optional, Tuple

import pytest

from relay.transcripts.types import Message, Session, Unreadable
from tests.support.transcript_sources import database, keys, read, sources, unknown

SCHEMA = """
    PRAGMA journal_mode = WAL;
    CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, model_config TEXT, parent_session_id TEXT,
        started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, message_count INTEGER DEFAULT 0, title TEXT,
        last_activity_at REAL);
    CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL,
        content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, display_kind TEXT,
        active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0);
    CREATE INDEX idx_messages_session ON messages (session_id, timestamp);
"""
T = 1767607200


def session(
    identity: str,
    parent: Optional[str] = None,
    title: Optional[str] = None,
    at: float = T,
    ended: Optional[float] = None,
    reason: Optional[str] = None,
    config: Any = None,
) -> Tuple[object, ...]:
    return (identity, "cli", json.dumps(config or {}), parent, at, ended, reason, 0, title, at + 5.5)


def message(
    of: str, role: str, content: Any, at: float = T, calls: Any = None, kind: Any = None
) -> Tuple[object, ...]:
    return (None, of, role, content, None, calls and json.dumps(calls), None, at, kind, 1, 0)


def store(home: Path, sessions: List[Tuple[object, ...]], messages: List[Tuple[object, ...]]) -> Path:
    path = home / ".hermes/state.db"
    database(path, SCHEMA, ("sessions", sessions), ("messages", messages))
    return path


CALL = [{"id": "c1", "type": "function", "function": {"name": "shell", "arguments": '{"command": "pwd"}'}}]


def test_an_ordinary_session(tmp_path: Path) -> None:
    store(
        tmp_path,
        [session("20260105_100000_ab", title="Where am I", config={"cwd": "/w/app"})],
        [
            message("20260105_100000_ab", "system", "You are Hermes."),
            message("20260105_100000_ab", "user", "where are we?", T + 0.25),
            message("20260105_100000_ab", "assistant", "", T + 1, CALL),
            message("20260105_100000_ab", "tool", "/w/app", T + 2),
            message("20260105_100000_ab", "assistant", "In /w/app.", T + 3),
        ],
    )
    (source,) = sources("hermes", tmp_path)
    assert read(source) == {
        "20260105_100000_ab": (
            Session(
                "20260105_100000_ab",
                "Where am I",
                cwd="/w/app",
                created_at=T * 1000,
                updated_at=T * 1000 + 5500,
                message_count=3,
                resume="hermes --resume 20260105_100000_ab",
            ),
            [
                Message(0, "user", "where are we?", T * 1000 + 250),
                Message(1, "tool", "shell command: pwd", (T + 1) * 1000),
                Message(2, "tool", "/w/app", (T + 2) * 1000),
                Message(3, "assistant", "In /w/app.", (T + 3) * 1000),
            ],
        )
    }


def test_what_hermes_says_in_the_persons_name(tmp_path: Path) -> None:
    skill = (
        '[SYSTEM: The user has invoked the "review" skill, indicating they want you to follow its instructions.]\n\n'
        "# Review\nlong text of the skill\n\n"
        "The user has provided the following instruction alongside the skill invocation: look at the parser\n\n"
        "[Runtime note: skills live in /x]"
    )
    bare = '[SYSTEM: The user has invoked the "tidy" skill]\n\n# Tidy\nlong text'
    blocks = [
        {"type": "text", "text": "and this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
    ]
    store(
        tmp_path,
        [session("s1")],
        [
            message("s1", "user", "[CONTEXT COMPACTION - REFERENCE ONLY] Earlier turns were compacted"),
            message("s1", "user", skill),
            message("s1", "user", bare),
            message("s1", "user", json.dumps(blocks)),
            message("s1", "user", "\0json:" + json.dumps(blocks)),
            message("s1", "user", "never shown", kind="hidden"),
            message("s1", "user", "Review the conversation above and consider saving skills"),
            message("s1", "oracle", "of a later version"),
        ],
    )
    (source,) = sources("hermes", tmp_path)
    ((head, messages),) = read(source).values()
    assert (head.title, head.message_count) == ("look at the parser", 4)
    assert [(one.role, one.text) for one in messages] == [
        ("system", "[CONTEXT COMPACTION - REFERENCE ONLY] Earlier turns were compacted"),
        ("user", "look at the parser"),
        ("user", "/tidy"),
        ("user", "and this?\n[image image/png 3]"),
        ("user", "and this?\n[image image/png 3]"),
        ("system", "Review the conversation above and consider saving skills"),
    ]
    assert unknown(source) == 1


def test_a_chain_of_compressions_is_one_conversation(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        [
            session("s1", ended=T + 10, reason="compression"),
            session("s2", "s1", "Later name", T + 10, T + 20, "compression"),
            session("s3", "s2", at=T + 20),
            session("s4", "s3", at=T + 30),
            session("delegate", "s1", at=T + 5),
            session("branch", "s3", at=T + 25, config={"_branched_from": "s3"}),
            session("reset", "s3", at=T + 26, config={"_reset_from": "s3"}),
        ],
        [
            message("s1", "user", "the very first words"),
            message("s1", "assistant", "yes"),
            message("s2", "user", "then these"),
            message("s3", "user", "and now"),
            *(message(one, "user", f"in {one}") for one in ("delegate", "branch", "reset")),
        ],
    )
    (source,) = sources("hermes", tmp_path)
    found = {
        identity: (head.title, head.message_count, head.parent_id, head.lineage)
        for identity, (head, _) in read(source).items()
    }
    assert found == {
        "s1": ("the very first words", 2, "s3", None),
        "s2": ("Later name", 1, "s3", None),
        "s3": ("Later name", 4, None, None),
        "delegate": ("in delegate", 1, "s3", None),
        "branch": ("in branch", 1, None, "s3"),
        "reset": ("in reset", 1, None, None),
    }
    before = keys(source)
    # The one that goes on becomes the conversation as soon as something is said in it.
    database(path, f"UPDATE sessions SET end_reason = 'compression', ended_at = {T + 30} WHERE id = 's3'")
    database(path, "", ("messages", [message("s4", "user", "onwards")]))
    after = keys(source)
    assert {one for one in after if after[one] == before[one]} == {"reset"}
    found_now = {identity: (head.parent_id, head.lineage) for identity, (head, _) in read(source).items()}
    assert found_now == {
        **dict.fromkeys(("s1", "s2", "s3", "delegate"), ("s4", None)),
        "s4": (None, None),
        "branch": (None, "s4"),
        "reset": (None, None),
    }


def test_undone_messages_and_keys(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        [session("a"), session("b")],
        [message("a", "user", "kept"), message("a", "user", "undone"), message("b", "user", "other")],
    )
    (source,) = sources("hermes", tmp_path)
    before = keys(source)
    database(path, "UPDATE messages SET active = 0 WHERE content = 'undone'")
    after = keys(source)
    assert (after["a"] == before["a"], after["b"] == before["b"]) == (False, True)
    assert [one.text for one in read(source)["a"][1]] == ["kept"]


def write(home: Path, name: str, content: str) -> None:
    path = home / ".hermes/sessions" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A machine an hour ahead of UTC (in winter)."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_lines_and_documents_hold_local_times(tmp_path: Path, berlin: Any) -> None:
    lines = [
        {"role": "session_meta", "model": "m", "timestamp": "2026-01-05T11:00:00"},
        {"role": "user", "content": "in lines", "timestamp": "2026-01-05T11:00:01"},
        {"role": "assistant", "content": "answer", "tool_calls": CALL, "timestamp": "2026-01-05T11:00:02.500000"},
    ]
    write(tmp_path, "20260105_a.jsonl", "\n".join(map(json.dumps, lines)) + '\n{"role": "us')
    document = {
        "session_id": "20260105_b",
        "platform": "cli",
        "cwd": "/w/doc",
        "session_start": "2026-01-05T11:00:00",
        "last_updated": "2026-01-05T11:00:09",
        "tools": [{"name": "shell"}],
        "messages": [{"role": "user", "content": "in a document"}, {"role": "session_meta"}],
    }
    write(tmp_path, "session_20260105_b.json", json.dumps(document))
    write(tmp_path, "sessions.json", "{}")
    write(tmp_path, "request_dump_1.json", "{}")
    write(tmp_path, "request_dump_1.jsonl", json.dumps(lines[1]))
    found = {identity: entry for source in sources("hermes", tmp_path) for identity, entry in read(source).items()}
    assert found == {
        "20260105_a": (
            Session(
                "20260105_a",
                "in lines",
                created_at=T * 1000,
                updated_at=(T + 2) * 1000 + 500,
                message_count=2,
                resume="hermes --resume 20260105_a",
            ),
            [
                Message(0, "user", "in lines", (T + 1) * 1000),
                Message(1, "assistant", "answer", (T + 2) * 1000 + 500),
                Message(2, "tool", "shell command: pwd", (T + 2) * 1000 + 500),
            ],
        ),
        "20260105_b": (
            Session(
                "20260105_b",
                "in a document",
                cwd="/w/doc",
                created_at=T * 1000,
                updated_at=(T + 9) * 1000,
                message_count=1,
                resume="hermes --resume 20260105_b",
            ),
            [Message(0, "user", "in a document", None)],
        ),
    }


def test_the_richest_copy_answers(tmp_path: Path) -> None:
    store(tmp_path, [session("s")], [message("s", "user", "x")])
    write(tmp_path, "s.jsonl", "")
    write(tmp_path, "session_s.json", "{}")
    ranked = sorted(sources("hermes", tmp_path), key=lambda source: -source.store.rank)
    assert [os.path.basename(source.path) for source in ranked] == ["state.db", "s.jsonl", "session_s.json"]


def test_another_home_is_named_in_the_command(tmp_path: Path) -> None:
    home = tmp_path / "other hermes"
    database(home / "state.db", SCHEMA, ("sessions", [session("s")]), ("messages", [message("s", "user", "x")]))
    (source,) = sources("hermes", tmp_path, {"HERMES_HOME": str(home)})
    assert read(source)["s"][0].resume == f"HERMES_HOME='{home}' hermes --resume s"


def test_a_broken_document_and_a_broken_database(tmp_path: Path) -> None:
    write(tmp_path, "session_x.json", '{"session_id": "x", "messages": [{"role": "user", "con')
    (source,) = sources("hermes", tmp_path)
    with pytest.raises(Unreadable):
        read(source)
    path = store(tmp_path, [], [])
    database(path, "DROP TABLE messages")
    with pytest.raises(Unreadable, match="no table messages"):
        read(next(one for one in sources("hermes", tmp_path) if one.path == str(path)))


def test_parents_in_a_circle_end_somewhere(tmp_path: Path) -> None:
    rows = [
        session("a", "b", at=T, ended=T, reason="compression"),
        session("b", "a", at=T, ended=T, reason="compression"),
        session("c", "d"),
        session("d", "c"),
    ]
    store(tmp_path, rows, [message(one, "user", one) for one in "abcd"])
    (source,) = sources("hermes", tmp_path)
    assert sorted(read(source)) == ["a", "b", "c", "d"]
