"""Cursor CLI's ``store.db``: blobs named by a root, in Protocol Buffers and JSON."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, List, Optional, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.transcripts.cursor_store import _pieces
from relay.transcripts.types import Message, Session, Unreadable
from tests.support.transcript_sources import database, keys, read, sources, unknown

SCHEMA = "CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB); CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);"
T = 1767607200000
CHAT = ".cursor/chats/0123456789abcdef0123456789abcdef/6a1e0c1e-0000-4000-8000-000000000001"
ID = "6a1e0c1e-0000-4000-8000-000000000001"


def field(number: int, data: bytes) -> bytes:
    """A length-delimited field of a Protocol Buffers message."""
    size, spelled = len(data), b""
    while size > 0x7F:
        spelled += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + spelled + bytes([size]) + data


def blob(data: bytes) -> Tuple[str, bytes]:
    return hashlib.sha256(data).hexdigest(), data


def said(role: str, content: Any) -> Tuple[str, bytes]:
    return blob(json.dumps({"role": role, "content": content}).encode())


def store(
    home: Path, blobs: List[Tuple[str, bytes]], root: Optional[str], plain: bool = False, name: str = ""
) -> Path:
    meta = json.dumps({"agentId": ID, "latestRootBlobId": root, "name": name or "New Agent", "createdAt": T})
    value = meta if plain else meta.encode().hex()
    path = home / CHAT / "store.db"
    database(path, SCHEMA, ("blobs", list(blobs)), ("meta", [("0", value)]))
    return path


def test_an_ordinary_chat(tmp_path: Path) -> None:
    user = said("user", "<user_info>\nOS: linux\n</user_info>\n<user_query>\nrename foo\n</user_query>")
    call = {"type": "tool-call", "toolCallId": "c", "toolName": "Grep", "args": {"pattern": "foo"}}
    reply = said("assistant", [{"type": "text", "text": "Renaming."}, call])
    result = said("tool", [{"type": "tool-result", "toolCallId": "c", "toolName": "Grep", "result": "a.py:1"}])
    rules = said("system", "You are an agent.")
    names = [bytes.fromhex(name) for name, _ in (rules, user, reply, result)]
    root = blob(b"".join(field(1, name) for name in names) + b"\x10\x05" + field(5, b"\x08\x01"))
    store(tmp_path, [result, root, reply, rules, user], root[0])
    meta = {"title": "Rename foo", "cwd": "/w/app", "createdAtMs": T, "updatedAtMs": T + 5000}
    (tmp_path / CHAT / "meta.json").write_text(json.dumps(meta))
    (source,) = sources("cursor", tmp_path)
    assert read(source) == {
        ID: (
            Session(
                ID,
                "Rename foo",
                cwd="/w/app",
                created_at=T,
                updated_at=T + 5000,
                message_count=2,
                resume=f"cursor-agent --resume {ID}",
            ),
            [
                Message(0, "user", "rename foo", None),
                Message(1, "assistant", "Renaming.", None),
                Message(2, "tool", "Grep pattern: foo", None),
                Message(3, "tool", "a.py:1", None),
            ],
        )
    }


def test_turns_within_turns_inline_messages_and_each_blob_once(tmp_path: Path) -> None:
    first, second = said("user", "one"), said("assistant", "two")
    turn = blob(field(1, field(1, bytes.fromhex(first[0])) + field(2, bytes.fromhex(second[0]))))
    inline = json.dumps({"role": "user", "content": "three"}).encode()
    root = blob(field(8, bytes.fromhex(turn[0])) + field(8, bytes.fromhex(turn[0])) + field(4, inline))
    store(tmp_path, [first, second, turn, root], root[0], plain=True, name="Own name")
    (source,) = sources("cursor", tmp_path)
    head, messages = read(source)[ID]
    assert [one.text for one in messages] == ["one", "two", "three"]
    assert (head.title, head.cwd, head.created_at) == ("Own name", None, T)


@pytest.mark.parametrize("root", [None, "deadbeef"])
def test_without_a_root_what_looks_like_a_message_is_read(tmp_path: Path, root: Optional[str]) -> None:
    blobs = [said("user", "found anyway"), blob(b"\xff\xff\xff"), blob(b'{"torn'), said("oracle", "unknown")]
    store(tmp_path, blobs, root)
    (source,) = sources("cursor", tmp_path)
    assert [one.text for one in read(source)[ID][1]] == ["found anyway"]
    assert unknown(source) == 1


def test_an_empty_chat_is_no_session_and_a_new_root_is_a_change(tmp_path: Path) -> None:
    path = store(tmp_path, [], "deadbeef")
    (source,) = sources("cursor", tmp_path)
    assert read(source) == {}
    before = keys(source)
    name, data = said("user", "x")
    database(path, "", ("blobs", [(name, data)]))
    assert keys(source) != before
    (tmp_path / CHAT / "meta.json").write_text('{"title": "Named"}')
    assert read(source)[ID][0].title == "Named"


def test_a_store_of_another_kind(tmp_path: Path) -> None:
    database(tmp_path / CHAT / "store.db", "CREATE TABLE notes (id)")
    (source,) = sources("cursor", tmp_path)
    with pytest.raises(Unreadable, match="no table blobs"):
        read(source)


@given(st.binary(max_size=200))
def test_any_bytes_have_pieces(data: bytes) -> None:
    assert all(piece in data for piece in _pieces(data))


@given(st.lists(st.binary(min_size=1, max_size=300)))
def test_fields_come_back_in_order(values: List[bytes]) -> None:
    encoded = b"".join(field(1, b"{" + value) for value in values)
    assert _pieces(encoded) == [b"{" + value for value in values]
