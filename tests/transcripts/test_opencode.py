"""OpenCode: what its database and its older tree of files hold."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any, List, Tuple

import pytest

from relay.transcripts import opencode
from relay.transcripts.types import Message, Session, Unreadable
from tests.support.transcript_sources import database, keys, read, sources, unknown

SCHEMA = """
    PRAGMA journal_mode = WAL;
    CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL, vcs text, name text, time_created integer,
        time_updated integer);
    CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text,
        directory text NOT NULL, title text NOT NULL, version text, share_url text, revert text, permission text,
        time_created integer NOT NULL, time_updated integer NOT NULL, time_compacting integer, time_archived integer);
    CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
        time_updated integer NOT NULL, data text NOT NULL);
    CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
        time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
    CREATE INDEX message_session_idx ON message (session_id);
    CREATE INDEX part_message_idx ON part (message_id);
    CREATE INDEX part_session_idx ON part (session_id);
"""
T = 1767607200000


def session(
    identity: str,
    title: str = "",
    parent: Any = None,
    revert: Any = None,
    directory: str = "/w/app",
    at: int = T,
    project: str = "p1",
) -> Tuple[object, ...]:
    title = title or "New session - 2026-01-05T10:00:00.000Z"
    return (
        identity,
        project,
        parent,
        "slug",
        directory,
        title,
        "1.2.0",
        None,
        revert,
        None,
        at,
        at + 9000,
        None,
        None,
    )


def message(identity: str, of: str, at: int, **data: Any) -> Tuple[object, ...]:
    return (identity, of, at, at, json.dumps({"time": {"created": at}, **data}))


def part(identity: str, of: str, in_session: str, at: int, **data: Any) -> Tuple[object, ...]:
    return (identity, of, in_session, at, at, json.dumps(data))


def store(
    home: Path, *rows: Tuple[str, List[Tuple[object, ...]]], name: str = "opencode.db", schema: str = SCHEMA
) -> Path:
    path = home / ".local/share/opencode" / name
    database(path, schema, *rows)
    return path


def test_an_ordinary_session(tmp_path: Path) -> None:
    store(
        tmp_path,
        ("project", [("p1", "/w", "git", None, T, T)]),
        ("session", [session("ses_1", "Fix the parser")]),
        (
            "message",
            [
                message("msg_1", "ses_1", T + 1000, role="user", agent="build"),
                message("msg_2", "ses_1", T + 2000, role="assistant", parentID="msg_1", modelID="m"),
            ],
        ),
        (
            "part",
            [
                part("prt_1", "msg_1", "ses_1", T + 1000, type="text", text="the parser drops commas"),
                part("prt_2", "msg_2", "ses_1", T + 2000, type="step-start"),
                part(
                    "prt_3", "msg_2", "ses_1", T + 2100, type="reasoning", text="look first", time={"start": T + 2100}
                ),
                part(
                    "prt_4",
                    "msg_2",
                    "ses_1",
                    T + 2200,
                    type="tool",
                    callID="call_1",
                    tool="bash",
                    state={
                        "status": "completed",
                        "input": {"command": "rg comma src"},
                        "output": "src/lexer.py:12",
                        "metadata": {"exit": 0},
                        "time": {"start": T + 2200, "end": T + 2300},
                    },
                ),
                part(
                    "prt_5",
                    "msg_2",
                    "ses_1",
                    T + 2400,
                    type="text",
                    text="The lexer skips it.",
                    time={"start": T + 2400},
                ),
                part("prt_6", "msg_2", "ses_1", T + 2500, type="step-finish", reason="stop", cost=0),
            ],
        ),
    )
    (source,) = sources("opencode", tmp_path)
    assert read(source) == {
        "ses_1": (
            Session(
                "ses_1",
                "Fix the parser",
                cwd="/w/app",
                created_at=T,
                updated_at=T + 9000,
                message_count=2,
                resume="opencode --session ses_1",
            ),
            [
                Message(0, "user", "the parser drops commas", T + 1000),
                Message(1, "tool", "bash command: rg comma src", T + 2200),
                Message(2, "tool", "src/lexer.py:12", T + 2300),
                Message(3, "assistant", "The lexer skips it.", T + 2400),
            ],
        )
    }
    assert unknown(source) == 0


def test_what_is_undone_synthetic_or_a_default_title_is_not_shown(tmp_path: Path) -> None:
    image = "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 40).decode()
    store(
        tmp_path,
        ("project", [("global", "/", None, None, T, T)]),
        (
            "session",
            [
                session(
                    "ses_1",
                    revert=json.dumps({"messageID": "msg_3", "snapshot": "x"}),
                    directory="",
                    project="global",
                )
            ],
        ),
        (
            "message",
            [
                message("msg_1", "ses_1", T + 1, role="user", summary={"title": "x", "diffs": []}),
                message("msg_2", "ses_1", T + 2, role="assistant", summary=True),
                message("msg_3", "ses_1", T + 3, role="user"),
                message("msg_4", "ses_1", T + 4, role="assistant"),
                message("msg_0", "ses_1", T, role="moderator"),
            ],
        ),
        (
            "part",
            [
                part("prt_1", "msg_1", "ses_1", T, type="text", text="<file>secret plan</file>", synthetic=True),
                part("prt_2", "msg_1", "ses_1", T, type="text", text="what is in the picture?"),
                part("prt_3", "msg_1", "ses_1", T, type="text", text="dropped", ignored=True),
                part("prt_4", "msg_1", "ses_1", T, type="file", mime="image/png", filename="a.png", url=image),
                part("prt_5", "msg_2", "ses_1", T, type="text", text="summary of it all"),
                part("prt_6", "msg_3", "ses_1", T, type="text", text="undone question"),
                part("prt_7", "msg_4", "ses_1", T, type="text", text="undone answer"),
                part("prt_8", "msg_1", "ses_1", T, type="hologram", text="of a later version"),
            ],
        ),
    )
    (source,) = sources("opencode", tmp_path)
    ((head, messages),) = read(source).values()
    assert (head.title, head.cwd, head.message_count) == ("what is in the picture?", None, 1)
    assert [(one.role, one.text) for one in messages] == [
        ("user", "what is in the picture?"),
        ("user", "[image image/png 10240]"),
        ("system", "summary of it all"),
    ]
    assert unknown(source) == 2


def test_children_name_the_session_at_the_top_and_forks_the_one_they_copy(tmp_path: Path) -> None:
    def said(of: str, at: int) -> Tuple[Tuple[object, ...], Tuple[object, ...]]:
        return (
            message(f"msg_{of}", of, at, role="user"),
            part(f"prt_{of}", f"msg_{of}", of, at, type="text", text=f"in {of}"),
        )

    said_in = [said("ses_a", T + 5), said("ses_b", T + 20), said("ses_c", T + 30), said("ses_fork", T + 5)]
    store(
        tmp_path,
        (
            "session",
            [
                session("ses_a", "Top"),
                session("ses_b", "Child session - 2026-01-05T10:00:00.000Z", parent="ses_a"),
                session("ses_c", "Grandchild", parent="ses_b"),
                session("ses_fork", "Top (fork #1)", at=T + 5000),
                session("ses_empty", "Opened and closed"),
            ],
        ),
        ("message", [one for one, _ in said_in]),
        ("part", [one for _, one in said_in]),
    )
    (source,) = sources("opencode", tmp_path)
    found = {identity: (head.parent_id, head.lineage, head.title) for identity, (head, _) in read(source).items()}
    assert found == {
        "ses_a": (None, None, "Top"),
        "ses_b": ("ses_a", None, "in ses_b"),
        "ses_c": ("ses_a", None, "Grandchild"),
        "ses_fork": (None, "ses_a", "Top (fork #1)"),
    }


def test_a_key_changes_with_its_own_session_alone(tmp_path: Path) -> None:
    rows = [f"ses_{number}" for number in range(3)]
    path = store(
        tmp_path,
        ("session", [session(one, one) for one in rows]),
        ("message", [message(f"msg_{one}", one, T, role="user") for one in rows]),
        ("part", [part(f"prt_{one}", f"msg_{one}", one, T, type="text", text=one) for one in rows]),
    )
    (source,) = sources("opencode", tmp_path)
    before = keys(source)
    changes = [
        f"UPDATE part SET data = '{{}}', time_updated = {T + 99} WHERE id = 'prt_ses_1'",
        f"UPDATE message SET time_updated = {T + 99} WHERE id = 'msg_ses_1'",
        "DELETE FROM part WHERE id = 'prt_ses_1'",
        "DELETE FROM message WHERE id = 'msg_ses_1'",
        "UPDATE session SET title = 'renamed' WHERE id = 'ses_1'",
        "UPDATE session SET revert = '{}' WHERE id = 'ses_1'",
    ]
    for change in changes:
        database(path, change)
        after = keys(source)
        assert {one for one in rows if after[one] != before[one]} == {"ses_1"}, change
        before = after
    assert keys(source) == before


def test_a_quiet_session_of_a_big_database_is_not_looked_at_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opencode, "BIG", 0)
    path = store(
        tmp_path,
        ("session", [session("ses_old", at=T - 10 * opencode.QUIET), session("ses_new")]),
        ("message", [message("msg_1", "ses_old", T, role="user"), message("msg_2", "ses_new", T, role="user")]),
        (
            "part",
            [part("prt_1", "msg_1", "ses_old", T, type="text"), part("prt_2", "msg_2", "ses_new", T, type="text")],
        ),
    )
    (source,) = sources("opencode", tmp_path)
    first = keys(source)
    database(path, f"UPDATE part SET time_updated = {T + 7}")
    with opencode.OpenCodeDatabase(source) as reader:
        second = dict(reader.sessions(first))
        assert second["ses_old"] == first["ses_old"] and second["ses_new"] != first["ses_new"]
        assert dict(reader.sessions())["ses_old"] != first["ses_old"]
    database(path, f"INSERT INTO message VALUES ('msg_9', 'ses_old', {T}, {T}, '{{}}')")
    with opencode.OpenCodeDatabase(source) as reader:
        assert dict(reader.sessions(first))["ses_old"] != first["ses_old"]


def test_channels_and_a_named_database_are_found_and_others_beside_it_are_not_taken_for_one(tmp_path: Path) -> None:
    rows = [
        ("session", [session("ses_1")]),
        ("message", [message("msg_1", "ses_1", T, role="user")]),
        ("part", [part("prt_1", "msg_1", "ses_1", T, type="text", text="hello")]),
    ]
    store(tmp_path, *rows, name="opencode-nightly.db")
    database(tmp_path / "work dir/mine.db", SCHEMA, *rows)
    database(tmp_path / "work dir/recipes.db", "CREATE TABLE recipe (id)")
    variables = {"OPENCODE_DB": str(tmp_path / "work dir/mine.db")}
    found = [(os.path.basename(one.path), list(read(one))) for one in sources("opencode", tmp_path, variables)]
    assert found == [("opencode-nightly.db", ["ses_1"]), ("mine.db", ["ses_1"]), ("recipes.db", [])]


def test_an_own_data_folder_is_named_in_the_command(tmp_path: Path) -> None:
    database(
        tmp_path / "my data/opencode/opencode.db",
        SCHEMA,
        ("session", [session("ses_1")]),
        ("message", [message("msg_1", "ses_1", T, role="user")]),
        ("part", [part("prt_1", "msg_1", "ses_1", T, type="text", text="hello")]),
    )
    (source,) = sources("opencode", tmp_path, {"XDG_DATA_HOME": str(tmp_path / "my data")})
    ((head, _),) = read(source).values()
    assert head.resume == f"XDG_DATA_HOME='{tmp_path}/my data' opencode --session ses_1"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"not a database at all, but long enough to be read as one" * 40, "The file is not a SQLite database."),
        (b"SQLite format 3\0" + bytes(200), None),
    ],
)
def test_a_broken_database_gives_a_reason(tmp_path: Path, content: bytes, reason: Any) -> None:
    path = tmp_path / ".local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    (source,) = sources("opencode", tmp_path)
    with pytest.raises(Unreadable) as caught:
        read(source)
    assert reason is None or caught.value.reason == reason


def test_a_database_of_another_schema_is_told_apart_from_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / ".local/share/opencode/opencode.db"
    database(path, "CREATE TABLE session (id); CREATE TABLE message (id, session_id, body)")
    (source,) = sources("opencode", tmp_path)
    with pytest.raises(
        Unreadable, match="The table message has no column data: not a format of OpenCode known here."
    ):
        read(source)
    path.unlink()
    database(path, "VACUUM")
    assert read(source) == {}
    path.write_bytes(b"")
    with pytest.raises(Unreadable, match="The database file is empty."):
        read(source)


def test_a_broken_row_costs_that_row(tmp_path: Path) -> None:
    store(
        tmp_path,
        ("session", [session("ses_1", "Torn")]),
        ("message", [message("msg_1", "ses_1", T, role="user"), ("msg_2", "ses_1", T, T, "{torn")]),
        (
            "part",
            [
                part("prt_1", "msg_1", "ses_1", T, type="text", text="kept"),
                ("prt_2", "msg_1", "ses_1", T, T, b"\xff\xfe"),
            ],
        ),
    )
    (source,) = sources("opencode", tmp_path)
    ((head, messages),) = read(source).values()
    assert [one.text for one in messages] == ["kept"] and head.message_count == 1
    assert unknown(source) == 2


def tree(home: Path, files: "dict[str, Any]") -> None:
    for name, value in files.items():
        path = home / ".local/share/opencode/storage" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))


TREE = {
    "project/p1.json": {"id": "p1", "worktree": "/w/tree", "time": {"created": T}},
    "session/p1/ses_1.json": {
        "id": "ses_1",
        "projectID": "p1",
        "title": "Old store",
        "time": {"created": T, "updated": T + 50},
    },
    "message/ses_1/msg_1.json": {"id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": T + 1}},
    "message/ses_1/msg_2.json": {
        "id": "msg_2",
        "sessionID": "ses_1",
        "role": "assistant",
        "time": {"created": T + 2},
    },
    "part/msg_1/prt_1.json": {"id": "prt_1", "messageID": "msg_1", "type": "text", "text": "from the tree"},
    "part/msg_2/prt_2.json": {
        "id": "prt_2",
        "messageID": "msg_2",
        "type": "text",
        "text": "second",
        "time": {"start": T + 30},
    },
    "part/msg_2/prt_3.json": {
        "id": "prt_3",
        "messageID": "msg_2",
        "type": "text",
        "text": "first",
        "time": {"start": T + 20},
    },
    "session_diff/ses_1.json": [],
    "todo/ses_1.json": [],
}


def test_the_tree_of_files(tmp_path: Path) -> None:
    tree(tmp_path, TREE)
    (source,) = sources("opencode", tmp_path)
    assert read(source) == {
        "ses_1": (
            Session(
                "ses_1",
                "Old store",
                cwd="/w/tree",
                created_at=T,
                updated_at=T + 50,
                message_count=2,
                resume="opencode --session ses_1",
            ),
            [
                Message(0, "user", "from the tree", T + 1),
                Message(1, "assistant", "first", T + 20),
                Message(2, "assistant", "second", T + 30),
            ],
        )
    }
    storage = tmp_path / ".local/share/opencode/storage"
    assert source.store.files is not None
    assert list(source.store.files(source)) == [
        str(storage / name)
        for name in (
            *("message/ses_1/msg_1.json", "message/ses_1/msg_2.json", "part/msg_1", "part/msg_2"),
            *("part/msg_1/prt_1.json", "part/msg_2/prt_2.json", "part/msg_2/prt_3.json"),
        )
    ]
    # The database's copy of a session is the one that answers.
    store(tmp_path)
    assert sorted((one.store.name, one.store.rank) for one in sources("opencode", tmp_path)) == [
        ("database", 1),
        ("files", 0),
    ]


def test_the_oldest_tree_and_loose_parts(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            "session/info/ses_1.json": {
                "id": "ses_1",
                "title": "",
                "time": {"created": T},
                "revert": {"messageID": "msg_2"},
            },
            "session/message/ses_1/msg_1.json": {"role": "user", "time": {"created": T}},
            "session/message/ses_1/msg_2.json": {"role": "user", "time": {"created": T}},
            "session/part/ses_1/msg_1/prt_1.json": {"type": "text", "text": "oldest"},
            "session/part/ses_1/msg_2/prt_2.json": {"type": "text", "text": "undone"},
            "session/p1/ses_2.json": {"id": "ses_2", "parentID": "ses_1", "title": "Loose", "directory": "/w"},
            "message/ses_2/msg_3.json": {"id": "msg_3", "role": "user"},
            "part/prt_9.json": {"messageID": "msg_3", "type": "text", "text": "lies loose"},
        },
    )
    found = {identity: entry for source in sources("opencode", tmp_path) for identity, entry in read(source).items()}
    shown = {
        identity: (head.title, head.parent_id, [one.text for one in said]) for identity, (head, said) in found.items()
    }
    assert shown == {
        "ses_1": ("oldest", None, ["oldest"]),
        "ses_2": ("Loose", "ses_1", ["lies loose"]),
    }


def test_a_broken_tree(tmp_path: Path) -> None:
    tree(tmp_path, {**TREE, "message/ses_1/msg_2.json": '{"id": "msg_2", "ro', "part/msg_1/prt_0.json": ""})
    (source,) = sources("opencode", tmp_path)
    ((head, messages),) = read(source).values()
    assert [one.text for one in messages] == ["from the tree"] and head.message_count == 1
    tree(tmp_path, {"session/p1/ses_1.json": "{"})
    with pytest.raises(Unreadable):
        read(source)


def test_a_database_named_by_its_variable_is_named_in_the_command(tmp_path: Path) -> None:
    path = tmp_path / "work dir/opencode/mine.db"
    database(
        path,
        SCHEMA,
        ("session", [session("ses_1")]),
        ("message", [message("msg_1", "ses_1", T, role="user")]),
        ("part", [part("prt_1", "msg_1", "ses_1", T, type="text", text="hello")]),
    )
    (source,) = sources("opencode", tmp_path, {"OPENCODE_DB": str(path)})
    ((head, _),) = read(source).values()
    assert head.resume == f"OPENCODE_DB='{path}' opencode --session ses_1"


def test_a_time_of_another_type_does_not_spoil_the_order(tmp_path: Path) -> None:
    store(
        tmp_path,
        ("session", [session("ses_1")]),
        ("message", [message("msg_1", "ses_1", T, role="user")]),
        (
            "part",
            [
                part("prt_1", "msg_1", "ses_1", b"\xff\x00", type="text", text="first"),
                part("prt_2", "msg_1", "ses_1", T, type="text", text="second"),
            ],
        ),
    )
    (source,) = sources("opencode", tmp_path)
    ((_, messages),) = read(source).values()
    assert [one.text for one in messages] == ["first", "second"]
