"""Kimi CLI: the log of what was shown, subagents, forks, and sessions that only have the model's history."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Dict

from relay.transcripts.types import Message, Session
from tests.support.transcript_sources import document, lines, read, sources, text, unknown

SID = "0a1b2c3d-0000-4000-8000-000000000001"
WORK = hashlib.md5(b"/w/my app").hexdigest()
T = 1_764_000_000.25
MS = 1_764_000_000_250
META = {"type": "metadata", "protocol_version": "1.3"}


def event(kind: str, second: float = 0, **payload: Any) -> Dict[str, Any]:
    return {"timestamp": T + second, "message": {"type": kind, "payload": payload}}


def part(words: str, second: float = 0) -> Dict[str, Any]:
    return event("ContentPart", second, type="text", text=words)


def wire(home: Path, *records: Any, session: str = SID, below: str = "") -> Path:
    return lines(home / ".kimi/sessions" / WORK / session / below / "wire.jsonl", META, *records)


def test_an_ordinary_session(tmp_path: Path) -> None:
    wire(
        tmp_path,
        event("TurnBegin", user_input=[{"type": "text", "text": "list files"}]),
        event("StepBegin", 1, n=1),
        event("ContentPart", 1, type="think", think="secret thought"),
        part("I will ", 2),
        part("look.", 2.5),
        event("ToolCall", 3, type="function", id="tc1", function={"name": "Shell", "arguments": '{"comm'}),
        event("ToolCallPart", 3, arguments_part='and": "ls -la"}'),
        event("ToolResult", 4, tool_call_id="tc1", return_value={"is_error": False, "output": "a.py", "message": "ok"}),
        event("StepBegin", 5, n=2),
        part("There is a.py.", 6),
        event("StatusUpdate", 6, token_usage=None),
        event("TurnEnd", 7),
    )
    document(tmp_path / ".kimi/kimi.json", {"work_dirs": [{"path": "/w/x"}, {"path": "/w/my app", "kaos": "local"}]})
    document(tmp_path / ".kimi/sessions" / WORK / SID / "state.json", {"custom_title": "Files here"})
    (source,) = sources("kimi", tmp_path)
    assert read(source) == {
        SID: (
            Session(
                SID,
                "Files here",
                cwd="/w/my app",
                created_at=MS,
                updated_at=MS + 7000,
                message_count=3,
                resume=f"kimi --session {SID}",
                lineage=f"{WORK}:1764000000.25",
            ),
            [
                Message(0, "user", "list files", MS),
                Message(1, "assistant", "I will look.", MS + 2500),
                Message(2, "tool", "Shell command: ls -la", MS + 3000),
                Message(3, "tool", "a.py", MS + 4000),
                Message(4, "assistant", "There is a.py.", MS + 6000),
            ],
        )
    }
    assert unknown(source) == 0


def test_a_retried_step_is_undone(tmp_path: Path) -> None:
    wire(
        tmp_path,
        event("TurnBegin", user_input="/compact now"),
        event("TurnBegin", 1, user_input="what is 6 * 7"),
        event("StepBegin", 2, n=1),
        part("It is fourty", 3),
        event("StepRetry", 4, n=1, next_attempt=2, max_attempts=3, wait_s=0.1, error_type="Timeout"),
        part("It is ", 5),
        event("SteerInput", 6, user_input=[{"type": "text", "text": "quick"}]),
        part("42", 7),
        event("StepRetry", 8, n=1, next_attempt=3, max_attempts=3, wait_s=0.1, error_type="Timeout"),
        part("42.", 9),
    )
    (source,) = sources("kimi", tmp_path)
    ((session, messages),) = read(source).values()
    assert (session.title, session.message_count) == ("what is 6 * 7", 5)
    assert [(one.role, one.text) for one in messages] == [
        ("user", "/compact now"),
        ("user", "what is 6 * 7"),
        ("assistant", "It is "),
        ("user", "quick"),
        ("assistant", "42."),
    ]


def test_subagents_do_not_speak_for_the_session(tmp_path: Path) -> None:
    inner = {
        "parent_tool_call_id": "tc1",
        "event": {"type": "ContentPart", "payload": {"type": "text", "text": "half"}},
    }
    more = {"task_tool_call_id": "tc1", "event": {"type": "ContentPart", "payload": {"type": "text", "text": " done"}}}
    call = {"type": "ToolCall", "payload": {"id": "x", "function": {"name": "Grep", "arguments": '{"pattern": "foo"}'}}}
    answer = {"type": "ToolResult", "payload": {"tool_call_id": "x", "return_value": {"output": "foo.py"}}}
    wire(
        tmp_path,
        event("TurnBegin", user_input="delegate"),
        event("ToolCall", 1, id="tc1", function={"name": "Task", "arguments": "{}"}),
        event("SubagentEvent", 2, **inner),
        event("SubagentEvent", 2, **more),
        event("SubagentEvent", 3, parent_tool_call_id="tc1", event=call),
        event("SubagentEvent", 3, parent_tool_call_id="tc1", event=answer),
        event("SubagentEvent", 3, parent_tool_call_id="tc1", agent_id="a1", event=call),
        event("ToolResult", 4, tool_call_id="tc1", return_value={"output": [{"type": "text", "text": "finished"}]}),
        part("All done.", 5),
    )
    wire(tmp_path, event("TurnBegin", user_input="find foo"), part("foo.py"), below="subagents/a1")
    document(tmp_path / ".kimi/sessions" / WORK / SID / "subagents/a1/meta.json", {"description": "Find foo"})
    main, child = sorted(sources("kimi", tmp_path), key=lambda source: len(source.path))
    ((session, messages),) = read(main).values()
    assert session.message_count == 2
    assert [(one.role, one.text) for one in messages] == [
        ("user", "delegate"),
        ("tool", "Task"),
        ("tool", "half done"),
        ("tool", "Grep pattern: foo"),
        ("tool", "foo.py"),
        ("tool", "finished"),
        ("assistant", "All done."),
    ]
    ((session, messages),) = read(child).values()
    assert (session.session_id, session.parent_id, session.title) == (f"{SID}/a1", SID, "Find foo")
    assert session.resume == f"kimi --session {SID}"


def test_a_fork_shares_its_lineage_with_the_original(tmp_path: Path) -> None:
    other = SID[:-1] + "2"
    turn = event("TurnBegin", user_input="hello")
    wire(tmp_path, turn, part("hi"))
    wire(tmp_path, turn, part("hi"), event("TurnBegin", 9, user_input="another way"), session=other)
    found = {name: session for source in sources("kimi", tmp_path) for name, (session, _) in read(source).items()}
    assert found[SID].lineage == found[other].lineage is not None


def test_a_session_without_a_log_is_read_from_the_history(tmp_path: Path) -> None:
    folder = tmp_path / ".kimi/sessions" / f"ssh_{WORK}"
    history = (
        {"role": "_system_prompt", "content": "You are Kimi"},
        {"role": "_checkpoint", "id": 0},
        {"role": "user", "content": "<system>CHECKPOINT 0</system>"},
        {"role": "user", "content": [{"type": "text", "text": "list files"}]},
        {
            "role": "assistant",
            "content": [{"type": "think", "think": "hm"}, {"type": "text", "text": "Looking."}],
            "tool_calls": [
                {"type": "function", "id": "t", "function": {"name": "Shell", "arguments": '{"command":"ls"}'}}
            ],
        },
        {"role": "tool", "content": [{"type": "text", "text": "a.py"}], "tool_call_id": "t"},
        {"role": "_usage", "token_count": 12},
    )
    lines(folder / SID / "context.jsonl", *history, at=T)
    lines(folder / SID / "context_1.jsonl", {"role": "user", "content": "rotated away"})
    document(tmp_path / ".kimi/kimi.json", {"work_dirs": [{"path": "/w/my app", "kaos": "ssh"}]})
    document(folder / SID / "metadata.json", {"title": "Old title"})
    expected = [
        Message(0, "user", "list files"),
        Message(1, "assistant", "Looking."),
        Message(2, "tool", "Shell command: ls"),
        Message(3, "tool", "a.py"),
    ]
    (source,) = sources("kimi", tmp_path)
    assert read(source) == {
        SID: (
            Session(
                SID,
                "Old title",
                cwd="/w/my app",
                updated_at=MS,
                message_count=2,
                resume=f"kimi --session {SID}",
            ),
            expected,
        )
    }
    lines(folder / SID / "wire.jsonl", META, event("TurnBegin", user_input="list files"))
    assert read(source) == {}
    lines(folder / "oldest.jsonl", *history)
    (source,) = [one for one in sources("kimi", tmp_path) if one.path.endswith("oldest.jsonl")]
    ((session, messages),) = read(source).values()
    assert (session.session_id, session.title, messages) == ("oldest", "list files", expected)


def test_a_broken_log_gives_what_it_can(tmp_path: Path) -> None:
    path = wire(
        tmp_path,
        "{torn",
        event("TurnBegin", user_input="hello"),
        event("Telepathy", thought="?"),
        {"timestamp": T, "message": "?"},
        event("ToolCall", function="?"),
        event("ToolCallPart", arguments_part="lost"),
        event("ToolResult", return_value="?"),
        part("answer"),
    )
    with path.open("a") as file:
        file.write('{"timestamp": 1764000009, "message": {"type": "Turn')
    (source,) = sources("kimi", tmp_path)
    ((session, messages),) = read(source).values()
    assert [(one.seq, one.text) for one in messages] == [(0, "hello"), (1, "answer")]
    assert unknown(source) == 2


def test_an_empty_session_is_left_out(tmp_path: Path) -> None:
    wire(tmp_path)
    text(tmp_path / ".kimi/sessions" / WORK / SID / "context.jsonl", "")
    assert [read(source) for source in sources("kimi", tmp_path)] == [{}, {}]


def test_the_state_beside_a_log_belongs_to_it(tmp_path: Path) -> None:
    wire(tmp_path, event("TurnBegin", user_input="hello"))
    (source,) = sources("kimi", tmp_path)
    assert source.store.claim(f"{WORK}/{SID}/state.json") == f"{WORK}/{SID}/wire.jsonl"


def test_another_home_is_named_in_the_command(tmp_path: Path) -> None:
    lines(tmp_path / "share/sessions" / WORK / SID / "wire.jsonl", event("TurnBegin", user_input="hello"))
    (source,) = sources("kimi", tmp_path, {"KIMI_SHARE_DIR": str(tmp_path / "share")})
    ((session, _),) = read(source).values()
    assert session.resume == f"KIMI_SHARE_DIR={tmp_path / 'share'} kimi --session {SID}"
