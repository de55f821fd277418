"""Kimi Code: one log for each agent of a session, in which prompts stand twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

from relay.transcripts.types import Message, Session
from tests.support.transcript_sources import document, lines, read, sources, unknown

SID = "session_0a1b2c3d-0000-4000-8000-000000000001"
T = 1_784_950_605_000


def prompt(words: str, after: int, kind: str = "turn.prompt", origin: str = "user") -> Dict[str, Any]:
    return {"type": kind, "input": [{"type": "text", "text": words}], "origin": {"kind": origin}, "time": T + after}


def appended(words: str, after: int, origin: str = "user") -> Dict[str, Any]:
    message = {"role": "user", "content": [{"type": "text", "text": words}], "origin": {"kind": origin}}
    return {"type": "context.append_message", "message": message, "time": T + after}


def loop(after: int, kind: str, **more: Any) -> Dict[str, Any]:
    return {"type": "context.append_loop_event", "event": {"type": kind, **more}, "time": T + after}


def part(words: str, after: int, kind: str = "text") -> Dict[str, Any]:
    return loop(after, "content.part", part={"type": kind, kind: words})


def wire(home: Path, *records: Any, agent: str = "main") -> None:
    folder = home / ".kimi-code/sessions/wd_app_0123456789ab" / SID / "agents" / agent
    lines(folder / "wire.jsonl", {"type": "metadata", "protocol_version": "1.4", "created_at": T}, *records)


def state(home: Path, **more: Any) -> None:
    agents = {"main": {"type": "main", "parentAgentId": None}, "agent-0": {"type": "sub", "parentAgentId": "main"}}
    document(home / ".kimi-code/sessions/wd_app_0123456789ab" / SID / "state.json", {"agents": agents, **more})


def test_an_ordinary_session(tmp_path: Path) -> None:
    wire(
        tmp_path,
        {"type": "config.update", "cwd": "/w/app", "time": T},
        prompt("list files", 1000),
        appended("list files", 1001),
        loop(1002, "step.begin", step=1),
        part("secret thought", 2000, "think"),
        part("Looking.", 2001),
        loop(2002, "tool.call", toolCallId="b", name="Bash", args={"command": "ls"}),
        loop(2003, "tool.result", toolCallId="b", result={"output": "a.py\n"}),
        loop(2004, "step.end", usage={}),
        {"type": "usage.record", "model": "k", "usage": {}, "time": T + 2004},
        loop(2005, "step.begin", step=2),
        part("There is a.py.", 3000),
        loop(3001, "step.end", usage={}),
    )
    state(tmp_path, title="Files of the app", lastPrompt="list files")
    (source,) = sources("kimi", tmp_path)
    assert read(source) == {
        SID: (
            Session(
                SID,
                "Files of the app",
                cwd="/w/app",
                created_at=T,
                updated_at=T + 3001,
                message_count=3,
                resume=f"kimi --session {SID}",
            ),
            [
                Message(0, "user", "list files", T + 1000),
                Message(1, "assistant", "Looking.", T + 2001),
                Message(2, "tool", "Bash command: ls", T + 2002),
                Message(3, "tool", "a.py\n", T + 2003),
                Message(4, "assistant", "There is a.py.", T + 3000),
            ],
        )
    }
    assert unknown(source) == 0


def test_each_prompt_is_taken_once(tmp_path: Path) -> None:
    """A steering prompt reaches the model's history later, or never; the same words may be said twice."""
    wire(
        tmp_path,
        prompt("hi", 1),
        appended("hi", 2),
        prompt("stop", 3, "turn.steer"),
        {"type": "turn.cancel", "time": T + 4},
        prompt("hi", 5),
        appended("hi", 6),
        appended("stop", 7),
        appended("only in the history", 8),
        prompt("never sent", 9, "turn.steer"),
    )
    (source,) = sources("kimi", tmp_path)
    ((session, messages),) = read(source).values()
    assert [one.text for one in messages] == ["hi", "stop", "hi", "only in the history", "never sent"]
    assert session.message_count == 5


def test_a_session_without_a_title_of_its_own(tmp_path: Path) -> None:
    wire(tmp_path, prompt("/init", 1), part("Done.", 2))
    state(tmp_path, title="New Session", lastPrompt="/init")
    (source,) = sources("kimi", tmp_path)
    ((session, _),) = read(source).values()
    assert session.title == "/init"


