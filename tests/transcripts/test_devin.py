"""Devin CLI: its tree of nodes, and transcripts in three spellings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.transcripts.devin import kept
from relay.transcripts.types import Message, Session, Unreadable
from tests.support.transcript_sources import database, keys, read, sources, unknown

SCHEMA = """
    PRAGMA journal_mode = WAL;
    CREATE TABLE sessions (id TEXT PRIMARY KEY, title TEXT, working_directory TEXT, model TEXT, created_at INTEGER,
        last_activity_at INTEGER, hidden INTEGER NOT NULL DEFAULT 0, metadata TEXT);
    CREATE TABLE message_nodes (row_id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
        node_id INTEGER NOT NULL, parent_node_id INTEGER, chat_message TEXT NOT NULL, created_at INTEGER NOT NULL);
"""
T = 1767607200
HOME = ".local/share/devin/cli"
CALL = {"id": "c1", "function": {"name": "exec", "arguments": '{"cmd": "ls"}'}}


def node(
    number: int, parent: Any, role: str, content: Any, of: str = "calm-otter", **more: Any
) -> Tuple[object, ...]:
    return (number, of, number, parent, json.dumps({"role": role, "content": content, **more}), T + number)


def store(home: Path, sessions: List[Tuple[object, ...]], nodes: List[Tuple[object, ...]]) -> Path:
    path = home / HOME / "sessions.db"
    database(path, SCHEMA, ("sessions", sessions), ("message_nodes", nodes))
    return path


SESSION = ("calm-otter", "List things", "/w/app", "m", T, T + 50, 0, "{}")


def test_an_ordinary_session(tmp_path: Path) -> None:
    nodes = [
        node(1, None, "system", "You are Devin."),
        node(2, 1, "user", "list the files"),
        node(3, 2, "assistant", "Listing.", thinking="hm", tool_calls=[CALL]),
        node(4, 3, "tool", "a.py", tool_call_id="c1"),
        node(5, 4, "assistant", [{"type": "text", "text": "One file."}]),
    ]
    store(tmp_path, [SESSION], nodes)
    (source,) = sources("devin", tmp_path)
    assert read(source) == {
        "calm-otter": (
            Session(
                "calm-otter",
                "List things",
                cwd="/w/app",
                created_at=T * 1000,
                updated_at=(T + 50) * 1000,
                message_count=3,
                resume="devin --resume calm-otter",
            ),
            [
                Message(0, "user", "list the files", (T + 2) * 1000),
                Message(1, "assistant", "Listing.", (T + 3) * 1000),
                Message(2, "tool", "exec cmd: ls", (T + 3) * 1000),
                Message(3, "tool", "a.py", (T + 4) * 1000),
                Message(4, "assistant", "One file.", (T + 5) * 1000),
            ],
        )
    }


def test_abandoned_branches_and_hidden_sessions_are_left_out(tmp_path: Path) -> None:
    nodes = [
        node(1, None, "user", "start"),
        node(2, 1, "assistant", "abandoned answer"),
        node(3, 2, "user", "abandoned question"),
        node(4, 1, "assistant", "kept answer"),
        node(5, None, "user", "after a compaction"),
        node(6, 99, "assistant", "whose parent is gone"),
        node(7, 4, "user", "kept question", metadata={"is_user_input": True}),
        node(8, 7, "user", "said in the person's name", metadata={"is_user_input": False}),
        node(9, None, "user", "secret", of="hidden-one"),
    ]
    path = store(tmp_path, [SESSION, ("hidden-one", None, "/", "m", T, T, 1, None)], nodes)
    (source,) = sources("devin", tmp_path)
    found = read(source)
    assert list(found) == ["calm-otter"]
    assert [(one.role, one.text) for one in found["calm-otter"][1]] == [
        ("user", "start"),
        ("assistant", "kept answer"),
        ("user", "after a compaction"),
        ("assistant", "whose parent is gone"),
        ("user", "kept question"),
        ("system", "said in the person's name"),
    ]
    before = keys(source)
    database(path, "", ("message_nodes", [node(10, 7, "assistant", "more")]))
    assert keys(source) != before


def test_a_broken_node_and_a_broken_database(tmp_path: Path) -> None:
    path = store(tmp_path, [SESSION], [node(1, None, "user", "kept")])
    database(path, "INSERT INTO message_nodes VALUES (2, 'calm-otter', 2, 1, '{torn', 0)")
    (source,) = sources("devin", tmp_path)
    assert [one.text for one in read(source)["calm-otter"][1]] == ["kept"]
    assert unknown(source) == 1
    database(path, "DROP TABLE message_nodes")
    with pytest.raises(Unreadable, match="no table message_nodes"):
        read(source)


def write(home: Path, value: Any, name: str = "transcripts/bold-crow.json") -> None:
    path = home / HOME / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


SHAPES: Dict[str, Any] = {
    "tool_use and tool_result": {
        "session_id": "bold-crow",
        "agent": {"model_name": "m"},
        "workspace_dirs": ["/w/atif"],
        "created_at": T,
        "updated_at": T + 9,
        "steps": [
            {"step_id": 1, "source": "system", "message": "rules"},
            {"step_id": 2, "source": "user", "timestamp": "2026-01-05T10:00:01Z", "message": "count them"},
            {
                "step_id": 3,
                "source": "agent",
                "timestamp": "2026-01-05T10:00:02Z",
                "message": [{"type": "text", "text": "Counting."}],
                "tool_use": [{"name": "exec", "input": {"cmd": "wc"}}],
                "tool_result": [{"tool_use_id": "x", "content": "3"}],
            },
        ],
    },
    "metadata tells the person": {
        "cwd": "/w/atif",
        "steps": [
            {"role": "system", "message": {"content": "rules"}, "metadata": {"created_at": T}},
            {"message": {"text": "count them"}, "metadata": {"is_user_input": True, "created_at": T + 1}},
            {
                "role": "assistant",
                "message": {"content": "Counting."},
                "metadata": {"created_at": T + 2, "generation_model": "m"},
                "tool_calls": [{"name": "exec", "arguments": {"cmd": "wc"}}],
            },
            {"role": "tool", "message": {"content": "3"}, "metadata": {"created_at": T + 2}},
        ],
        "updated_at": "2026-01-05T10:00:09Z",
        "created_at": "2026-01-05T10:00:00Z",
    },
    "function calls and observations": {
        "schema_version": "ATIF-v1.4",
        "session_id": "bold-crow",
        "working_directory": "/w/atif",
        "created_at": T,
        "updated_at": T + 9,
        "steps": [
            {"step_id": 1, "source": "user", "timestamp": "2026-01-05T10:00:01Z", "message": "count them"},
            {
                "step_id": 2,
                "source": "agent",
                "timestamp": "2026-01-05T10:00:02Z",
                "message": "Counting.",
                "tool_calls": [{"tool_call_id": "c", "function_name": "exec", "arguments": {"cmd": "wc"}}],
                "observation": {"results": [{"source_call_id": "c", "content": "3"}]},
            },
        ],
    },
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_transcript_in_each_spelling(tmp_path: Path, shape: str) -> None:
    write(tmp_path, SHAPES[shape])
    (source,) = sources("devin", tmp_path)
    assert read(source) == {
        "bold-crow": (
            Session(
                "bold-crow",
                "count them",
                cwd="/w/atif",
                created_at=T * 1000,
                updated_at=(T + 9) * 1000,
                message_count=2,
                resume="devin --resume bold-crow",
            ),
            [
                Message(0, "user", "count them", (T + 1) * 1000),
                Message(1, "assistant", "Counting.", (T + 2) * 1000),
                Message(2, "tool", "exec cmd: wc", (T + 2) * 1000),
                Message(3, "tool", "3", (T + 2) * 1000),
            ],
        )
    }


def test_the_database_names_a_transcript_and_may_hide_it(tmp_path: Path) -> None:
    write(tmp_path, {"steps": [{"source": "user", "message": "shown"}]}, "agent_logs/calm-otter.json")
    write(tmp_path, {"steps": [{"source": "user", "message": "hidden"}]}, "transcripts/hidden-one.json")
    store(tmp_path, [SESSION, ("hidden-one", None, "/", "m", T, T, 1, None)], [])
    found = {identity: head for source in sources("devin", tmp_path) for identity, (head, _) in read(source).items()}
    assert [(head.title, head.cwd) for head in found.values()] == [("List things", "/w/app")]


def test_a_torn_transcript_and_an_own_home(tmp_path: Path) -> None:
    database(
        tmp_path / "d v/sessions.db", SCHEMA, ("sessions", [SESSION]), ("message_nodes", [node(1, None, "user", "x")])
    )
    (source,) = sources("devin", tmp_path, {"DEVIN_HOME": str(tmp_path / "d v")})
    assert read(source)["calm-otter"][0].resume == f"DEVIN_HOME='{tmp_path}/d v' devin --resume calm-otter"
    write(tmp_path, '{"session_id": "x", "steps": [{"source": "us')
    (source,) = sources("devin", tmp_path)
    with pytest.raises(Unreadable):
        read(source)
    mac = tmp_path / "Library/Application Support/devin/sessions.db"
    database(mac, SCHEMA)
    assert str(mac) in [one.path for one in sources("devin", tmp_path, platform="darwin")]


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["", *"abcdefghi"])), max_size=12))
def test_the_newest_node_is_always_shown_and_any_graph_ends(nodes: List[Tuple[str, str]]) -> None:
    once = list(dict(nodes).items())
    shown = kept(once)
    assert shown <= {node for node, _ in once}
    assert not once or _in_circle(dict(once), once[-1][0]) or once[-1][0] in shown


def _in_circle(parents: Dict[str, str], node: str) -> bool:
    seen = set()
    while node in parents and node not in seen:
        seen.add(node)
        node = parents[node]
    return node in seen


def test_a_step_that_names_nobody_is_the_agent_s(tmp_path: Path) -> None:
    steps = [
        {"message": {"content": "count them"}, "metadata": {"is_user_input": True}},
        {"message": {"text": "Three."}, "metadata": {"created_at": "2026-01-05T10:00:02Z"}},
        {"metadata": {"created_at": "2026-01-05T10:00:03Z"}},
    ]
    write(tmp_path, {"steps": steps})
    (source,) = sources("devin", tmp_path)
    ((session, messages),) = read(source).values()
    assert [(one.role, one.text) for one in messages] == [("user", "count them"), ("assistant", "Three.")]
    assert session.message_count == 2 and unknown(source) == 1


def test_an_own_data_folder_is_named_in_the_command(tmp_path: Path) -> None:
    for place, platform, variables, named in (
        ("data/devin/cli", "linux", {"XDG_DATA_HOME": str(tmp_path / "data")}, f"XDG_DATA_HOME={tmp_path}/data "),
        ("own", "linux", {"DEVIN_HOME": str(tmp_path / "own")}, f"DEVIN_HOME={tmp_path}/own "),
        ("Library/Application Support/devin/cli", "darwin", {}, ""),
        (HOME, "linux", {}, ""),
    ):
        path = tmp_path / place / "transcripts/a.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"steps": [{"source": "user", "message": "hello"}]}))
        (source,) = [one for one in sources("devin", tmp_path, variables, platform) if one.path == str(path)]
        ((session, _),) = read(source).values()
        assert session.resume == f"{named}devin --resume a"
