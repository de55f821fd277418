"""Gemini CLI: documents, replayed logs, and where the project's folder is found."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any, Dict, List

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay.transcripts.types import Message, Session, Unreadable
from tests.support.transcript_sources import document, lines, read, sources, text, unknown

T = 1_780_304_400_000  # 2026-06-01T09:00:00Z
SID = "9f1c0000-aaaa-bbbb-cccc-000000000001"
HEADER = {
    "sessionId": SID,
    "projectHash": "ab",
    "startTime": "2026-06-01T09:00:00.000Z",
    "lastUpdated": "2026-06-01T09:00:00.000Z",
    "kind": "main",
}


def stamp(second: int) -> str:
    return f"2026-06-01T09:00:{second:02}.000Z"


def said(identity: str, kind: str, content: Any, second: int, **more: Any) -> Dict[str, Any]:
    return {"id": identity, "type": kind, "content": content, "timestamp": stamp(second), **more}


def call(status: str, *result: Any) -> Dict[str, Any]:
    answers = [{"functionResponse": {"id": "t1", "name": "shell", "response": {"output": one}}} for one in result]
    return {
        "id": "t1",
        "name": "shell",
        "args": {"command": "gh run list"},
        "status": status,
        "result": answers or None,
    }


def log(home: Path, *records: Any, name: str = "session-2026-06-01T09-00-9f1c0000.jsonl", project: str = "app") -> Path:
    return lines(home / ".gemini/tmp" / project / "chats" / name, *records)


def test_an_ordinary_document(tmp_path: Path) -> None:
    document(
        tmp_path / ".gemini/tmp/app/chats/session-2026-06-01T09-00-9f1c0000.json",
        {
            **HEADER,
            "lastUpdated": stamp(30),
            "messages": [
                said("m1", "user", [{"text": "why is CI red?"}], 5),
                said(
                    "m2",
                    "gemini",
                    "I look.",
                    6,
                    thoughts=[{"subject": "Plan", "description": "secret thought"}],
                    toolCalls=[call("success", "build 7 failed")],
                ),
                said("m3", "info", "Request cancelled.", 7),
                said("m4", "gemini", [{"text": "hidden", "thought": True}, {"text": "A test fails."}], 9),
            ],
        },
    )
    text(tmp_path / ".gemini/tmp/app/.project_root", "/w/app\n")
    (source,) = sources("gemini", tmp_path)
    assert read(source) == {
        SID: (
            Session(
                SID,
                "why is CI red?",
                cwd="/w/app",
                created_at=T,
                updated_at=T + 30_000,
                message_count=3,
                resume=f"gemini --resume {SID}",
            ),
            [
                Message(0, "user", "why is CI red?", T + 5000),
                Message(1, "assistant", "I look.", T + 6000),
                Message(2, "tool", "shell command: gh run list", T + 6000),
                Message(3, "tool", "build 7 failed", T + 6000),
                Message(4, "system", "Request cancelled.", T + 7000),
                Message(5, "assistant", "A test fails.", T + 9000),
            ],
        )
    }


def test_a_log_is_replayed(tmp_path: Path) -> None:
    log(
        tmp_path,
        HEADER,
        said("m1", "user", "first try", 1),
        said("m2", "gemini", "wrong answer", 2),
        {"$rewindTo": "m1"},
        said("m3", "user", "why is CI red?", 3),
        said("m4", "gemini", "", 4),
        {"$set": {"lastUpdated": stamp(4)}},
        said("m5", "user", "and hurry", 6),
        said("m4", "gemini", "Found it.", 4, toolCalls=[call("success", "build 7 failed")]),
        {"$set": {"summary": "CI failure", "lastUpdated": stamp(9)}},
    )
    (source,) = sources("gemini", tmp_path)
    ((session, messages),) = read(source).values()
    assert (session.title, session.message_count, session.updated_at) == ("CI failure", 3, T + 9000)
    assert [(one.seq, one.role, one.text) for one in messages] == [
        (0, "user", "why is CI red?"),
        (1, "assistant", "Found it."),
        (2, "tool", "shell command: gh run list"),
        (3, "tool", "build 7 failed"),
        (4, "user", "and hurry"),
    ]


def test_a_checkpoint_replaces_all_messages(tmp_path: Path) -> None:
    log(
        tmp_path,
        HEADER,
        said("m1", "user", "long story", 1),
        said("m2", "gemini", "long answer", 2),
        {"$set": {"messages": [said("c1", "user", "short story", 3), said("c2", "gemini", "short answer", 4)]}},
        said("m3", "user", "go on", 5),
        said("c2", "gemini", "shorter answer", 4),
    )
    (source,) = sources("gemini", tmp_path)
    ((_, messages),) = read(source).values()
    assert [one.text for one in messages] == ["short story", "shorter answer", "go on"]


def test_a_rewind_to_an_unknown_message_clears_all(tmp_path: Path) -> None:
    log(tmp_path, HEADER, said("m1", "user", "gone", 1), {"$rewindTo": "m9"}, said("m2", "user", "here", 2))
    (source,) = sources("gemini", tmp_path)
    ((session, messages),) = read(source).values()
    assert [one.text for one in messages] == ["here"]
    assert session.title == "here"


def test_two_records_on_one_line_are_both_found_again(tmp_path: Path) -> None:
    first, second = said("m1", "user", "one", 1), said("m2", "gemini", "two", 2)
    log(tmp_path, HEADER, "not json", "", json.dumps(first) + json.dumps(second), said("m3", "user", "three", 3))
    (source,) = sources("gemini", tmp_path)
    ((_, messages),) = read(source).values()
    assert [one.text for one in messages] == ["one", "two", "three"]


names = st.sampled_from(["a", "b", "c", "d"])
words = st.sampled_from(["one", "two", "three"])
operations = st.lists(
    st.tuples(st.just("say"), names, words)
    | st.tuples(st.just("rewind"), names, words)
    | st.tuples(
        st.just("replace"), st.lists(st.tuples(names, words), max_size=4, unique_by=lambda pair: pair[0]), words
    ),
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(operations)
def test_a_replay_leaves_what_the_operations_say(tmp_path: Path, script: Any) -> None:
    left: Dict[str, str] = {}
    records: List[Any] = [HEADER]
    for operation, what, word in script:
        if operation == "say":
            left[what] = word
            records.append(said(what, "user", word, 1))
        elif operation == "rewind":
            order = list(left)
            left = {name: left[name] for name in order[: order.index(what) if what in left else 0]}
            records.append({"$rewindTo": what})
        else:
            left = dict(what)
            records.append({"$set": {"messages": [said(name, "user", inner, 1) for name, inner in what]}})
    log(tmp_path, *records)
    (source,) = sources("gemini", tmp_path)
    found = [one.text for _, messages in read(source).values() for one in messages]
    assert found == list(left.values())


def test_a_long_session_is_read_again_for_its_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from relay.transcripts import whole

    log(tmp_path, HEADER, *(said(f"m{n}", "user", f"word {n} " * 20, n % 60) for n in range(50)))
    (source,) = sources("gemini", tmp_path)
    expected = read(source)
    monkeypatch.setattr(whole, "_KEPT", 100)
    assert read(source) == expected


def test_what_no_person_typed_is_no_title_and_no_turn(tmp_path: Path) -> None:
    log(
        tmp_path,
        HEADER,
        said("m0", "user", "This is the Gemini CLI. We are setting up the context for our chat.", 0),
        said("m1", "user", "<session_context>\ntoday is Monday\n</session_context>", 0),
        said("m2", "user", "/help", 1),
        said("m3", "user", "? what", 1),
        said("m4", "user", "<hook_context>x</hook_context>ship it", 2),
        said("m5", "user", "expanded @file text", 3, displayContent=[{"text": "read @file"}]),
        said("m6", "user", "System: Please continue.", 4, displayContent=[{"functionResponse": {"name": "x"}}]),
    )
    (source,) = sources("gemini", tmp_path)
    ((session, messages),) = read(source).values()
    assert (session.title, session.message_count) == ("ship it", 2)
    assert [one.text for one in messages] == ["/help", "? what", "ship it", "read @file"]


def test_a_session_of_notices_and_commands_is_left_out(tmp_path: Path) -> None:
    log(tmp_path, HEADER, said("m1", "info", "Update available", 1), said("m2", "user", "/quit", 2))
    (source,) = sources("gemini", tmp_path)
    assert read(source) == {}


def test_subagents_name_their_parent(tmp_path: Path) -> None:
    lines(
        tmp_path / ".gemini/tmp/app/chats" / SID / "explorer.jsonl",
        {**HEADER, "kind": "subagent"},
        said("m1", "user", "find the config", 1),
    )
    (source,) = sources("gemini", tmp_path)
    ((session, _),) = read(source).values()
    assert (session.session_id, session.parent_id) == (f"{SID}/explorer", SID)
    assert session.resume == f"gemini --resume {SID}"


@pytest.mark.parametrize(
    "found", ["register", "hash of a registered folder", "hash of an added folder", "added", "none"]
)
def test_the_folder_of_the_project(tmp_path: Path, found: str) -> None:
    digest = hashlib.sha256(b"/w/app").hexdigest()
    changes: Dict[str, Any] = {}
    project = "app"
    if found == "register":
        document(tmp_path / ".gemini/projects.json", {"projects": {"/w/other": "other", "/w/app": "app"}})
    elif found == "hash of a registered folder":
        document(tmp_path / ".gemini/projects.json", {"projects": {"/w/other": "other", "/w/app": "renamed"}})
        project = digest
    elif found == "hash of an added folder":
        changes = {"directories": ["/w/lib", "/w/app"]}
        project = digest
    elif found == "added":
        changes = {"directories": ["/w/app", "/w/lib"]}
    log(tmp_path, HEADER, said("m1", "user", "hi", 1), {"$set": changes}, project=project)
    (source,) = sources("gemini", tmp_path)
    ((session, _),) = read(source).values()
    assert session.cwd == (None if found == "none" else "/w/app")


def test_another_home_is_named_in_the_command(tmp_path: Path) -> None:
    home = tmp_path / "my home"
    lines(home / ".gemini/tmp/app/chats/session-x.jsonl", HEADER, said("m1", "user", "hi", 1))
    (source,) = sources("gemini", tmp_path, {"GEMINI_CLI_HOME": str(home)})
    ((session, _),) = read(source).values()
    assert session.resume == f"GEMINI_CLI_HOME='{home}' gemini --resume {SID}"


def test_files_that_are_no_transcripts_are_skipped(tmp_path: Path) -> None:
    folder = tmp_path / ".gemini/tmp/app"
    for name in (
        "logs.json",
        "logs/session-1.jsonl",
        "checkpoint-a.json",
        "checkpoints/session-1.json",
        "chats/session-1.jsonl.unreadable-17",
        "chats/session-1.json.tmp-12",
        "chats/other.json",
        "tool-outputs/session-1.json",
    ):
        text(folder / name, "{}")
    assert sources("gemini", tmp_path) == []


def test_pictures_leave_no_payload(tmp_path: Path) -> None:
    payload = base64.b64encode(bytes(range(256)) * 8).decode()
    part = {"inlineData": {"mimeType": "image/png", "data": payload}}
    shot = {"functionResponse": {"name": "shot", "response": {"output": part}}}
    log(
        tmp_path,
        HEADER,
        said("m1", "user", [{"text": "look"}, part], 1),
        said("m2", "gemini", "", 2, toolCalls=[{"name": "shot", "args": {}, "result": [shot, part]}]),
    )
    (source,) = sources("gemini", tmp_path)
    ((_, messages),) = read(source).values()
    assert messages[0].text == "look\n[image image/png 2048]"
    assert not any(payload[:200] in one.text for one in messages)


def test_drifted_records_are_counted(tmp_path: Path) -> None:
    log(
        tmp_path,
        HEADER,
        {"shape": "of things to come"},
        said("m1", "user", "hi", 1),
        said("m2", "telepathy", "?", 2),
        said("m3", "gemini", "ok", 3, toolCalls=17),
    )
    (source,) = sources("gemini", tmp_path)
    ((_, messages),) = read(source).values()
    assert [one.text for one in messages] == ["hi", "ok"]
    assert unknown(source) == 2


def test_a_call_is_told_once_though_it_stands_in_the_content_too(tmp_path: Path) -> None:
    answer = {"functionResponse": {"id": "t1", "name": "shell", "response": {"output": "build 7 failed"}}}
    other = {"functionResponse": {"id": "t2", "name": "look", "response": {"output": "nothing"}}}
    parts = [{"text": "I look."}, {"functionCall": {"id": "t1", "name": "shell", "args": {"command": "gh run list"}}}]
    log(
        tmp_path,
        HEADER,
        said("m1", "user", "why?", 1),
        said("m2", "gemini", parts, 2, toolCalls=[call("success", "build 7 failed")]),
        said("m3", "user", [answer, other], 3),
    )
    (source,) = sources("gemini", tmp_path)
    ((_, messages),) = read(source).values()
    assert [one.text for one in messages] == [
        "why?",
        "I look.",
        "shell command: gh run list",
        "build 7 failed",
        "nothing",
    ]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_whole_session_under_the_name_of_a_log(tmp_path: Path, indent: Any) -> None:
    session = {**HEADER, "messages": [said("m1", "user", "hello", 1), said("m2", "gemini", "hi", 2)]}
    more = () if indent else (said("m2", "gemini", "hi there", 2), said("m3", "user", "bye", 3))
    log(tmp_path, json.dumps(session, indent=indent), *more)
    (source,) = sources("gemini", tmp_path)
    ((_, messages),) = read(source).values()
    assert [one.text for one in messages] == (["hello", "hi"] if indent else ["hello", "hi there", "bye"])


def test_an_empty_log_is_left_out(tmp_path: Path) -> None:
    log(tmp_path)
    (source,) = sources("gemini", tmp_path)
    assert read(source) == {}


def test_the_oldest_documents(tmp_path: Path) -> None:
    document(
        tmp_path / ".gemini/tmp/app/chats/session-old.json",
        {
            "history": [
                {"role": "user", "parts": [{"text": "draw"}], "ts": 1_748_768_400},
                {"role": "model", "parts": [{"functionCall": {"name": "draw", "args": {"what": "cat"}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "draw", "response": {"error": "no ink"}}}]},
            ]
        },
    )
    (source,) = sources("gemini", tmp_path)
    ((session, messages),) = read(source).values()
    assert (session.session_id, session.resume) == ("session-old", None)
    assert [(one.role, one.text) for one in messages] == [
        ("user", "draw"),
        ("tool", "draw what: cat"),
        ("tool", "no ink"),
    ]


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ('{"sessionId": "x", "messages": [{"id": "m1", "type": "us', "The document ends early."),
        ("", "The document is empty."),
        ("[]x", None),
        ("[1]", "The document is an array, not a session."),
    ],
)
def test_a_broken_document_is_unreadable(tmp_path: Path, written: str, reason: Any) -> None:
    text(tmp_path / ".gemini/tmp/app/chats/session-broken.json", written)
    (source,) = sources("gemini", tmp_path)
    if reason is None:
        assert read(source) == {}
        return
    with pytest.raises(Unreadable) as caught:
        read(source)
    assert caught.value.reason == reason
