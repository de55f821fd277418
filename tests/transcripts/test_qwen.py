"""Qwen Code: a tree of records, lines that share one uuid, rewinds, branches, and its old documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest

from relay.transcripts.types import Message, Session
from tests.support.transcript_sources import document, lines, read, sources, unknown

T = 1_777_957_200_000  # 2026-05-05T05:00:00Z
SID = "c0ff0000-1111-4222-8333-000000000001"
FILE = f".qwen/projects/-w-app/chats/{SID}.jsonl"


def record(own: str, parent: Optional[str], kind: str, *parts: Any, **more: Any) -> Dict[str, Any]:
    made = {
        "uuid": own,
        "parentUuid": parent,
        "sessionId": SID,
        "timestamp": f"2026-05-05T05:00:{int(own[1:]):02}.000Z",
        "type": kind,
        "cwd": "/w/app",
        "gitBranch": "main",
        **more,
    }
    if parts:
        made["message"] = {"role": "model" if kind == "assistant" else "user", "parts": list(parts)}
    return made


def said(words: str, **more: Any) -> Dict[str, Any]:
    return {"text": words, **more}


def titled(own: str, parent: str, title: str, **more: Any) -> Dict[str, Any]:
    return record(own, parent, "system", subtype="custom_title", systemPayload={"customTitle": title, **more})


def one(home: Path, *records: Any) -> Tuple[Session, List[Message]]:
    lines(home / FILE, *records)
    (source,) = sources("qwen", home)
    ((session, messages),) = read(source).values()
    return session, messages


def test_an_ordinary_session(tmp_path: Path) -> None:
    answer = {"functionResponse": {"id": "f1", "name": "read_file", "response": {"output": "text of a"}}}
    session, messages = one(
        tmp_path,
        record("q1", None, "user", said("hello")),
        record("q2", "q1", "assistant", said("plan", thought=True), said("I read."),
               {"functionCall": {"id": "f1", "name": "read_file", "args": {"path": "a"}}}),
        record("q3", "q2", "tool_result", answer, toolCallResult={"callId": "f1", "resultDisplay": "text of a"}),
        titled("q4", "q3", "Made", titleSource="auto"),
        titled("q5", "q4", "Read a"),
        record("q6", "q5", "system", subtype="ui_telemetry", systemPayload={}),
        record("q7", "q6", "system", subtype="chat_compression",
               systemPayload={"compressedHistory": [{"role": "user", "parts": [said("old")]}]}),
    )  # fmt: skip
    assert session.lineage is not None
    session.lineage = None
    assert session == Session(
        SID,
        "Read a",
        cwd="/w/app",
        branch="main",
        created_at=T + 1000,
        updated_at=T + 7000,
        message_count=2,
        resume=f"qwen --resume {SID}",
    )
    assert messages == [
        Message(0, "user", "hello", T + 1000),
        Message(1, "assistant", "I read.", T + 2000),
        Message(2, "tool", "read_file path: a", T + 2000),
        Message(3, "tool", "text of a", T + 3000),
    ]


def test_lines_with_one_uuid_are_one_message(tmp_path: Path) -> None:
    session, messages = one(
        tmp_path,
        record("q1", None, "user", said("hello")),
        record("q2", "q1", "assistant", said("one")),
        record("q2", "q1", "assistant", said("two"), {"functionCall": {"name": "ls", "args": {}}}),
        record("q2", "q1", "assistant", said("two")),
        record("q3", "q2", "user", said("and?")),
    )
    assert [message.text for message in messages] == ["hello", "one\n\ntwo", "ls", "and?"]
    assert session.message_count == 3


def test_a_rewind_follows_the_parents(tmp_path: Path) -> None:
    session, messages = one(
        tmp_path,
        record("q1", None, "user", said("start")),
        record("q2", "q1", "assistant", said("dead end")),
        record("q3", "q1", "system", subtype="rewind", systemPayload={"truncatedCount": 1}),
        record("q4", "q3", "user", said("in between"), subtype="mid_turn_user_message"),
        record("q5", "q4", "assistant", said("alive")),
    )
    assert [message.text for message in messages] == ["start", "in between", "alive"]
    assert session.message_count == 3


def test_only_a_real_user_makes_titles_and_turns(tmp_path: Path) -> None:
    session, messages = one(
        tmp_path,
        record("q1", None, "user", said("goal runtime"), provenance="goal_runtime"),
        record("q2", "q1", "user", said("note"), subtype="notification", systemPayload={"displayText": "Finished."}),
        record("q3", "q2", "user", said("sub"), isSidechain=True, agentId="a1"),
        record("q4", "q2", "user", said("<hook>x</hook>typed"), provenance="real_user",
               systemPayload={"displayText": "typed", "hookContext": "x"}),
    )  # fmt: skip
    assert (session.title, session.message_count) == ("typed", 1)
    assert [(message.role, message.text) for message in messages] == [
        ("system", "goal runtime"),
        ("system", "Finished."),
        ("user", "sub"),
        ("user", "typed"),
    ]


def test_a_branch_shares_its_lineage_and_a_child_names_its_parent(tmp_path: Path) -> None:
    first = record("q1", None, "user", said("start"))
    lineage = one(tmp_path, first)[0].lineage
    copy = {**first, "sessionId": "other", "forkedFrom": {"sessionId": SID, "messageUuid": "q1"}}
    session, _ = one(
        tmp_path,
        copy,
        record("q2", "q1", "system", subtype="parent_session", systemPayload={"parentSessionId": "the-parent"}),
    )
    assert (session.lineage, session.parent_id) == (lineage, "the-parent")


@pytest.mark.parametrize(
    ("file", "read_"),
    [
        (f"projects/-w-app/chats/archive/{SID}.jsonl", True),
        ("projects/-w-app/chats/c0ff0000111142228333000000000001.jsonl", True),
        ("projects/-w-app/chats/notes.jsonl", False),
        (f"projects/-w-app/{SID}.jsonl", False),
    ],
)
def test_what_is_a_transcript(tmp_path: Path, file: str, read_: bool) -> None:
    lines(tmp_path / "q" / file, record("q1", None, "user", said("hello")))
    assert bool(sources("qwen", tmp_path, {"QWEN_HOME": str(tmp_path / "q")})) is read_


def test_the_documents_of_its_first_versions(tmp_path: Path) -> None:
    document(
        tmp_path / ".qwen/tmp/ab12/chats/session-2025-09-01T10-00-c0ff.json",
        {
            "sessionId": "old-one",
            "startTime": "2025-09-01T10:00:00.000Z",
            "messages": [
                {"id": "1", "type": "user", "content": "hi", "timestamp": "2025-09-01T10:00:01.000Z"},
                {"id": "2", "type": "gemini", "content": "Hello.", "timestamp": "2025-09-01T10:00:02.000Z"},
            ],
        },
    )
    (source,) = sources("qwen", tmp_path)
    ((session, messages),) = read(source).values()
    assert (session.session_id, session.title, session.resume) == ("old-one", "hi", None)
    assert [message.text for message in messages] == ["hi", "Hello."]


def test_a_broken_file_gives_what_can_be_read(tmp_path: Path) -> None:
    whole = '{"uuid":"q1","type":"user","message":{"parts":[{"text":"glued"}]}}'
    lines(
        tmp_path / FILE,
        whole + whole.replace("q1", "q2").replace("glued", "together"),
        "{torn",
        {"type": "user", "message": "no parts"},
        {"type": "assistant", "message": {"parts": {"text": "alone"}}},
        {"type": "assistant", "message": {"parts": [7, None, {"functionCall": "odd"}]}},
        {"type": "session_checkpoint"},
        {"type": "system", "subtype": "quantum_flux"},
    )
    (source,) = sources("qwen", tmp_path)
    ((session, messages),) = read(source).values()
    assert [message.text for message in messages] == ["glued", "together", "alone"]
    assert (session.title, session.message_count, unknown(source)) == ("glued", 3, 2)


def test_a_reply_whose_first_line_is_a_thought_counts_once(tmp_path: Path) -> None:
    call = {"functionCall": {"name": "ls", "args": {}}}
    session, messages = one(
        tmp_path,
        record("q1", None, "user", said("hello")),
        record("q2", "q1", "assistant", said("hm", thought=True)),
        record("q2", "q1", "assistant", said("Hi.")),
        record("q2", "q1", "assistant", call),
        record("q3", "q2", "assistant", call),
        record("q3", "q2", "assistant", said("Bye.")),
    )
    assert session.message_count == 3
    assert [one.text for one in messages] == ["hello", "Hi.", "ls", "ls", "Bye."]


def test_the_variable_that_moved_the_sessions_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines(tmp_path / "moved/projects/-w-app/chats" / f"{SID}.jsonl", record("q1", None, "user", said("hello")))
    for name in ("QWEN_HOME", "QWEN_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "moved"))
        (source,) = sources("qwen", tmp_path, {name: str(tmp_path / "moved")})
        ((session, _),) = read(source).values()
        assert session.resume == f"{name}={tmp_path}/moved qwen --resume {SID}"


def test_an_old_document_s_replies_may_bear_the_program_s_own_name(tmp_path: Path) -> None:
    turns = [{"id": "1", "type": "user", "content": "hello"}, {"id": "2", "type": "qwen", "content": "Hi."}]
    document(tmp_path / ".qwen/tmp/ab/chats/session-1.json", {"sessionId": "s1", "messages": turns})
    (source,) = sources("qwen", tmp_path)
    ((_, messages),) = read(source).values()
    assert [(one.role, one.text) for one in messages] == [("user", "hello"), ("assistant", "Hi.")]
    assert unknown(source) == 0
