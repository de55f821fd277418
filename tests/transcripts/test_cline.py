"""Tasks of Cline, Roo Code and Kilo Code in an editor's storage."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, Dict

import pytest

from relay.transcripts.types import Message, Session, Unreadable
from tests.support.transcript_sources import document, read, sources, text, unknown

T = 1_700_200_000_000
CLINE = ".config/Code/User/globalStorage/saoudrizwan.claude-dev"
ROO = ".vscode-server/data/User/globalStorage/rooveterinaryinc.roo-cline"
TASK = str(T)


def say(kind: str, words: Any, after: int, **more: Any) -> Dict[str, Any]:
    shown = words if isinstance(words, str) else json.dumps(words)
    return {"ts": T + after, "type": "say", "say": kind, "text": shown, **more}


def ask(kind: str, words: Any, after: int, **more: Any) -> Dict[str, Any]:
    shown = words if isinstance(words, str) else json.dumps(words)
    return {"ts": T + after, "type": "ask", "ask": kind, "text": shown, **more}


def block(words: str) -> Dict[str, Any]:
    return {"type": "text", "text": words}


def test_an_ordinary_task(tmp_path: Path) -> None:
    tool = {"tool": "readFile", "path": "db.py", "content": "import sqlite3"}
    document(
        tmp_path / CLINE / "tasks" / TASK / "ui_messages.json",
        [
            say("text", "Refactor the database layer\nand test it", 0),
            say("api_req_started", {"request": "<task>…the whole prompt…</task>", "tokensIn": 9}, 1),
            say("reasoning", "secret thought", 2),
            say("text", "I read it fir", 2, partial=True),
            say("text", "I read it first.", 3),
            ask("tool", tool, 4),
            say("tool", tool, 5),
            ask("command", "pytest -q", 6),
            say("command_output", "3 passed", 7),
            ask("followup", {"question": "Which database?", "options": ["a", "b"]}, 8),
            say(
                "user_feedback", "sqlite", 9, images=["data:image/png;base64," + base64.b64encode(b"x" * 300).decode()]
            ),
            say("checkpoint_created", "", 10),
            say("error", "Out of tokens", 11),
            say("completion_result", "Done.HAS_CHANGES", 12),
            ask("completion_result", "", 13),
            ask("resume_completed_task", "", 14),
        ],
    )
    document(
        tmp_path / CLINE / "state/taskHistory.json",
        [
            {"id": "1"},
            {
                "id": TASK,
                "ts": T,
                "task": "Refactor the database layer\nand test it",
                "cwdOnTaskInitialization": "/w/app",
            },
        ],
    )
    (source,) = sources("cline", tmp_path)
    assert read(source) == {
        TASK: (
            Session(
                TASK,
                "Refactor the database layer",
                cwd="/w/app",
                created_at=T,
                updated_at=T + 14,
                message_count=5,
            ),
            [
                Message(0, "user", "Refactor the database layer\nand test it", T),
                Message(1, "assistant", "I read it first.", T + 3),
                Message(2, "tool", "tool: readFile\npath: db.py\ncontent: import sqlite3", T + 4),
                Message(3, "tool", "pytest -q", T + 6),
                Message(4, "tool", "3 passed", T + 7),
                Message(5, "assistant", "Which database?", T + 8),
                Message(6, "user", "sqlite\n[image image/png 300]", T + 9),
                Message(7, "system", "Out of tokens", T + 11),
                Message(8, "assistant", "Done.", T + 12),
            ],
        )
    }
    assert unknown(source) == 0


def test_a_task_of_which_only_the_model_s_history_is_left(tmp_path: Path) -> None:
    folder = tmp_path / CLINE / "tasks" / TASK
    details = "<environment_details>\n# Current Working Directory (/w/app) Files\na.py\n</environment_details>"
    document(
        folder / "api_conversation_history.json",
        [
            {"role": "user", "content": [block("<task>\nfix it\n</task>"), block(details)], "ts": T},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "secret"},
                    block("I look."),
                    {"type": "tool_use", "id": "t", "name": "read_file", "input": {"path": "a.py"}},
                ],
                "ts": T + 1,
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x = 1"}, block(details)],
            },
            {"role": "assistant", "content": "Running."},
            {"role": "user", "content": [block("[execute_command for 'ls'] Result:\na.py"), block(details)]},
            {"role": "user", "content": "what happened so far", "isSummary": True},
            {"role": "user", "content": "<feedback>\nfaster\n</feedback>"},
        ],
    )
    (source,) = sources("cline", tmp_path)
    ((session, messages),) = read(source).values()
    assert (session.title, session.cwd, session.message_count) == ("fix it", "/w/app", 4)
    assert [(one.role, one.text) for one in messages] == [
        ("user", "fix it"),
        ("assistant", "I look."),
        ("tool", "read_file path: a.py"),
        ("tool", "x = 1"),
        ("assistant", "Running."),
        ("tool", "[execute_command for 'ls'] Result:\na.py"),
        ("user", "faster"),
    ]
    document(folder / "claude_messages.json", [say("text", "fix it", 0)])
    assert [len(read(one)) for one in sources("cline", tmp_path)] == [0, 1]


def test_a_subtask_of_roo(tmp_path: Path) -> None:
    folder = tmp_path / ROO / "tasks/child"
    document(folder / "ui_messages.json", [say("text", "Write the tests", 0), say("condense_context", "", 1)])
    document(folder / "history_item.json", {"id": "child", "parentTaskId": "parent", "workspace": "/w/app"})
    document(
        tmp_path / ROO / "tasks/_index.json",
        {"entries": [{"id": "child", "task": "\nTests, please", "workspace": "/old"}]},
    )
    (source,) = sources("cline", tmp_path)
    ((session, _),) = read(source).values()
    assert session == Session(
        "child", "Tests, please", cwd="/w/app", created_at=T, updated_at=T + 1, message_count=1, parent_id="parent"
    )
    assert source.store.files is not None and list(source.store.files(source)) == [str(folder / "history_item.json")]
    assert source.store.claim("tasks/child/history_item.json") == "tasks/child/ui_messages.json"


def test_only_conversations_are_read(tmp_path: Path) -> None:
    for name in ("task_metadata.json", "context_history.json", "checkpoints/ui_messages.json", "../../settings/x.json"):
        document(tmp_path / CLINE / "tasks" / TASK / name, [say("text", "no", 0)])
    assert sources("cline", tmp_path) == []


@pytest.mark.parametrize(
    "place",
    [
        ".config/VSCodium/User/globalStorage/kilocode.kilo-code",
        ".config/Code - Insiders/User/globalStorage/rooveterinaryinc.roo-cline",
        ".cursor-server/data/User/globalStorage/saoudrizwan.claude-dev",
        "Library/Application Support/Cursor/User/globalStorage/saoudrizwan.claude-dev",
        ".cline/data",
    ],
)
def test_every_editor_is_looked_at(tmp_path: Path, place: str) -> None:
    document(tmp_path / place / "tasks/1/ui_messages.json", [say("text", "hello", 0)])
    (source,) = sources("cline", tmp_path, platform="darwin" if place.startswith("Library") else "linux")
    assert list(read(source)) == ["1"]


def test_a_broken_task(tmp_path: Path) -> None:
    folder = tmp_path / CLINE / "tasks/1"
    document(
        folder / "ui_messages.json",
        [
            7,
            {"ts": "?", "type": "say", "say": "text", "text": "hello"},
            say("hologram", "?", 1),
            {"type": "ask"},
            say("tool", "{", 2),
        ],
    )
    (source,) = sources("cline", tmp_path)
    ((_, messages),) = read(source).values()
    assert [one.text for one in messages] == ["hello", "{"]
    assert unknown(source) == 2
    text(folder / "ui_messages.json", '[{"ts": 1, "type": "say", "say": "te')
    with pytest.raises(Unreadable, match="ends early"):
        read(source)
    text(folder / "ui_messages.json", "[]")
    assert read(source) == {}


def test_text_that_no_encoding_spells_is_read(tmp_path: Path) -> None:
    """Half of a pair of escapes, in a message, in the JSON within one, and in the editor's list of tasks."""
    document(
        tmp_path / CLINE / "tasks" / TASK / "ui_messages.json",
        [say("task", "broken \ud83d sign", 0), ask("followup", {"question": "Which \ud83d sign?"}, 1)],
    )
    document(tmp_path / CLINE / "state/taskHistory.json", [{"id": TASK, "task": "the \udc00 task"}])
    (source,) = sources("cline", tmp_path)
    ((session, messages),) = read(source).values()
    assert session.title == "the ? task"
    assert [one.text for one in messages] == ["broken ? sign", "Which ? sign?"]
