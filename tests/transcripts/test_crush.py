"""Crush: a database a project, found through the registry of projects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest

from relay.transcripts.types import Message, Session, Unreadable
from tests.support.transcript_sources import agent_roots, database, keys, read, sources, unknown

SCHEMA = """
    PRAGMA journal_mode = WAL;
    CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL,
        message_count INTEGER NOT NULL DEFAULT 0, summary_message_id TEXT, updated_at INTEGER NOT NULL,
        created_at INTEGER NOT NULL);
    CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL,
        parts TEXT NOT NULL DEFAULT '[]', model TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
        finished_at INTEGER, provider TEXT, is_summary_message INTEGER NOT NULL DEFAULT 0);
    CREATE INDEX idx_messages_session_id ON messages (session_id);
"""
T = 1767607200


def session(identity: str, title: str = "Untitled Session", parent: Optional[str] = None) -> Tuple[object, ...]:
    return (identity, parent, title, 0, None, T + 9, T)


def message(identity: str, of: str, role: str, *parts: Any, at: int = T, summary: int = 0) -> Tuple[object, ...]:
    found = [{"type": kind, "data": data} for kind, data in parts]
    return (identity, of, role, json.dumps(found), "m", at, at, None, "p", summary)


def words(text: str) -> Tuple[str, Dict[str, str]]:
    return ("text", {"text": text})


def register(home: Path, *projects: Dict[str, str], at: str = ".local/share/crush") -> None:
    path = home / at / "projects.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"projects": list(projects)}))


def store(folder: Path, sessions: List[Tuple[object, ...]], messages: List[Tuple[object, ...]]) -> Path:
    database(folder / "crush.db", SCHEMA, ("sessions", sessions), ("messages", messages))
    return folder / "crush.db"


def test_an_ordinary_session(tmp_path: Path) -> None:
    project = tmp_path / "code/app"
    register(tmp_path, {"path": str(project), "data_dir": str(project / ".crush")})
    call = {"id": "c1", "name": "bash", "input": '{"command": "ls"}', "finished": True}
    store(
        project / ".crush",
        [session("s1", "List files")],
        [
            message("m1", "s1", "user", words("list the files"), ("finish", {"reason": "stop"})),
            message("m2", "s1", "assistant", ("reasoning", {"thinking": "hm"}), words("Sure."), ("tool_call", call)),
            message("m3", "s1", "tool", ("tool_result", {"tool_call_id": "c1", "name": "bash", "content": "a.py"})),
            message("m4", "s1", "assistant", words("One file."), at=T + 3),
        ],
    )
    (source,) = sources("crush", tmp_path)
    assert read(source) == {
        "s1": (
            Session(
                "s1",
                "List files",
                cwd=str(project),
                created_at=T * 1000,
                updated_at=(T + 9) * 1000,
                message_count=3,
                resume="crush --session s1",
            ),
            [
                Message(0, "user", "list the files", T * 1000),
                Message(1, "assistant", "Sure.", T * 1000),
                Message(2, "tool", "bash command: ls", T * 1000),
                Message(3, "tool", "a.py", T * 1000),
                Message(4, "assistant", "One file.", (T + 3) * 1000),
            ],
        )
    }


def test_helper_sessions_attachments_and_summaries(tmp_path: Path) -> None:
    project = tmp_path / "app"
    register(tmp_path, {"path": str(project), "data_dir": ".crush"})
    picture = {"Path": "a.png", "MIMEType": "image/png", "Data": "QUJD" * 200}
    shell = {"command": "make test", "output": "2 failed", "exit_code": 1}
    store(
        project / ".crush",
        [
            session("s1"),
            session("title-s1", "Generate a title", "s1"),
            session("m2$$call_1", "Agent", "s1"),
            session("m2$$call_2", "Agent without a parent"),
            session("s2"),
        ],
        [
            message("m1", "s1", "user", words("why red?"), ("binary", picture), ("shell_command", shell)),
            message("m2", "s1", "assistant", words("what was said so far"), summary=1),
            message("m3", "s1", "assistant", ("hologram", {})),
            message("t1", "title-s1", "user", words("Generate a title")),
            message("a1", "m2$$call_1", "user", words("look into it")),
            message("a2", "m2$$call_2", "user", words("look into that")),
        ],
    )
    (source,) = sources("crush", tmp_path)
    found = read(source)
    assert {identity: head.parent_id for identity, (head, _) in found.items()} == {
        "s1": None,
        "m2$$call_1": "s1",
        "m2$$call_2": "s1",
    }
    assert (found["s1"][0].title, found["s1"][0].message_count) == ("why red?", 1)
    assert [(one.role, one.text) for one in found["s1"][1]] == [
        ("user", "why red?"),
        ("user", "[image image/png 600]"),
        ("tool", "make test"),
        ("tool", "2 failed"),
        ("system", "what was said so far"),
    ]
    assert found["m2$$call_1"][0].resume == "crush --session 'm2$$call_1'"
    assert unknown(source) == 1


def test_a_reply_that_grows_within_a_second_is_a_change(tmp_path: Path) -> None:
    register(tmp_path, {"path": str(tmp_path / "app"), "data_dir": str(tmp_path / "app/.crush")})
    rows = [message("m1", "s1", "user", words("hi")), message("m2", "s2", "user", words("ho"))]
    path = store(tmp_path / "app/.crush", [session("s1"), session("s2")], rows)
    (source,) = sources("crush", tmp_path)
    before = keys(source)
    grown = json.dumps([{"type": "text", "data": {"text": "hi there"}}])
    database(path, f"UPDATE messages SET parts = '{grown}' WHERE id = 'm1'")
    after = keys(source)
    assert (after["s1"] == before["s1"], after["s2"] == before["s2"]) == (False, True)


def test_a_data_folder_elsewhere(tmp_path: Path, home: Path) -> None:
    data = home / "crush data"
    register(home, {"path": "/w/app", "data_dir": str(data)}, {"path": "/w/gone", "data_dir": "/w/gone/.crush"})
    store(data, [session("s1")], [message("m1", "s1", "user", words("hi"))])
    (source,) = sources("crush", home)
    head, _ = read(source)["s1"]
    assert (head.cwd, head.resume) == ("/w/app", f"crush --data-dir '{data}' --session s1")


def test_where_the_registry_may_be(tmp_path: Path) -> None:
    def looked_at(variables: Dict[str, str]) -> List[str]:
        return [root.path for root in agent_roots("crush", tmp_path, variables)]

    assert looked_at({}) == []
    for number, place in enumerate((".local/share/crush", "data/crush", "global")):
        register(tmp_path, {"path": f"/w/{number}", "data_dir": f"/w/{number}/.crush"}, at=place)
    assert looked_at({}) == ["/w/0/.crush"]
    assert looked_at({"XDG_DATA_HOME": str(tmp_path / "data")}) == ["/w/1/.crush"]
    both = {"XDG_DATA_HOME": str(tmp_path / "data"), "CRUSH_GLOBAL_DATA": str(tmp_path / "global")}
    assert looked_at(both) == ["/w/2/.crush"]
    (tmp_path / "global/projects.json").write_text('{"projects": [17, {"path": "relative"}, {"path"')
    assert looked_at(both) == []


def test_a_broken_database(tmp_path: Path) -> None:
    register(tmp_path, {"path": str(tmp_path / "app"), "data_dir": ".crush"})
    path = store(tmp_path / "app/.crush", [session("s1")], [message("m1", "s1", "user", words("kept"))])
    database(
        path,
        "INSERT INTO messages (id, session_id, role, parts, created_at, updated_at)"
        f" VALUES ('x', 's1', 'user', '[', {T}, {T})",
    )
    (source,) = sources("crush", tmp_path)
    assert [one.text for one in read(source)["s1"][1]] == ["kept"] and unknown(source) == 1
    path.write_bytes(path.read_bytes()[:-700])
    with pytest.raises(Unreadable, match="cut short"):
        read(source)
