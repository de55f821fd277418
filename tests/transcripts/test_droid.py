"""Droid: its session store, its stream-json output, and titles that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from relay.transcripts.types import Message, Session
from tests.support.transcript_sources import lines, read, sources, text, unknown

T = 1_769_940_000_000  # 2026-02-01T10:00:00Z
SID = "aa110000-1111-4222-8333-000000000001"
FILE = f".factory/sessions/-w-app/{SID}.jsonl"


def message(role: str, content: Any, second: int) -> Dict[str, Any]:
    stamp = f"2026-02-01T10:00:{second:02}.000Z"
    return {"type": "message", "id": f"m{second}", "timestamp": stamp, "message": {"role": role, "content": content}}


def start(title: str) -> Dict[str, Any]:
    return {"type": "session_start", "id": SID, "title": title, "owner": "me", "cwd": "/w/app"}


def one(home: Path, *records: Any) -> Tuple[Session, List[Message]]:
    lines(home / FILE, *records)
    (source,) = sources("droid", home)
    ((session, messages),) = read(source).values()
    return session, messages


def test_an_ordinary_session(tmp_path: Path) -> None:
    text(tmp_path / f".factory/sessions/-w-app/{SID}.settings.json", "{}")
    assert one(
        tmp_path,
        start("Fix build"),
        message("user", [{"type": "text", "text": "<system-reminder>be safe</system-reminder>"},
                         {"type": "text", "text": "fix build"}], 1),
        message("assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I run it."},
                              {"type": "tool_use", "id": "t", "name": "Execute", "input": {"command": "make"}}], 2),
        message("user", [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}], 3),
        {"type": "todo_state", "todos": []},
    ) == (
        Session(
            SID,
            "Fix build",
            cwd="/w/app",
            created_at=T + 1000,
            updated_at=T + 3000,
            message_count=2,
            resume=f"droid --resume {SID}",
        ),
        [
            Message(0, "user", "fix build", T + 1000),
            Message(1, "assistant", "I run it.", T + 2000),
            Message(2, "tool", "Execute command: make", T + 2000),
            Message(3, "tool", "ok", T + 3000),
        ],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ("Fix build", "Fix build"),
        ("New Session", "typed words"),
        ("", "typed words"),
        ("<system-reminder>be safe</system-reminder> raw first prompt", "raw first prompt"),
    ],
)
def test_the_title(tmp_path: Path, given: str, title: str) -> None:
    assert one(tmp_path, start(given), message("user", "typed words", 1))[0].title == title


def test_stream_json_output(tmp_path: Path) -> None:
    session, messages = one(
        tmp_path,
        {"type": "system", "session_id": SID, "cwd": "/w/out", "timestamp": T},
        {"type": "message", "role": "user", "text": "list", "timestamp": T + 1},
        {"type": "tool_call", "toolName": "Shell", "parameters": {"command": "ls"}, "timestamp": T + 2},
        {"type": "tool_result", "value": {"stdout": "a.py", "exitCode": 0}, "timestamp": T + 3},
        {"type": "message", "role": "assistant", "text": "One file.", "timestamp": T + 4},
        {"type": "completion", "finalText": "One file.", "timestamp": T + 5},
    )
    assert (session.cwd, session.message_count, session.updated_at) == ("/w/out", 2, T + 5)
    assert [message.text for message in messages] == [
        "list",
        "Shell command: ls",
        "stdout: a.py\nexitCode: 0",
        "One file.",
    ]


def test_a_broken_file_gives_what_can_be_read(tmp_path: Path) -> None:
    path = lines(
        tmp_path / f".factory/projects/{SID}.jsonl",
        "not json",
        {"type": "session_start", "id": 7, "title": None, "cwd": []},
        {"type": "message", "message": {"role": "user", "content": [None, 3, {"type": "text", "text": "here"}]}},
        {"type": "message", "message": "?"},
        {"type": "unheard_of"},
    )
    (source,) = sources("droid", tmp_path)
    ((session, messages),) = read(source).values()
    assert (session.session_id, session.cwd, [message.text for message in messages]) == (SID, None, ["here"])
    assert session.updated_at == int(path.stat().st_mtime * 1000)
    assert unknown(source) == 1