def test_undone_turns_are_gone(tmp_path: Path) -> None:
    """The last turns that the user began, a steering prompt with its turn, and none behind a compaction."""
    undo = {"type": "context.undo", "agentId": "main"}
    wire(
        tmp_path,
        prompt("one", 1),
        appended("one", 1),
        part("first", 2),
        {"type": "context.apply_compaction", "summary": "one", "time": T + 3},
        prompt("two", 4),
        part("second", 5),
        prompt("three", 6),
        part("third", 7),
        prompt("faster", 8, "turn.steer"),
        part("thirdly", 9),
        {**undo, "count": 1},
        {**undo, "count": "?"},
        prompt("four", 10),
        part("fourth", 11),
        {**undo, "count": 9},
        prompt("five", 12),
    )
    (source,) = sources("kimi", tmp_path)
    ((session, messages),) = read(source).values()
    assert [one.text for one in messages] == ["one", "first", "five"]
    assert session.message_count == 3


def test_forks_share_their_lineage(tmp_path: Path) -> None:
    folder = tmp_path / ".kimi-code/sessions/wd_app_0123456789ab"
    for name, origin in (("session_a", None), ("session_b", "session_a"), ("session_c", "session_b")):
        lines(folder / name / "agents/main/wire.jsonl", prompt("hello", 1))
        document(folder / name / "state.json", {"title": name, "cwd": "/w/app", "forkedFrom": origin})
    found = {name: session for one in sources("kimi", tmp_path) for name, (session, _) in read(one).items()}
    assert [session.lineage for _, session in sorted(found.items())] == [None, "session_a", "session_a"]
    assert found["session_c"].cwd == "/w/app"


def test_the_program_is_not_the_user(tmp_path: Path) -> None:
    wire(
        tmp_path,
        appended("<system-reminder>plan mode</system-reminder>", 1, "injection"),
        prompt("task 3 has ended", 2, origin="system_trigger"),
        appended("task 3 has ended", 3, "system_trigger"),
        prompt("go on", 4),
        {"type": "context.apply_compaction", "summary": "long ago", "time": T + 5},
    )
    (source,) = sources("kimi", tmp_path)
    ((session, messages),) = read(source).values()
    assert [(one.role, one.text) for one in messages] == [("system", "task 3 has ended"), ("user", "go on")]
    assert (session.title, session.message_count) == ("go on", 1)


def test_subagents_name_their_session(tmp_path: Path) -> None:
    task = "<git-context>\nbranch main\n</git-context>\n\nCount the files"
    wire(tmp_path, prompt("count", 1), part("Done.", 9))
    wire(
        tmp_path,
        prompt(task, 2, origin="system_trigger"),
        appended(task, 3, "system_trigger"),
        loop(4, "tool.call", name="Glob", args={"pattern": "*"}),
        loop(5, "tool.result", result={"isError": True, "message": "too many"}),
        part("There are 7.", 6),
        agent="agent-0",
    )
    state(tmp_path, workDir="/w/app", title="Counting")
    child, main = sources("kimi", tmp_path)
    ((session, messages),) = read(child).values()
    assert session == Session(
        f"{SID}/agent-0",
        "Count the files",
        cwd="/w/app",
        created_at=T,
        updated_at=T + 6,
        message_count=2,
        resume=f"kimi --session {SID}",
        parent_id=SID,
    )
    assert [one.text for one in messages] == ["Count the files", "Glob pattern: *", "too many", "There are 7."]
    ((session, _),) = read(main).values()
    assert (session.session_id, session.parent_id, session.title) == (SID, None, "Counting")


def test_the_index_knows_the_folder(tmp_path: Path) -> None:
    home = tmp_path / "kimi home"
    folder = home / "sessions/wd_x" / SID / "agents/main"
    lines(folder / "wire.jsonl", prompt("hello", 1))
    index = ({"sessionId": SID, "workDir": "/w/old"}, {"sessionId": "other"}, {"sessionId": SID, "workDir": "/w/new"})
    lines(home / "session_index.jsonl", *index)
    (source,) = sources("kimi", tmp_path, {"KIMI_CODE_HOME": str(home)})
    ((session, _),) = read(source).values()
    assert (session.cwd, session.resume) == ("/w/new", f"KIMI_CODE_HOME='{home}' kimi --session {SID}")


def test_a_broken_log_gives_what_it_can(tmp_path: Path) -> None:
    wire(
        tmp_path,
        "{torn",
        prompt("hello", 1),
        {"type": "telepathy.begin", "time": T},
        loop(2, "telepathy"),
        loop(3, "tool.call", name=7, args=None),
        loop(4, "tool.result", result="plain"),
        {"type": "turn.prompt", "input": None, "origin": None},
    )
    (source,) = sources("kimi", tmp_path)
    ((_, messages),) = read(source).values()
    assert [one.text for one in messages] == ["hello", "plain"]
    assert unknown(source) == 2


def test_a_session_in_which_nothing_was_said_is_left_out(tmp_path: Path) -> None:
    wire(tmp_path, {"type": "config.update", "cwd": "/w/app"})
    (source,) = sources("kimi", tmp_path)
    assert read(source) == {}
