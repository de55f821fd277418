"""Antigravity CLI: step logs and exported conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import pytest

from relay.transcripts.types import Message, Session, Unreadable
from tests.support.transcript_sources import document, lines, read, sources, text, unknown

ID = "11111111-2222-4333-8444-555555555555"
T = 1_782_508_576_000
LOGS = f".gemini/antigravity-cli/brain/{ID}/.system_generated/logs"


def step(second: int, kind: str, content: Any = None, source: str = "MODEL", **more: Any) -> Dict[str, Any]:
    record = {"step_index": second, "source": source, "type": kind, "created_at": f"2026-06-26T21:16:{16 + second:02}Z"}
    return {**record, **({} if content is None else {"content": content}), **more}


def test_an_ordinary_conversation(tmp_path: Path) -> None:
    lines(
        tmp_path / LOGS / "transcript.jsonl",
        step(
            0,
            "USER_INPUT",
            "<USER_REQUEST>\nList the files.\n</USER_REQUEST>\n<USER_SETTINGS_CHANGE>\nmodel\n</USER_SETTINGS_CHANGE>",
            "USER_EXPLICIT",
        ),
        step(1, "CONVERSATION_HISTORY", source="SYSTEM"),
        step(
            2,
            "PLANNER_RESPONSE",
            thinking="secret",
            tool_calls=[{"name": "run_command", "args": {"Cwd": '"/w/app"', "CommandLine": '"ls"', "Wait": "5"}}],
        ),
        step(3, "RUN_COMMAND", "a.txt\nb.txt\n"),
        step(4, "CHECKPOINT", "# Resuming", "SYSTEM"),
        step(5, "PLANNER_RESPONSE", "There are two.", truncated_fields=["content"]),
        step(6, "ERROR_MESSAGE", "Quota exceeded", "SYSTEM"),
    )
    (source,) = sources("antigravity", tmp_path)
    assert read(source) == {
        ID: (
            Session(ID, "List the files.", cwd="/w/app", created_at=T, updated_at=T + 6000, message_count=3),
            [
                Message(0, "user", "List the files.", T),
                Message(1, "tool", "run_command\nCwd: /w/app\nCommandLine: ls\nWait: 5", T + 2000),
                Message(2, "tool", "a.txt\nb.txt\n", T + 3000),
                Message(3, "assistant", "There are two.", T + 5000),
                Message(4, "system", "Quota exceeded", T + 6000),
            ],
        )
    }
    assert unknown(source) == 0


def test_the_full_log_is_preferred(tmp_path: Path) -> None:
    lines(tmp_path / LOGS / "transcript.jsonl", step(0, "USER_INPUT", "list the f", truncated_fields=["content"]))
    lines(tmp_path / LOGS / "transcript_full.jsonl", step(0, "USER_INPUT", "list the files"))
    short, full = sources("antigravity", tmp_path)
    assert read(short) == {}
    ((session, _),) = read(full).values()
    assert (session.session_id, session.title) == (ID, "list the files")


def test_an_exported_conversation(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "shell", "arguments": '{"command":"echo hi"}'}}
    document(
        tmp_path / ".gemini/antigravity/conversations/one.json",
        {
            "app": "Antigravity",
            "conversation": {
                "id": "conv_1",
                "title": "Greeting",
                "messages": [
                    {"role": "user", "content": "Say hi", "created_at": "2026-06-26T21:16:16Z"},
                    {"role": "assistant", "content": "Sure.", "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "c", "content": "hi\n"},
                    {"role": "oracle", "content": "?"},
                ],
            },
        },
    )
    (source,) = sources("antigravity", tmp_path)
    assert read(source) == {
        "conv_1": (
            Session("conv_1", "Greeting", created_at=T, updated_at=T, message_count=2),
            [
                Message(0, "user", "Say hi", T),
                Message(1, "assistant", "Sure."),
                Message(2, "tool", "shell command: echo hi"),
                Message(3, "tool", "hi\n"),
            ],
        )
    }
    assert unknown(source) == 1


def test_what_is_sealed_or_no_conversation_is_skipped(tmp_path: Path) -> None:
    for name in (
        "antigravity/conversations/a.pb",
        "antigravity/brain/x/task.md",
        "antigravity/browser_recordings/transcript.jsonl",
        "antigravity-cli/scratch/transcript.jsonl",
        "tmp/app/transcript.jsonl",
    ):
        text(tmp_path / ".gemini" / name, "x")
    assert sources("antigravity", tmp_path) == []


def test_a_broken_log_gives_what_it_can(tmp_path: Path) -> None:
    path = lines(
        tmp_path / LOGS / "transcript.jsonl",
        "{torn",
        {"type": 7},
        step(0, "USER_INPUT", "hello"),
        step(1, "HOLOGRAM", "shown", "ALIEN"),
        step(2, "PLANNER_RESPONSE", 7, tool_calls=[7, {"name": "x", "args": {"y": "[torn"}}], created_at="?"),
    )
    with path.open("a") as file:
        file.write('{"type": "USER_INPUT", "content": "to')
    (source,) = sources("antigravity", tmp_path)
    ((_, messages),) = read(source).values()
    assert [one.text for one in messages] == ["hello", "shown", "x y: [torn"]
    assert unknown(source) == 2


def test_a_document_without_a_conversation_is_unreadable(tmp_path: Path) -> None:
    document(tmp_path / ".gemini/antigravity/exports/x.json", {"settings": {}})
    (source,) = sources("antigravity", tmp_path)
    with pytest.raises(Unreadable, match="holds no conversation"):
        read(source)


def test_a_conversation_without_a_uuid_is_called_after_its_folder(tmp_path: Path) -> None:
    for name in ("garden", "kitchen"):
        path = tmp_path / f".gemini/antigravity-cli/brain/{name}/.system_generated/logs/transcript.jsonl"
        lines(path, step(0, "USER_INPUT", f"about the {name}", "USER_EXPLICIT"))
    lines(tmp_path / ".gemini/antigravity/conversations/cellar.jsonl", step(0, "USER_INPUT", "down", "USER_EXPLICIT"))
    found = [(key, head.title) for one in sources("antigravity", tmp_path) for key, (head, _) in read(one).items()]
    assert sorted(found) == [("cellar", "down"), ("garden", "about the garden"), ("kitchen", "about the kitchen")]
