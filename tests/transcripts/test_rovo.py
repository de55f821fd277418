"""Rovo Dev: plain messages, and the history as the model got it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Dict

import pytest

from relay.transcripts.types import Message, Session, Unreadable
from tests.support.transcript_sources import document, read, sources, text, unknown

T = 1_770_000_000_000
NAME = "0a1b"


def folder(home: Path) -> Path:
    return home / ".rovodev/sessions" / NAME


def turn(kind: str, *parts: Dict[str, Any], **more: Any) -> Dict[str, Any]:
    return {"kind": kind, "parts": parts, **more}


def test_an_ordinary_session(tmp_path: Path) -> None:
    picture = {"kind": "binary", "media_type": "image/png", "data": base64.b64encode(b"x" * 300).decode()}
    asked = {"part_kind": "user-prompt", "content": ["fix it", picture], "timestamp": "2026-02-02T02:40:01Z"}
    document(
        folder(tmp_path) / "session_context.json",
        {
            "messages": [{"role": "user", "content": "fix it"}],
            "message_history": [
                turn("request", {"part_kind": "system-prompt", "content": "You are Rovo"}, asked),
                turn(
                    "response",
                    {"part_kind": "thinking", "content": "secret"},
                    {"part_kind": "text", "content": "I look."},
                    {"part_kind": "tool-call", "tool_name": "grep", "args": '{"pattern": "x"}', "tool_call_id": "t"},
                    timestamp="2026-02-02T02:40:02Z",
                ),
                turn(
                    "request",
                    {"part_kind": "tool-return", "tool_name": "grep", "content": "a.py:1", "tool_call_id": "t"},
                ),
                turn("request", {"part_kind": "retry-prompt", "content": "invalid arguments", "tool_name": "grep"}),
                turn("response", {"part_kind": "text", "content": "Fixed."}, timestamp="2026-02-02T02:40:09Z"),
            ],
        },
    )
    document(
        folder(tmp_path) / "metadata.json",
        {"title": "Fix it", "workspace_path": "/w/app", "created_at": T / 1000, "updated_at": "2026-02-02T02:41:00Z"},
    )
    (source,) = sources("rovo", tmp_path)
    assert read(source) == {
        NAME: (
            Session(
                NAME,
                "Fix it",
                cwd="/w/app",
                created_at=T,
                updated_at=T + 60_000,
                message_count=3,
                resume=f"acli rovodev run --restore {NAME}",
            ),
            [
                Message(0, "user", "fix it\n[image image/png 300]", T + 1000),
                Message(1, "assistant", "I look.", T + 2000),
                Message(2, "tool", "grep pattern: x", T + 2000),
                Message(3, "tool", "a.py:1"),
                Message(4, "tool", "invalid arguments"),
                Message(5, "assistant", "Fixed.", T + 9000),
            ],
        )
    }
    assert unknown(source) == 0


def test_plain_messages(tmp_path: Path) -> None:
    document(
        folder(tmp_path) / "session_context.json",
        {
            "messages": [
                {"role": "system", "content": "You are Rovo"},
                {"role": "user", "content": "<system-reminder>x</system-reminder>hello", "timestamp": T},
                {"role": "assistant", "content": [{"type": "text", "text": "hi"}], "timestamp": T + 5},
                {"role": "tool", "content": "a.py"},
            ],
            "message_history": [],
        },
        at=T / 1000,
    )
    document(folder(tmp_path) / "metadata.json", {"name": "", "summary": "Greeting", "cwd": "/w/app"})
    (source,) = sources("rovo", tmp_path)
    ((session, messages),) = read(source).values()
    assert (session.title, session.cwd, session.created_at, session.updated_at) == ("Greeting", "/w/app", T, T + 5)
    assert [(one.role, one.text) for one in messages] == [("user", "hello"), ("assistant", "hi"), ("tool", "a.py")]


def test_metadata_belongs_to_the_context(tmp_path: Path) -> None:
    document(folder(tmp_path) / "session_context.json", {"messages": [{"role": "user", "content": "hello"}]})
    (source,) = sources("rovo", tmp_path)
    assert source.store.claim(f"{NAME}/metadata.json") == f"{NAME}/session_context.json"
    assert source.store.claim(f"{NAME}/other.json") is None
    assert source.store.files is not None
    assert list(source.store.files(source)) == [str(folder(tmp_path) / "metadata.json")]


def test_a_broken_session(tmp_path: Path) -> None:
    path = folder(tmp_path) / "session_context.json"
    document(
        path,
        {
            "message_history": [
                turn("request", {"part_kind": "user-prompt", "content": "hello"}, {"part_kind": "hologram"}),
                turn("oracle", {"part_kind": "text", "content": None}),
                {"kind": "response", "parts": 7},
                {"role": "oracle"},
            ]
        },
    )
    text(folder(tmp_path) / "metadata.json", "{torn")
    (source,) = sources("rovo", tmp_path)
    ((session, messages),) = read(source).values()
    assert (session.title, [one.text for one in messages]) == ("hello", ["hello"])
    assert unknown(source) == 3
    text(path, '{"message_history": [{"kind"')
    with pytest.raises(Unreadable, match="ends early"):
        read(source)
    document(path, {"message_history": []})
    assert read(source) == {}
