"""GitHub Copilot CLI: events, what was typed, calls that are announced twice, workspace.yaml, and old forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from relay.transcripts.types import Message, Session, Unreadable
from tests.support.transcript_sources import document, lines, read, sources, text, unknown

T = 1_772_352_000_000  # 2026-03-01T08:00:00Z
SID = "d3000000-1111-4222-8333-000000000001"
FOLDER = f".copilot/session-state/{SID}"


def event(kind: str, second: int, **data: Any) -> Dict[str, Any]:
    return {"type": kind, "data": data, "id": f"e{second}", "timestamp": f"2026-03-01T08:00:{second:02}.000Z"}


START = event(
    "session.start", 0, sessionId=SID, startTime="2026-03-01T08:00:00.000Z", context={"cwd": "/w/app", "branch": "main"}
)


def one(home: Path, *records: Any, file: str = f"{FOLDER}/events.jsonl") -> Tuple[Session, List[Message]]:
    path = lines(home / file, *records)
    (source,) = [found for found in sources("copilot", home) if found.path == str(path)]
    ((session, messages),) = read(source).values()
    return session, messages


def test_an_ordinary_session(tmp_path: Path) -> None:
    request = {"toolCallId": "c1", "name": "bash", "arguments": '{"command":"ls"}'}
    assert one(
        tmp_path,
        START,
        event("system.message", 1, content="You are …"),
        event("user.message", 2, content="explain main.go", transformedContent="<current_datetime/>explain main.go"),
        event("assistant.turn_start", 3),
        event("assistant.message", 3, content="", toolRequests=[request], reasoningText="hm"),
        event("tool.execution_start", 4, toolCallId="c1", toolName="bash", arguments={"command": "ls"}),
        event(
            "tool.execution_complete",
            5,
            toolCallId="c1",
            success=True,
            result={"content": "main.go", "detailedContent": "x"},
        ),
        event("tool.execution_complete", 6, toolCallId="c2", success=False, error={"message": "no such tool"}),
        event("assistant.message", 7, content="It prints.", toolRequests=[]),
        event("session.resume", 8, context={"cwd": "/w/later", "branch": "late"}),
        event("session.shutdown", 9, modelMetrics={}),
    ) == (
        Session(
            SID,
            "explain main.go",
            cwd="/w/app",
            branch="main",
            created_at=T,
            updated_at=T + 9000,
            message_count=3,
            resume=f"copilot --resume={SID}",
        ),
        [
            Message(0, "user", "explain main.go", T + 2000),
            Message(1, "tool", "bash command: ls", T + 3000),
            Message(2, "tool", "main.go", T + 5000),
            Message(3, "tool", "no such tool", T + 6000),
            Message(4, "assistant", "It prints.", T + 7000),
        ],
    )


def test_skills_speak_in_the_users_name(tmp_path: Path) -> None:
    session, messages = one(
        tmp_path,
        event("user.message", 1, content="use it", source="skill-pdf"),
        event("user.message", 2, content="<skill-context name='pdf'>long</skill-context>"),
        event("user.message", 3, content="make a PDF"),
        event("session.info", 4, message="Folder /w/trusted has been added to trusted folders."),
    )
    assert (session.title, session.cwd, len(messages)) == ("make a PDF", "/w/trusted", 1)


def test_the_workspace_names_the_session(tmp_path: Path) -> None:
    text(
        tmp_path / FOLDER / "workspace.yaml", f"id: {SID}\nname: 'Main, explained'\ncwd: /w/yaml\nbranch: dev\n  x: y\n"
    )
    text(tmp_path / FOLDER / "checkpoints/1.json", "{}")
    session, _ = one(tmp_path, event("user.message", 1, content="hi"))
    assert (session.title, session.cwd, session.branch) == ("Main, explained", "/w/yaml", "dev")
    assert [found.store.name for found in sources("copilot", tmp_path)] == ["folders"]


def test_the_folder_ranks_before_the_file(tmp_path: Path) -> None:
    one(tmp_path, START, event("user.message", 1, content="hi"))
    flat = lines(tmp_path / f"{FOLDER}.jsonl", START, event("user.message", 1, content="hi"))
    ranks = {found.path: found.store.rank for found in sources("copilot", tmp_path)}
    assert ranks[str(tmp_path / FOLDER / "events.jsonl")] > ranks[str(flat)]


def test_flat_events_of_old_files(tmp_path: Path) -> None:
    session, messages = one(
        tmp_path,
        {"session_id": SID, "cwd": "/w/old", "type": "userpromptsubmitted", "prompt": "hello", "timestamp": T},
        {"session_id": SID, "type": "assistantresponse", "result": "Hi.", "timestamp": T + 1},
        file=f"{FOLDER}.jsonl",
    )
    assert (session.session_id, session.cwd, session.created_at) == (SID, "/w/old", T)
    assert messages == [Message(0, "user", "hello", T), Message(1, "assistant", "Hi.", T + 1)]


def test_old_documents(tmp_path: Path) -> None:
    document(
        tmp_path / f".copilot/history-session-state/session_{SID}_1760187292.json",
        {
            "startTime": "2025-10-11T12:54:52.206Z",
            "chatMessages": [{"role": "user", "content": "hello"}],
            "timeline": [
                {"type": "info", "text": "Connected", "timestamp": "2025-10-11T12:54:53Z"},
                {"type": "user", "text": "hello", "timestamp": "2025-10-11T12:54:54Z"},
                {"type": "copilot", "text": "Hi.", "timestamp": "2025-10-11T12:54:55Z"},
                {"type": "tool_call_completed", "callId": "c", "name": "view", "arguments": {"path": "a"},
                 "result": {"type": "success", "log": "text of a"}},
            ],
        },
    )  # fmt: skip
    document(
        tmp_path / ".copilot/session-state/older.json",
        {
            "workspacePath": "/w/doc",
            "history": [{"role": "human", "content": "hey"}, {"role": "assistant", "content": "Yes?"}],
        },
    )
    found = {id_: each for source in sources("copilot", tmp_path) for id_, each in read(source).items()}
    assert [message.text for message in found[SID][1]] == ["hello", "Hi.", "view path: a", "text of a"]
    assert found[SID][0].created_at == 1_760_187_292_206
    assert (found["older"][0].title, found["older"][0].cwd) == ("hey", "/w/doc")
    assert [message.text for message in found["older"][1]] == ["hey", "Yes?"]


def test_a_broken_file_gives_what_can_be_read(tmp_path: Path) -> None:
    lines(
        tmp_path / FOLDER / "events.jsonl",
        "{",
        {"type": "user.message", "data": {"content": {"odd": 1}}},
        {"data": {}},
        {"type": "brand.new", "data": {}},
        {"type": "assistant.message", "data": {"content": "Only this.", "toolRequests": "none"}},
        {"type": "tool.execution_complete", "data": {}},
    )
    (source,) = sources("copilot", tmp_path)
    ((session, messages),) = read(source).values()
    assert ([message.text for message in messages], unknown(source)) == (["Only this."], 2)
    assert session.title == "Copilot d3000000"


def test_a_document_that_is_none(tmp_path: Path) -> None:
    text(tmp_path / ".copilot/session-state/bad.json", "{")
    (source,) = sources("copilot", tmp_path)
    with pytest.raises(Unreadable):
        read(source)


def test_a_session_that_was_only_opened_is_none(tmp_path: Path) -> None:
    lines(tmp_path / FOLDER / "events.jsonl", START, event("session.shutdown", 1))
    (source,) = sources("copilot", tmp_path)
    assert read(source) == {}


def test_an_old_document_on_one_line_of_a_log(tmp_path: Path) -> None:
    document = {
        "timeline": [],
        "history": [{"role": "human", "content": "count them"}, {"role": "assistant", "content": "Three."}, 5],
        "workspacePath": "/w/app",
        "startTime": "2026-03-01T08:00:00Z",
    }
    session, messages = one(tmp_path, document, file=f".copilot/session-state/{SID}.jsonl")
    assert (session.title, session.cwd, session.created_at, session.message_count) == ("count them", "/w/app", T, 2)
    assert [(one.role, one.text) for one in messages] == [("user", "count them"), ("assistant", "Three.")]
