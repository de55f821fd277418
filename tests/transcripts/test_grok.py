"""Grok Build: the history with times from the event log, compaction, forks and subagents."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Optional

import pytest

from relay.transcripts.types import Message, Session, Unreadable
from tests.support.transcript_sources import document, lines, read, sources, text, unknown

SID = "019f6000-0000-7000-8000-000000000001"
T = 1_784_368_800
SUMMARY = {
    "info": {"id": SID, "cwd": "/w/app"},
    "created_at": "2026-07-18T10:00:00Z",
    "updated_at": "2026-07-18T10:30:00.123456789Z",
    "last_active_at": "2026-07-18T10:29:00Z",
    "head_branch": "feature",
}


def update(second: int, kind: str, **more: Any) -> Dict[str, Any]:
    return {"timestamp": T + second, "params": {"update": {"sessionUpdate": kind, **more}}}


def chunk(second: int, role: str, words: str, **more: Any) -> Dict[str, Any]:
    return update(second, f"{role}_message_chunk", content={"type": "text", "text": words}, **more)


def user(words: str, **more: Any) -> Dict[str, Any]:
    return {"type": "user", "content": [{"type": "text", "text": words}], **more}


def session(
    home: Path,
    summary: Optional[Dict[str, Any]] = None,
    history: Any = (),
    updates: Any = (),
    session_id: str = SID,
    root: str = ".grok",
) -> Path:
    folder = home / root / "sessions/%2Fw%2Fapp" / session_id
    info = {"info": {"id": session_id, "cwd": "/w/app"}}
    document(folder / "summary.json", {**SUMMARY, **info, **(summary or {})})
    if history:
        lines(folder / "chat_history.jsonl", *history)
    if updates:
        lines(folder / "updates.jsonl", *updates)
    return folder


HISTORY = (
    {"type": "system", "content": "You are Grok"},
    user("<user_info>linux</user_info>", synthetic_reason="environment_context"),
    user("<user_query>fix it</user_query>", prompt_index=0),
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "secret"}], "encrypted_content": "x"},
    {
        "type": "assistant",
        "content": "I look.",
        "tool_calls": [{"id": "g1", "name": "bash", "arguments": '{"command":"ls"}'}],
    },
    {"type": "tool_result", "tool_call_id": "g1", "content": "a.py"},
    {"type": "backend_tool_call", "kind": {"tool_type": "web_search", "action": {"query": "grok"}, "id": "w1"}},
    user("also tests", synthetic_reason="interjection"),
    {"type": "assistant", "content": "Fixed.", "tool_calls": []},
)


def test_an_ordinary_session(tmp_path: Path) -> None:
    folder = session(
        tmp_path,
        {"session_summary": "Fix", "generated_title": "Fix the build"},
        HISTORY,
        (
            chunk(1, "user", "fix it"),
            chunk(2, "agent", "host said", _meta={"hostTurn": True}),
            chunk(3, "agent", "I "),
            chunk(4, "agent", "look."),
            update(5, "tool_call", toolCallId="g1"),
            update(6, "tool_call_update", toolCallId="g1", status="completed"),
            chunk(8, "user", "also tests"),
            chunk(9, "agent", "Fixed."),
            update(10, "turn_completed", prompt_id="p"),
        ),
    )
    text(folder / "signals.json", "{}")
    (source,) = sources("grok", tmp_path)
    assert read(source) == {
        SID: (
            Session(
                SID,
                "Fix the build",
                cwd="/w/app",
                branch="feature",
                created_at=T * 1000,
                updated_at=(T + 29 * 60) * 1000,
                message_count=4,
                resume=f"grok --resume {SID}",
            ),
            [
                Message(0, "user", "fix it", (T + 1) * 1000),
                Message(1, "assistant", "I look.", (T + 3) * 1000),
                Message(2, "tool", "bash command: ls", (T + 5) * 1000),
                Message(3, "tool", "a.py", (T + 6) * 1000),
                Message(4, "tool", "web_search query: grok", None),
                Message(5, "user", "also tests", (T + 8) * 1000),
                Message(6, "assistant", "Fixed.", (T + 9) * 1000),
            ],
        )
    }
    assert unknown(source) == 0


def test_the_older_rows(tmp_path: Path) -> None:
    session(
        tmp_path,
        {"info": {}, "firstPrompt": "Old prompt", "chat_format_version": 0, "last_active_at": None},
        (
            {"role": "system", "content": "You are Grok"},
            {"role": "user", "content": "fix it"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "g1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}],
                "reasoning_content": "secret",
            },
            {"role": "tool", "tool_call_id": "g1", "content": "a.py"},
        ),
    )
    (source,) = sources("grok", tmp_path)
    ((head, messages),) = read(source).values()
    assert (head.session_id, head.cwd, head.title, head.message_count) == (SID, "/w/app", "Old prompt", 2)
    assert head.updated_at == (T + 30 * 60) * 1000 + 123
    assert messages == [Message(0, "user", "fix it"), Message(1, "tool", "ls"), Message(2, "tool", "a.py")]


def test_what_compaction_removed_comes_from_the_event_log(tmp_path: Path) -> None:
    """The history was rewritten: a summary, the last turn as it was kept, and what was said since."""
    session(
        tmp_path,
        history=(
            {"type": "system", "content": "You are Grok"},
            user("Summary of what happened", synthetic_reason="compaction_summary"),
            user("continue"),
            {"type": "assistant", "content": "second answer"},
            user("continue"),
            {"type": "assistant", "content": "third answer"},
        ),
        updates=(
            chunk(1, "user", "first question"),
            chunk(2, "agent", "first answer"),
            update(3, "tool_call", toolCallId="g1", title="bash", rawInput={"command": "ls"}),
            update(4, "tool_call_update", toolCallId="g1", status="in_progress", rawOutput={"text": "partial"}),
            update(
                5, "tool_call_update", toolCallId="g1", status="completed", rawOutput={"type": "Bash", "text": "a.py"}
            ),
            chunk(6, "user", "continue"),
            chunk(7, "agent", "second answer"),
            update(8, "compaction_checkpoint"),
            chunk(9, "user", "continue"),
            chunk(10, "agent", "third answer"),
        ),
    )
    (source,) = sources("grok", tmp_path)
    ((head, messages),) = read(source).values()
    assert [(one.role, one.text, (one.timestamp or 0) // 1000 - T) for one in messages] == [
        ("user", "first question", 1),
        ("assistant", "first answer", 2),
        ("tool", "bash command: ls", 3),
        ("tool", "type: Bash\ntext: a.py", 5),
        ("user", "continue", 6),
        ("assistant", "second answer", 7),
        ("user", "continue", 9),
        ("assistant", "third answer", 10),
    ]
    assert (head.title, head.message_count) == ("first question", 6)


def test_a_session_without_a_history_is_read_from_the_event_log(tmp_path: Path) -> None:
    session(
        tmp_path,
        updates=(
            {
                "timestamp": T + 1,
                "update": {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "hi"}},
            },
            update(2, "tool_call", toolCallId="g1", rawInput={"pattern": "x"}, _meta={"x.ai/tool": {"name": "grep"}}),
            update(
                3,
                "tool_call_update",
                toolCallId="g1",
                status="failed",
                content=[{"type": "content", "content": {"type": "text", "text": "no match"}}],
            ),
            update(4, "future_update"),
            chunk(5, "agent", "nothing found"),
        ),
    )
    (source,) = sources("grok", tmp_path)
    ((head, messages),) = read(source).values()
    assert [(one.role, one.text) for one in messages] == [
        ("user", "hi"),
        ("tool", "grep pattern: x"),
        ("tool", "no match"),
        ("assistant", "nothing found"),
    ]
    assert unknown(source) == 1


def test_subagents_and_forks(tmp_path: Path) -> None:
    ids = [SID[:-1] + str(n) for n in range(5)]
    one = (user("hello"),)
    session(tmp_path, {}, one, session_id=ids[0])
    session(tmp_path, {"parent_session_id": ids[0]}, one, session_id=ids[1])
    session(tmp_path, {"parent_session_id": ids[1]}, one, session_id=ids[2])
    session(tmp_path, {"parent_session_id": ids[2], "session_kind": "subagent"}, one, session_id=ids[3])
    session(tmp_path, {"parent_session_id": "gone/../gone"}, one, session_id=ids[4])
    found = {name: head for source in sources("grok", tmp_path) for name, (head, _) in read(source).items()}
    assert [(found[name].parent_id, found[name].lineage) for name in ids] == [
        (None, None),
        (None, ids[0]),
        (None, ids[0]),
        (ids[2], None),
        (None, "gone/../gone"),
    ]


def test_the_parts_of_a_session_belong_to_its_summary(tmp_path: Path) -> None:
    folder = session(tmp_path, history=(user("hello"),))
    (source,) = sources("grok", tmp_path)
    assert source.store.files is not None
    assert set(source.store.files(source)) == {str(folder / "chat_history.jsonl"), str(folder / "updates.jsonl")}
    assert source.store.claim("a/b/updates.jsonl") == source.store.claim("a/b/chat_history.jsonl") == "a/b/summary.json"
    assert source.store.claim("a/b/signals.json") is None


def test_another_home_is_named_in_the_command(tmp_path: Path) -> None:
    session(tmp_path, history=(user("hello"),), root="xai home")
    (source,) = sources("grok", tmp_path, {"GROK_HOME": str(tmp_path / "xai home")})
    ((head, _),) = read(source).values()
    assert head.resume == f"GROK_HOME='{tmp_path}/xai home' grok --resume {SID}"


def test_broken_rows_are_passed_over(tmp_path: Path) -> None:
    folder = session(tmp_path, history=("{torn", {"type": "dream"}, user("hello"), {"type": "assistant", "content": 7}))
    (source,) = sources("grok", tmp_path)
    ((_, messages),) = read(source).values()
    assert [one.text for one in messages] == ["hello"]
    assert unknown(source) == 1
    text(folder / "summary.json", '{"info": {"id": ')
    with pytest.raises(Unreadable, match="ends early"):
        read(source)


def test_a_session_in_which_nothing_was_said_is_left_out(tmp_path: Path) -> None:
    session(tmp_path, history=({"type": "system", "content": "You are Grok"},))
    (source,) = sources("grok", tmp_path)
    assert read(source) == {}
