"""Amp: the threads that are kept on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import pytest

from relay.transcripts.types import Message, Session, Unreadable
from tests.support.transcript_sources import document, read, sources, text, unknown

T = 1_770_000_000_000
ID = "T-1f0c0000-0000-4000-8000-000000000001"


def thread(home: Path, *messages: Any, **more: Any) -> Path:
    return document(
        home / ".local/share/amp/threads" / f"{ID}.json",
        {"v": 12, "id": ID, "created": T, "messages": messages, **more},
        at=T / 1000 + 99,
    )


def said(role: str, *blocks: Any, **more: Any) -> Dict[str, Any]:
    content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
    return {"role": role, "content": content, **more}


def test_an_ordinary_thread(tmp_path: Path) -> None:
    thread(
        tmp_path,
        said("user", "refactor", meta={"sentAt": T + 1000}),
        said(
            "assistant",
            {"type": "thinking", "thinking": "secret", "signature": "x"},
            "I look.",
            {"type": "tool_use", "id": "t", "name": "Bash", "input": {"cmd": "ls"}, "complete": True},
            usage={"model": "m", "timestamp": "2026-02-02T02:40:03.000Z"},
        ),
        said(
            "user",
            {
                "type": "tool_result",
                "toolUseID": "t",
                "run": {"status": "done", "result": {"output": "a.py", "exitCode": 0}},
            },
            {"type": "tool_result", "toolUseID": "u", "run": {"status": "error", "error": {"message": "no such file"}}},
            {"type": "tool_result", "tool_use_id": "v", "content": [{"type": "text", "text": "older"}]},
            {"type": "tool_result", "toolUseID": "w", "run": {"status": "done", "result": ["one", "two"]}},
        ),
        said("assistant", "Done."),
        title="Refactor the app",
        env={"initial": {"trees": [{"displayName": "app", "uri": "file:///w/my%20app"}, {"uri": "file:///w/x"}]}},
        meta={"traces": [{"endTime": "2026-02-02T02:41:00Z"}, {"startTime": "2026-02-02T02:40:00Z"}]},
    )
    (source,) = sources("amp", tmp_path)
    assert read(source) == {
        ID: (
            Session(
                ID,
                "Refactor the app",
                cwd="/w/my app",
                created_at=T,
                updated_at=T + 60_000,
                message_count=3,
                resume=f"amp threads continue {ID}",
            ),
            [
                Message(0, "user", "refactor", T + 1000),
                Message(1, "assistant", "I look.", T + 3000),
                Message(2, "tool", "Bash cmd: ls", T + 3000),
                Message(3, "tool", "a.py"),
                Message(4, "tool", "message: no such file"),
                Message(5, "tool", "older"),
                Message(6, "tool", "one\ntwo"),
                Message(7, "assistant", "Done."),
            ],
        )
    }
    assert unknown(source) == 0


def test_without_times_the_file_s_own_counts(tmp_path: Path) -> None:
    thread(tmp_path, said("user", "<system-reminder>x</system-reminder>"), said("user", "hello"))
    (source,) = sources("amp", tmp_path)
    ((session, _),) = read(source).values()
    assert (session.title, session.updated_at, session.cwd) == ("hello", T + 99_000, None)


def test_an_empty_thread_is_left_out(tmp_path: Path) -> None:
    thread(tmp_path, title="Untitled")
    document(tmp_path / ".local/share/amp/threads/other.json", {"messages": [said("user", "no thread")]})
    (source,) = sources("amp", tmp_path)
    assert read(source) == {}


def test_the_data_folder_may_lie_elsewhere(tmp_path: Path) -> None:
    document(tmp_path / "data/amp/threads/T-1.json", {"messages": [said("user", "hello")]})
    (source,) = sources("amp", tmp_path, {"XDG_DATA_HOME": str(tmp_path / "data")})
    ((session, _),) = read(source).values()
    assert session.resume == f"XDG_DATA_HOME={tmp_path}/data amp threads continue T-1"


def test_a_broken_thread(tmp_path: Path) -> None:
    path = thread(
        tmp_path,
        said("user", "hello"),
        said("oracle", "?"),
        {"role": "assistant", "content": 7},
        said("assistant", {"type": "hologram"}),
        env=[],
        title=7,
        meta={"traces": 7},
    )
    (source,) = sources("amp", tmp_path)
    ((_, messages),) = read(source).values()
    assert [one.text for one in messages] == ["hello"]
    assert unknown(source) == 2
    text(path, path.read_text()[:-20])
    with pytest.raises(Unreadable, match="ends early"):
        read(source)
