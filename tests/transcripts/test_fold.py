"""Every append reader is a fold: however the lines are portioned, and whatever they are, the rows are the same."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Dict, Iterable, List, Tuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.transcripts.registry import APPEND, Store, agents
from relay.transcripts.types import Message, Rewind, Source

SID = "5e0c0000-1111-7222-8333-000000000001"
OTHER = "01998000-0000-7000-8000-000000000009"


def at(second: int) -> str:
    return f"2026-05-02T08:00:{second:02}.000Z"


def said(words: str) -> Dict[str, str]:
    return {"type": "text", "text": words}


def claude(kind: str, own: str, parent: Any, content: Any, message_id: str = "", **more: Any) -> Dict[str, Any]:
    message = {"role": kind, "content": content, "id": message_id}
    return {
        "type": kind,
        "uuid": own,
        "parentUuid": parent,
        "cwd": "/w/app",
        "message": message,
        "timestamp": at(3),
        **more,
    }


def codex(kind: str, second: int = 1, outer: str = "event_msg", **payload: Any) -> Dict[str, Any]:
    return {"timestamp": at(second), "type": outer, "payload": {"type": kind, **payload}}


def spoke(role: str, words: str) -> Dict[str, Any]:
    return codex("message", outer="response_item", role=role, content=[said(words)])


def pi(own: str, parent: Any, role: str, words: str) -> Dict[str, Any]:
    message = {
        "role": role,
        "content": [said(words), {"type": "toolCall", "name": "bash", "arguments": {"command": "ls"}}],
    }
    return {"type": "message", "id": own, "parentId": parent, "timestamp": at(int(own[1:])), "message": message}


def qwen(own: str, parent: Any, kind: str, words: str, **more: Any) -> Dict[str, Any]:
    call = {"functionCall": {"name": "ls", "args": {"path": words}}}
    message = {"parts": [{"text": words}, call if kind == "assistant" else {}]}
    return {"uuid": own, "parentUuid": parent, "type": kind, "timestamp": at(4), "message": message, **more}


CLAUDE = [
    claude("user", "u1", None, "start"),
    claude("assistant", "a1", "u1", [said("Rea")], "m1"),
    claude("assistant", "a2", "a1", [said("Ready.")], "m1"),
    claude(
        "assistant", "a3", "a2", [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}], "m1"
    ),
    claude("user", "u2", "a3", [{"type": "tool_result", "tool_use_id": "t1", "content": "a.py"}]),
    claude("assistant", "a4", "u2", [said("Other.")], "m2"),
    claude("user", "u3", "a4", "first attempt"),
    claude("user", "u4", "a4", "second attempt"),
    claude("user", "u5", "u4", "side", isSidechain=True, cwd="/elsewhere"),
    {
        "type": "attachment",
        "uuid": "s1",
        "parentUuid": "a4",
        "attachment": {"type": "queued_command", "prompt": "and this"},
    },
    {"type": "system", "uuid": "s2", "parentUuid": "s1", "subtype": "turn_duration"},
    claude("user", "u6", "s2", "<command-name>/rename</command-name><command-args>Named</command-args>"),
    {"type": "ai-title", "aiTitle": "Made"},
    {"type": "custom-title", "customTitle": "Mine"},
    {"type": "who knows"},
]
CODEX = [
    {"timestamp": at(0), "type": "session_meta", "payload": {"id": SID, "cwd": "/w/app", "git": {"branch": "main"}}},
    {
        "timestamp": at(0),
        "type": "session_meta",
        "payload": {"id": "sub", "parent_thread_id": OTHER, "thread_source": "sub"},
    },
    {"timestamp": at(1), "type": "session_meta", "payload": {"id": OTHER}},
    {"timestamp": at(1), "type": "turn_context", "payload": {"turn_id": "5e0c0001-0000-7000-8000-00000000000b"}},
    spoke("user", "hello"),
    codex("user_message", message="hello"),
    spoke("assistant", "Hi."),
    codex("agent_message", message="Hi."),
    codex("item_completed", item={"type": "AgentMessage", "content": [said("Hi.")]}),
    codex("function_call", outer="response_item", name="shell", arguments='{"command":["ls"]}'),
    codex("function_call_output", outer="response_item", output="a.py"),
    codex("turn_aborted", reason="interrupted"),
    codex("thread_rolled_back", num_turns=1),
    codex("thread_name_updated", thread_name="Named"),
    codex("user_message", 9, message="bye"),
]
PI: List[Dict[str, Any]] = [
    {"type": "session", "id": SID, "timestamp": at(0), "cwd": "/w/app"},
    pi("e1", None, "user", "start"),
    pi("e2", "e1", "assistant", "Ready."),
    pi("e3", "e2", "user", "left"),
    pi("e4", "e3", "assistant", "Left."),
    pi("e5", "e2", "user", "right"),
    pi("e6", "e5", "toolResult", "out"),
    pi("e7", "e4", "user", "left again"),
    pi("e8", None, "user", "anew"),
    pi("e9", "lost", "user", "stray"),
    {"type": "session_info", "id": "n1", "parentId": "e6", "name": "Named"},
    {"type": "title", "title": "Slot", "source": "auto"},
    {"type": "title_change", "id": "n2", "parentId": "e6", "title": "Given", "source": "user"},
    {"type": "who knows", "id": "n3", "parentId": "n2"},
]
QWEN: List[Dict[str, Any]] = [
    qwen("q1", None, "user", "start"),
    qwen("q2", "q1", "assistant", "one"),
    qwen("q2", "q1", "assistant", "two"),
    qwen("q3", "q1", "user", "elsewhere"),
    qwen("q4", "q2", "user", "back again"),
    qwen("q5", "q4", "user", "goal", provenance="goal_runtime"),
    qwen("q6", "q4", "user", "side", isSidechain=True),
    {
        "uuid": "q7",
        "parentUuid": "q4",
        "type": "system",
        "subtype": "custom_title",
        "systemPayload": {"customTitle": "T"},
    },
    {"uuid": "q8", "parentUuid": "q1", "type": "system", "subtype": "rewind", "systemPayload": {"truncatedCount": 2}},
]
COPILOT: List[Dict[str, Any]] = [
    {"type": "session.start", "data": {"context": {"cwd": "/w/app"}}, "timestamp": at(0)},
    {"type": "user.message", "data": {"content": "hello"}, "timestamp": at(1)},
    {"type": "assistant.message", "data": {"content": "", "toolRequests": [{"toolCallId": "c", "name": "ls"}]}},
    {"type": "tool.execution_start", "data": {"toolCallId": "c", "toolName": "ls"}},
    {"type": "tool.execution_complete", "data": {"toolCallId": "c", "result": "a.py"}},
    {"type": "userpromptsubmitted", "prompt": "flat", "cwd": "/w/flat"},
]
DROID: List[Dict[str, Any]] = [
    {"type": "session_start", "id": SID, "title": "New Session", "cwd": "/w/app"},
    {"type": "message", "message": {"role": "user", "content": "hello"}, "timestamp": at(1)},
    {"type": "message", "role": "assistant", "text": "Done."},
    {"type": "completion", "finalText": "Done."},
    {"type": "tool_call", "toolName": "Shell", "parameters": {"command": "ls"}},
]


def kimi(kind: str, **payload: Any) -> Dict[str, Any]:
    return {"timestamp": 1_764_000_000.25, "message": {"type": kind, "payload": payload}}


KIMI: List[Dict[str, Any]] = [
    {"type": "metadata", "protocol_version": "1.3"},
    kimi("TurnBegin", user_input="hello"),
    kimi("StepBegin", n=1),
    kimi("ContentPart", type="text", text="I will "),
    kimi("ContentPart", type="text", text="look."),
    kimi("ToolCall", type="function", id="t", function={"name": "Shell", "arguments": '{"comm'}),
    kimi("ToolCallPart", arguments_part='and": "ls"}'),
    kimi("ToolResult", tool_call_id="t", return_value={"output": "a.py"}),
    kimi("StepRetry"),
    kimi("TurnEnd"),
]
KIMI_CODE: List[Dict[str, Any]] = [
    {"type": "config.update", "cwd": "/w/app", "time": 1_784_950_605_000},
    {"type": "turn.prompt", "input": [said("hello")], "origin": {"kind": "user"}},
    {
        "type": "context.append_message",
        "message": {"role": "user", "content": [said("hello")], "origin": {"kind": "user"}},
    },
    {"type": "context.append_loop_event", "event": {"type": "step.begin", "step": 1}},
    {"type": "context.append_loop_event", "event": {"type": "content.part", "part": said("Looking.")}},
    {
        "type": "context.append_loop_event",
        "event": {"type": "tool.call", "toolCallId": "b", "name": "Bash", "args": {}},
    },
    {
        "type": "context.append_loop_event",
        "event": {"type": "tool.result", "toolCallId": "b", "result": {"output": "a"}},
    },
    {"type": "context.append_loop_event", "event": {"type": "step.end"}},
]
CURSOR: List[Dict[str, Any]] = [
    {"role": "user", "message": {"content": [said("<user_query>\nhello\n</user_query>")]}},
    {
        "role": "assistant",
        "message": {"content": [said("Hi."), {"type": "tool_use", "name": "Grep", "input": {"q": 1}}]},
    },
    {"role": "user", "message": {"content": [{"type": "tool_result", "content": "out"}]}},
    {"type": "turn_ended", "status": "success"},
]

#: For each append store of the registry: where a file of it lies below its root, and records of its kinds.
CASES: Dict[Tuple[str, str], Tuple[str, List[Dict[str, Any]]]] = {
    ("claude", "projects"): (f"-w-app/{SID}.jsonl", CLAUDE),
    ("codex", "live"): (f"2026/05/02/rollout-2026-05-02T08-00-00-{SID}.jsonl", CODEX),
    ("codex", "archived"): (f"rollout-2026-05-02T08-00-00-{SID}.jsonl", CODEX),
    ("copilot", "folders"): (f"{SID}/events.jsonl", COPILOT),
    ("copilot", "files"): (f"{SID}.jsonl", COPILOT),
    ("pi", "sessions"): (f"--w-app--/x_{SID}.jsonl", PI),
    ("pi", "folder"): (f"--w-app--/x_{SID}.jsonl", PI),
    ("omp", "sessions"): (f"-w-app/x_{SID}.jsonl", PI),
    ("prime-agent", "sessions"): (f"--w-app--/x_{SID}.jsonl", PI),
    ("qwen", "chats"): (f"-w-app/chats/{SID}.jsonl", QWEN),
    ("droid", "sessions"): (f"-w-app/{SID}.jsonl", DROID),
    ("droid", "projects"): (f"-w-app/{SID}.jsonl", DROID),
    ("openclaw", "sessions"): (f"main/sessions/{SID}.jsonl", PI),
    ("openclaw", "archives"): (f"main/sessions/{SID}.jsonl.full.bak", PI),
    ("kimi", "logs"): (f"0123456789abcdef0123456789abcdef/{SID}/wire.jsonl", KIMI),
    ("kimi", "code"): (f"wd_app_0123456789ab/session_{SID}/agents/main/wire.jsonl", KIMI_CODE),
    ("cursor", "transcripts"): (f"w-app/agent-transcripts/{SID}/{SID}.jsonl", CURSOR),
}
STORES = {
    (store.agent, store.name): store for agent in agents().values() for store in agent.stores if store.kind == APPEND
}

ODD = st.sampled_from([None, 7, [], {}, "", "x", [None, 3], {"type": 1}, float("nan"), "\ud800", {"text": {"text": 1}}])


@st.composite
def bent(draw: st.DrawFn, records: List[Dict[str, Any]]) -> Dict[str, Any]:
    """A record of these, or one of them with a member gone wrong, at any depth."""
    record = json.loads(json.dumps(draw(st.sampled_from(records))))
    if draw(st.integers(0, 3)) == 0:
        inner = record
        while True:
            name = draw(st.sampled_from(sorted(inner))) if inner else "type"
            if isinstance(inner.get(name), dict) and inner[name] and draw(st.booleans()):
                inner = inner[name]
                continue
            inner[name] = draw(ODD)
            break
    return dict(record)


def apply(rows: Dict[int, Message], events: Iterable[Any]) -> None:
    for event in events:
        if isinstance(event, Rewind):
            for seq in [seq for seq in rows if seq >= event.seq]:
                del rows[seq]
        else:
            assert event.text.strip() and len(event.text.encode("utf-8")) >= len(event.text)
            rows[event.seq] = event


def folded(store: Store, path: str, root: str, portions: List[List[Dict[str, Any]]]) -> Tuple[Any, ...]:
    """What the reader makes of the portions, with nothing kept between them but the file and the state as JSON."""
    rows: Dict[int, Message] = {}
    source = Source(store, os.path.dirname(root), root, path)
    make = store.load()
    reader = make(source)
    with open(path, "wb") as file:
        for portion in portions:
            reader = make(source, json.loads(json.dumps(reader.state())))
            for record in portion:
                file.write(json.dumps(record).encode() + b"\n")
            file.flush()
            os.utime(path, (1_790_000_000, 1_790_000_000))
            for record in portion:
                apply(rows, reader.feed(record))
    assert len(json.dumps(reader.state())) < 64 << 10
    return sorted(rows.items()), reader.session(), reader.unknown


def test_every_append_store_has_a_case() -> None:
    assert set(CASES) == set(STORES)
    for key, (file, _) in CASES.items():
        assert STORES[key].claim(file) == file


@pytest.mark.parametrize("key", sorted(CASES), ids="-".join)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_portions_make_no_difference(key: Tuple[str, str], data: st.DataObject) -> None:
    file, pool = CASES[key]
    records = data.draw(st.one_of(st.just(pool), st.lists(bent(pool), max_size=30)))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(records)), max_size=6)))
    bounds = [0, *cuts, len(records)]
    portions = [records[start:stop] for start, stop in zip(bounds, bounds[1:])]
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.join(folder, "root")
        path = os.path.join(root, *file.split("/"))
        os.makedirs(os.path.dirname(path))
        assert folded(STORES[key], path, root, portions) == folded(STORES[key], path, root, [records])


@pytest.mark.parametrize("key", sorted(CASES), ids="-".join)
def test_the_case_is_a_session(key: Tuple[str, str], tmp_path: Any) -> None:
    file, pool = CASES[key]
    path = os.path.join(str(tmp_path), "root", *file.split("/"))
    os.makedirs(os.path.dirname(path))
    rows, session, _ = folded(STORES[key], path, str(tmp_path / "root"), [pool])
    assert rows and session is not None and session.message_count > 0
