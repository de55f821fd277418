"""Cursor CLI: transcripts as JSON Lines and as text, and what the chats' metadata adds."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Dict

import pytest

from relay.transcripts import cursor
from relay.transcripts.types import Message, Session
from tests.support.transcript_sources import document, lines, read, sources, text, unknown

SID = "5e0c0000-0000-4000-8000-000000000001"
T = 1_770_000_000
FOLDER = ".cursor/projects/w-app/agent-transcripts"


def said(role: str, *content: Any, **more: Any) -> Dict[str, Any]:
    blocks = [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]
    return {"role": role, "message": {"content": blocks}, **more}


def meta(home: Path, **more: Any) -> None:
    document(home / ".cursor/chats" / hashlib.md5(b"/w/app").hexdigest() / SID / "meta.json", {"cwd": "/w/app", **more})


def test_an_ordinary_session(tmp_path: Path) -> None:
    lines(
        tmp_path / FOLDER / SID / f"{SID}.jsonl",
        said("user", "<user_info>\nlinux\n</user_info>", "<user_query>\nrename foo\n</user_query>"),
        said("assistant", "Renaming.", {"type": "tool_use", "name": "Grep", "input": {"pattern": "foo"}}),
        said("user", {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "foo.py:1"}]}),
        said("assistant", {"type": "thinking", "thinking": "secret"}, "Renamed."),
        {"type": "turn_ended", "status": "success"},
        at=T + 99,
    )
    meta(tmp_path, title="Rename foo", createdAtMs=T * 1000, updatedAtMs=T * 1000 + 5000)
    (source,) = [one for one in sources("cursor", tmp_path) if one.store.name == "transcripts"]
    assert read(source) == {
        SID: (
            Session(
                SID,
                "Rename foo",
                cwd="/w/app",
                created_at=T * 1000,
                updated_at=T * 1000 + 5000,
                message_count=3,
                resume=f"cursor-agent --resume {SID}",
            ),
            [
                Message(0, "user", "rename foo"),
                Message(1, "assistant", "Renaming."),
                Message(2, "tool", "Grep pattern: foo"),
                Message(3, "tool", "foo.py:1"),
                Message(4, "assistant", "Renamed."),
            ],
        )
    }
    assert unknown(source) == 0


def test_without_metadata_the_file_tells_the_time(tmp_path: Path) -> None:
    lines(tmp_path / FOLDER / f"{SID}.jsonl", {"role": "user", "message": {"content": "hello"}}, at=T)
    (source,) = sources("cursor", tmp_path)
    ((session, messages),) = read(source).values()
    assert (session.title, session.created_at, session.updated_at) == ("hello", None, T * 1000)
    assert messages == [Message(0, "user", "hello")]


def test_only_what_was_asked_is_the_user_s(tmp_path: Path) -> None:
    lines(
        tmp_path / FOLDER / f"{SID}.jsonl",
        said("user", "<git_status>\nclean\n</git_status>"),
        said("user", "<attached_files>a.py</attached_files>\nlook at this"),
        said("user", "<user_query>one</user_query> noise <user_query>two</user_query> noise"),
        said("assistant", "[REDACTED]", {"type": "tool_call", "name": "Shell", "input": {"command": "ls"}}),
        said("assistant", "Done."),
        said("assistant"),
    )
    (source,) = sources("cursor", tmp_path)
    ((session, messages),) = read(source).values()
    assert [(one.role, one.text) for one in messages] == [
        ("user", "look at this"),
        ("user", "one\n\ntwo"),
        ("tool", "Shell command: ls"),
        ("assistant", "Done."),
    ]
    assert session.message_count == 3  # consecutive records of the assistant are one turn


def test_subagents_name_their_parent_and_other_files_are_none(tmp_path: Path) -> None:
    child = SID[:-1] + "2"
    lines(tmp_path / FOLDER / SID / "subagents" / f"{child}.jsonl", said("user", "find it"), said("assistant", "found"))
    lines(tmp_path / FOLDER / SID / "notes.jsonl", said("user", "no transcript"))
    text(tmp_path / FOLDER / SID / "notes.txt", "user:\nno transcript\n")
    found = {name: session for one in sources("cursor", tmp_path) for name, (session, _) in read(one).items()}
    assert list(found) == [child]
    assert (found[child].parent_id, found[child].resume) == (SID, f"cursor-agent --resume {SID}")


def test_a_text_transcript(tmp_path: Path) -> None:
    text(
        tmp_path / FOLDER / f"{SID}.txt",
        """user:
<user_query>
rename foo
to bar
</user_query>

assistant:
[Thinking] secret
[Tool call] Grep
  pattern=foo
[Tool result] Grep
  foo.py:1

Renamed it.

Anything else?

user:
no
""",
        at=T,
    )
    (source,) = sources("cursor", tmp_path)
    assert read(source) == {
        SID: (
            Session(
                SID,
                "rename foo to bar",
                updated_at=T * 1000,
                message_count=3,
                resume=f"cursor-agent --resume {SID}",
            ),
            [
                Message(0, "user", "rename foo\nto bar"),
                Message(1, "tool", "Grep\n  pattern=foo"),
                Message(2, "tool", "Grep\n  foo.py:1"),
                Message(3, "assistant", "Renamed it.\n\nAnything else?"),
                Message(4, "user", "no"),
            ],
        )
    }


def test_json_lines_are_preferred_to_text(tmp_path: Path) -> None:
    text(tmp_path / FOLDER / SID / f"{SID}.txt", "user:\nhello\n")
    lines(tmp_path / FOLDER / SID / f"{SID}.jsonl", said("user", "hello"))
    assert [len(read(source)) for source in sources("cursor", tmp_path)] == [1, 0]


def test_a_broken_transcript_gives_what_it_can(tmp_path: Path) -> None:
    path = lines(
        tmp_path / FOLDER / f"{SID}.jsonl",
        '{"role": "user", "mess',
        {"role": "oracle", "message": {"content": "?"}},
        {"role": "user", "message": "?"},
        said("user", "hello", {"type": "hologram", "text": "shown"}, {"type": "hologram"}, 7),
    )
    with path.open("a") as file:
        file.write('{"role": "assistant", "message": {"content": "torn')
    text(tmp_path / FOLDER / "x.txt", "no speaker at all\n")
    transcript, words = sources("cursor", tmp_path)
    ((_, messages),) = read(transcript).values()
    assert messages == [Message(0, "user", "hello\nshown")]
    assert unknown(transcript) == 2
    assert read(words) == {}


@pytest.mark.parametrize(
    ("slug", "folders", "found"),
    [
        ("home-ann-my-app", ["home/ann/my-app", "home/bob"], "home/ann/my-app"),
        ("home-ann--config-x-y", ["home/ann/.config/x.y"], "home/ann/.config/x.y"),
        ("home-ann-config-x", ["home/ann/.config/x"], "home/ann/.config/x"),
        ("a-b-c", ["a/b/c", "a-b/c"], None),  # two folders are spelled so
        ("a-b-d", ["a/b/c"], None),
    ],
)
def test_a_folder_is_found_by_its_slug(tmp_path: Path, slug: str, folders: Any, found: Any) -> None:
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
    expected = None if found is None else str(tmp_path / found)
    assert cursor.folder_of_slug(slug, str(tmp_path)) == expected
