"""Codex CLI: streams that repeat each other, forks, rollbacks, old shapes, compressed files and names."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest

from relay.transcripts import codex_whole
from relay.transcripts.types import Message, Session, Unreadable
from tests.support.transcript_sources import lines, read, sources, text, unknown

T = 1_775_037_600_000  # 2026-04-01T10:00:00Z
SID = "0199a000-0000-7000-8000-000000000001"
PARENT = "01998000-0000-7000-8000-000000000009"
DAY = ".codex/sessions/2026/04/01"


def line(kind: str, payload: Dict[str, Any], second: int) -> Dict[str, Any]:
    return {"timestamp": f"2026-04-01T10:00:{second:02}.000Z", "type": kind, "payload": payload}


def meta(second: int = 0, thread: str = SID, **more: Any) -> Dict[str, Any]:
    payload = {
        "id": thread,
        "timestamp": "2026-04-01T10:00:00Z",
        "cwd": "/w/app",
        "source": "cli",
        "git": {"branch": "main"},
        **more,
    }
    return line("session_meta", payload, second)


def item(role: str, words: Any, second: int) -> Dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": words}] if isinstance(words, str) else words
    return line("response_item", {"type": "message", "role": role, "content": content}, second)


def event(kind: str, second: int, **more: Any) -> Dict[str, Any]:
    return line("event_msg", {"type": kind, **more}, second)


def rollout(thread: str = SID, suffix: str = ".jsonl") -> str:
    return f"rollout-2026-04-01T12-00-00-{thread}{suffix}"


def one(home: Path, *records: Any, below: str = DAY, thread: str = SID) -> Tuple[Session, List[Message]]:
    path = lines(home / below / rollout(thread), *records)
    (source,) = [found for found in sources("codex", home) if found.path == str(path)]
    ((session, messages),) = read(source).values()
    return session, messages


def spoken(messages: List[Message]) -> List[Tuple[str, str]]:
    return [(message.role, message.text) for message in messages]


def test_an_ordinary_thread_says_everything_once(tmp_path: Path) -> None:
    assert one(
        tmp_path,
        meta(),
        item("developer", "<permissions instructions>sandbox</permissions instructions>", 1),
        item("user", [{"type": "input_text", "text": "# AGENTS.md instructions for /w/app\n\n<INSTRUCTIONS>x"},
                      {"type": "input_text", "text": "<environment_context><cwd>/w/app</cwd></environment_context>"}],
             1),
        item("user", "add tests", 2),
        event("user_message", 2, message="add tests", images=[]),
        event("token_count", 3, info=None),
        event("agent_message", 4, message="I list first."),
        line("response_item", {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, 4),
        item("assistant", "I list first.", 4),
        line("response_item", {"type": "function_call", "name": "shell", "arguments": '{"command":["ls","-l"]}',
                               "call_id": "c1"}, 5),
        line("response_item", {"type": "function_call_output", "call_id": "c1",
                               "output": '{"output":"a.py\\n","metadata":{"exit_code":0}}'}, 6),
        line("response_item", {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch"}, 7),
        item("assistant", "Done.", 8),
    ) == (
        Session(
            SID,
            "add tests",
            cwd="/w/app",
            branch="main",
            created_at=T,
            updated_at=T + 8000,
            message_count=3,
            resume=f"codex resume {SID}",
            lineage=SID,
        ),
        [
            Message(0, "user", "add tests", T + 2000),
            Message(1, "assistant", "I list first.", T + 4000),
            Message(2, "tool", "shell command: ls -l", T + 5000),
            Message(3, "tool", "a.py\n", T + 6000),
            Message(4, "tool", "apply_patch *** Begin Patch", T + 7000),
            Message(5, "assistant", "Done.", T + 8000),
        ],
    )  # fmt: skip


def test_a_thing_said_twice_by_a_person_counts_twice(tmp_path: Path) -> None:
    both = [[item("user", "go on", n), event("user_message", n, message="go on")] for n in (1, 2, 3)]
    session, messages = one(tmp_path, meta(), *(each for pair in both for each in pair))
    assert (session.message_count, len(messages)) == (3, 3)


def test_a_stream_alone_is_enough(tmp_path: Path) -> None:
    session, messages = one(
        tmp_path, meta(), event("user_message", 1, message="only seen"), event("agent_message", 2, message="Yes.")
    )
    assert (session.title, spoken(messages)) == ("only seen", [("user", "only seen"), ("assistant", "Yes.")])


def test_paginated_threads_repeat_things_a_third_time(tmp_path: Path) -> None:
    session, messages = one(
        tmp_path,
        meta(history_mode="paginated"),
        item("user", "hello", 1),
        event("user_message", 1, message="hello"),
        event("item_completed", 1, item={"type": "UserMessage", "content": [{"type": "text", "text": "hello"}]}),
        event("item_completed", 2, item={"type": "AgentMessage", "content": [{"type": "Text", "text": "Hi."}]}),
        item("assistant", "Hi.", 2),
        event("agent_message", 2, message="Hi."),
    )
    assert (session.message_count, spoken(messages)) == (2, [("user", "hello"), ("assistant", "Hi.")])


def test_what_is_injected_around_a_prompt_is_left_out(tmp_path: Path) -> None:
    ide = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nrename it\n"
    picture = {"type": "input_image", "image_url": "data:image/png;base64,QUJDRA=="}
    session, messages = one(
        tmp_path,
        meta(),
        item("user", "<recommended_plugins>none</recommended_plugins>\nlook at <skill> tags", 1),
        item("user", ide, 2),
        event("user_message", 2, message=ide),
        item("user", [{"type": "input_text", "text": "and this"}, picture], 3),
        event("user_message", 3, message="and this", images=["data:image/png;base64,QUJDRA=="]),
        item("user", '<subagent_notification>{"agent":"x"}</subagent_notification>', 4),
        item("user", "<turn_aborted>stopped</turn_aborted>", 5),
    )
    assert (session.title, session.message_count) == ("look at <skill> tags", 3)
    assert spoken(messages) == [
        ("user", "look at <skill> tags"),
        ("user", "rename it"),
        ("user", "and this\n[image image/png 4]"),
    ]


def test_an_aborted_prompt_given_again_counts_once(tmp_path: Path) -> None:
    session, messages = one(
        tmp_path,
        meta(),
        item("user", "do it", 1),
        event("turn_aborted", 2, reason="interrupted"),
        item("user", "do it", 3),
        item("assistant", "Done.", 4),
        item("user", "do it", 5),
    )
    assert session.message_count == 3
    assert [words for _, words in spoken(messages)] == ["do it", "Done.", "do it"]


def test_a_rollback_undoes_turns(tmp_path: Path) -> None:
    turns = [item(role, f"{role} {n}", n) for n in (1, 2, 3) for role in ("user", "assistant")]
    session, messages = one(
        tmp_path, meta(), *turns, event("thread_rolled_back", 4, num_turns=2), item("user", "user 2", 5)
    )
    assert [words for _, words in spoken(messages)] == ["user 1", "assistant 1", "user 2"]
    assert session.message_count == 3
    session, messages = one(
        tmp_path, meta(), *turns, event("thread_rolled_back", 4, num_turns=9), item("user", "anew", 5), thread=PARENT
    )
    assert (session.title, spoken(messages)) == ("anew", [("user", "anew")])


def test_a_compaction_is_a_boundary_and_its_history_no_news(tmp_path: Path) -> None:
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "old words"}]}]
    _, messages = one(
        tmp_path,
        meta(),
        item("user", "old words", 1),
        line("compacted", {"message": "A summary.", "replacement_history": history}, 2),
        event("context_compacted", 2),
        item("user", "new words", 3),
    )
    assert spoken(messages) == [("user", "old words"), ("system", "A summary."), ("user", "new words")]


def test_a_fork_keeps_its_own_head_and_the_lineage_of_the_first(tmp_path: Path) -> None:
    copied = [meta(1, PARENT, cwd="/w/parent"), item("user", "the first prompt", 1)]
    session, _ = one(tmp_path, meta(1, forked_from_id=PARENT), *copied, item("user", "another way", 9))
    assert (session.session_id, session.cwd, session.title) == (SID, "/w/app", "the first prompt")
    assert (session.lineage, session.parent_id) == (PARENT, None)
    assert one(tmp_path, meta(thread=PARENT), item("user", "x", 1), thread=PARENT)[0].lineage == PARENT


def test_a_subagent_leaves_its_parents_history_to_the_parent(tmp_path: Path) -> None:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}
    session, messages = one(
        tmp_path,
        meta(1, source=spawned, thread_source="subagent", forked_from_id=PARENT),
        meta(1, PARENT),
        line("turn_context", {"turn_id": "01998000-0000-7000-8000-00000000000a", "cwd": "/w/app"}, 1),
        item("user", "the parent's prompt", 1),
        event("user_message", 1, message="the parent's prompt"),
        line("turn_context", {"turn_id": "0199a000-0001-7000-8000-00000000000b", "cwd": "/w/app"}, 1),
        item("user", "count the files", 1),
        item("assistant", "Four.", 9),
    )
    assert (session.parent_id, session.lineage, session.title) == (PARENT, None, "count the files")
    assert session.resume == f"codex resume {PARENT}"
    assert spoken(messages) == [("user", "count the files"), ("assistant", "Four.")]


def test_bare_lines_of_old_versions(tmp_path: Path) -> None:
    session, messages = one(
        tmp_path,
        {"id": SID, "timestamp": "2025-06-01T09:00:00Z", "instructions": None, "git": {"branch": "old"}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "<environment_context>\nCurrent working directory: /w/old\n"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "function_call", "name": "shell", "arguments": "{\"command\":[\"pwd\"]}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "/w/old"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "There."}]},
        {"timestamp": "2025-06-01T09:00:05Z", "type": "tool_call", "function": {"name": "git"}, "arguments": "status"},
        {"timestamp": "2025-06-01T09:00:06Z", "type": "tool_result", "name": "git", "result": "clean"},
    )  # fmt: skip
    assert (session.cwd, session.branch, session.message_count) == ("/w/old", "old", 2)
    assert spoken(messages) == [
        ("user", "hello"),
        ("tool", "shell command: pwd"),
        ("tool", "/w/old"),
        ("assistant", "There."),
        ("tool", "git status"),
        ("tool", "clean"),
    ]


def test_the_single_document_of_the_first_versions(tmp_path: Path) -> None:
    document = {
        "session": {"id": SID, "timestamp": "2025-05-01T09:00:00Z", "instructions": "", "cwd": "/w/oldest"},
        "items": [
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}], "timestamp": "2025-05-01T09:00:01Z"},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]},
        ],
    }
    path = tmp_path / ".codex/sessions" / rollout(suffix=".json")
    text(path, json.dumps(document))
    (source,) = sources("codex", tmp_path)
    ((session, messages),) = read(source).values()
    assert (session.session_id, session.cwd, session.created_at) == (SID, "/w/oldest", 1_746_090_000_000)
    assert spoken(messages) == [("user", "hi"), ("assistant", "Hello.")]
    for broken in ("{", "[]", '{"items": 3}'):
        text(path, broken)
        with pytest.raises(Unreadable):
            read(source)


def _zstd(path: Path) -> bool:
    """Compress a file in its place, if this machine can."""
    try:
        subprocess.run(["zstd", "-q", "--rm", str(path)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def test_a_compressed_rollout_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = text(tmp_path / DAY / rollout(suffix=".jsonl.zst"), "not really")
    (source,) = sources("codex", tmp_path)
    monkeypatch.setattr(codex_whole, "_decompressor", lambda: None)
    with pytest.raises(Unreadable, match="this Python cannot read it"):
        read(source)
    lines(path.with_suffix(""), meta(), item("user", "plain", 1))
    assert read(source) == {}  # Codex reads the plain file, and so do we


def test_a_compressed_rollout_is_read_through_any_decompressor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    path = tmp_path / DAY / rollout(suffix=".jsonl.zst")
    path.parent.mkdir(parents=True)
    records = [meta(), item("user", "packed", 1), item("assistant", "Yes.", 2)]
    with gzip.open(path, "wb") as file:
        file.write("".join(json.dumps(each) + "\n" for each in records).encode())
    monkeypatch.setattr(codex_whole, "_decompressor", lambda: gzip.open)
    (source,) = sources("codex", tmp_path)
    ((session, messages),) = read(source).values()
    assert (session.session_id, spoken(messages)) == (SID, [("user", "packed"), ("assistant", "Yes.")])
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(Unreadable, match="damaged"):
        read(source)


def test_real_zstd_where_this_python_has_it(tmp_path: Path) -> None:
    path = lines(tmp_path / DAY / rollout(), meta(), item("user", "packed", 1))
    able = _zstd(path) and codex_whole._decompressor() is not None
    (source,) = sources("codex", tmp_path)
    if able:
        ((session, _),) = read(source).values()
        assert session.title == "packed"
    elif str(source.path).endswith(".zst"):
        with pytest.raises(Unreadable):
            read(source)


def _named(home: Path, thread: str = SID) -> Optional[str]:
    (source,) = [found for found in sources("codex", home) if thread in found.path]
    return read(source)[thread][0].title


def test_the_name_a_person_gave(tmp_path: Path) -> None:
    home = tmp_path / ".codex"
    lines(tmp_path / DAY / rollout(), meta(thread_name="From the head"), item("user", "words", 1))
    assert _named(tmp_path) == "From the head"
    with closing(sqlite3.connect(home / "state_4.sqlite")) as old:
        old.execute("CREATE TABLE threads (id TEXT, title TEXT, first_user_message TEXT)")
        old.execute("INSERT INTO threads VALUES (?, 'Stale', 'words')", (SID,))
        old.commit()
    with closing(sqlite3.connect(home / "state_12.sqlite")) as state:
        state.execute("CREATE TABLE threads (id TEXT, title TEXT, first_user_message TEXT)")
        state.execute("INSERT INTO threads VALUES (?, 'From the state', 'words')", (SID,))
        state.commit()
        assert _named(tmp_path) == "From the state"
        state.execute("UPDATE threads SET title = 'words'")
        state.commit()
    assert _named(tmp_path) == "From the head"
    lines(home / "session_index.jsonl", {"id": SID, "thread_name": "Once"}, {"id": SID, "thread_name": " Last  one "})
    assert _named(tmp_path) == "Last one"
    before = sorted(os.listdir(home))
    lines(home / "session_index.jsonl", {"id": SID, "thread_name": "Once"}, {"id": SID, "thread_name": ""})
    assert _named(tmp_path) == "From the head"
    assert sorted(os.listdir(home)) == before


def test_archived_threads_rank_behind_and_cannot_be_resumed(tmp_path: Path) -> None:
    session, _ = one(tmp_path, meta(), item("user", "old", 1), below=".codex/archived_sessions")
    assert session.resume is None
    lines(tmp_path / DAY / rollout(), meta(), item("user", "live", 1))
    ranks = {found.store.name: found.store.rank for found in sources("codex", tmp_path)}
    assert ranks["live"] > ranks["archived"]


def test_a_broken_rollout_gives_what_can_be_read(tmp_path: Path) -> None:
    path = lines(
        tmp_path / DAY / rollout("not-a-uuid"),
        meta(thread="from-the-head", git="none", source={"subagent": "review"}),
        "{broken",
        line("response_item", {"type": "message", "role": "user"}, 1),
        {"type": "response_item", "payload": 7},
        event("a_new_event", 2),
        line("a_new_line", {}, 2),
        item("user", "still here", 3),
        event("thread_rolled_back", 4, num_turns="many"),
    )
    (source,) = sources("codex", tmp_path)
    assert source.path == str(path)
    ((session, messages),) = read(source).values()
    assert (session.session_id, spoken(messages)) == ("from-the-head", [("user", "still here")])
    assert unknown(source) == 3
