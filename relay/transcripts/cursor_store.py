"""Cursor CLI's ``store.db``: a chat as content-addressed blobs, whose root names the messages in their order."""

from __future__ import annotations

import hashlib
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from relay.transcripts import resume, times
from relay.transcripts.ai_sdk import AiSdk
from relay.transcripts.cursor import query
from relay.transcripts.documents import sidecar_object
from relay.transcripts.fold import mapping, text_or_none
from relay.transcripts.foreign_database import SqliteReader, parsed, text
from relay.transcripts.types import Transcript
from relay.transcripts.whole import transcripts

#: How deep messages may be nested in one another's bytes, and blobs in blobs.
_DEPTH = 8
#: Bytes of a blob's name (SHA-256).
_NAME = 32
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Chat(AiSdk):
    """The one session of a store."""

    label = "Cursor"

    def typed(self, words: str) -> str:
        return query(words)

    def resume(self) -> Optional[str]:
        return resume.command("cursor-agent", "--resume", self.id)


class CursorStore(SqliteReader):
    """The chat in ``chats/<md5 of its folder>/<id>/store.db``; a title and times may be in ``meta.json`` beside it."""

    program = "Cursor"
    needed = {"blobs": ("id", "data"), "meta": ("key", "value")}

    def sessions(self, known: Mapping[str, str] = {}) -> Iterator[Tuple[str, str]]:
        """A blob never changes; a chat that goes on has a new root."""
        if self.filled:
            meta = self.database.rows("SELECT key, value FROM meta ORDER BY key")
            count = self.database.rows("SELECT count(*) FROM blobs")
            beside = sorted(self._beside().items(), key=lambda item: item[0])
            yield self._id(), hashlib.sha256(repr((meta, count, beside)).encode("utf-8", "replace")).hexdigest()

    def read(self, session_id: str) -> Optional[Transcript]:
        if not self.filled or session_id != self._id():
            return None
        meta, beside = self._meta(), self._beside()

        def start() -> Chat:
            fold = Chat(self.source)
            fold.id = session_id
            fold.name = text_or_none(beside.get("title")) or _own_name(meta.get("name"))
            fold.cwd = text_or_none(beside.get("cwd"))
            fold.saw(beside.get("createdAtMs") or meta.get("createdAt"))
            fold.saw(beside.get("updatedAtMs") or times.modified(self.source.path))
            return fold

        return next(transcripts(start, lambda: self._records(meta)), None)

    def _id(self) -> str:
        return os.path.basename(os.path.dirname(self.source.path))

    def _beside(self) -> Dict[str, Any]:
        return sidecar_object(os.path.join(os.path.dirname(self.source.path), "meta.json"))

    def _meta(self) -> Mapping[str, Any]:
        """The value under key ``0``: JSON, mostly spelled in hexadecimal."""
        for _, value in self.database.rows("SELECT key, value FROM meta ORDER BY key"):
            found = parsed(value)
            if not isinstance(found, dict):
                try:
                    found = parsed(bytes.fromhex(text(value)))
                except ValueError:
                    continue
            if isinstance(found, dict):
                return found
        return {}

    def _records(self, meta: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        root = meta.get("latestRootBlobId")
        found = False
        for message in self._below(root, set(), 0) if isinstance(root, str) else ():
            found = True
            yield message
        if found:
            return
        # No root, or one that cannot be read: what looks like a message, in the order it was stored.
        for (row,) in self.database.rows("SELECT rowid FROM blobs ORDER BY rowid"):
            for (data,) in self.database.rows("SELECT data FROM blobs WHERE rowid = ?", (row,)):
                loose = _message(data)
                if loose is not None:
                    yield loose

    def _below(self, name: str, seen: "set[str]", depth: int) -> Iterator[Mapping[str, Any]]:
        """The messages a blob stands for: itself, or those it names or holds, in order; each once."""
        if name in seen or depth > _DEPTH:
            return
        seen.add(name)
        for (data,) in self.database.rows("SELECT data FROM blobs WHERE id = ?", (name,)):
            message = _message(data)
            if message is not None:
                yield message
                return
            for piece in _pieces(data):
                message = _message(piece)
                if message is not None:
                    yield message
                elif len(piece) == _NAME:
                    yield from self._below(piece.hex(), seen, depth + 1)


def _own_name(name: Any) -> str:
    found = text_or_none(name) or ""
    return "" if found.strip().lower() in ("new agent", "new chat") else found


def _message(data: Any) -> Optional[Mapping[str, Any]]:
    """The blob as a message, when it is one: JSON with a role and content."""
    if isinstance(data, str):
        data = data.encode("utf-8", "replace")
    if not isinstance(data, bytes) or not data.startswith(b"{"):
        return None
    found = mapping(parsed(data))
    return found if isinstance(found.get("role"), str) and "content" in found else None


def _pieces(data: Any, depth: int = 0) -> List[bytes]:
    """The byte strings in a Protocol Buffers message, in order and inside one another; empty when it is none."""
    found: List[bytes] = []
    if not isinstance(data, bytes):
        return found
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        kind, field = tag & 7, tag >> 3
        if position < 0 or field == 0:
            return []
        if kind == _VARINT:
            _, position = _varint(data, position)
            if position < 0:
                return []
        elif kind in (_FIXED64, _FIXED32):
            position += 8 if kind == _FIXED64 else 4
        elif kind == _BYTES:
            size, position = _varint(data, position)
            if position < 0 or position + size > len(data):
                return []
            piece = data[position : position + size]
            position += size
            found.append(piece)
            if len(piece) != _NAME and not piece.startswith(b"{") and depth < _DEPTH:
                found.extend(_pieces(piece, depth + 1))
        else:
            return []
    return found if position == len(data) else []


def _varint(data: bytes, position: int) -> Tuple[int, int]:
    """The number at ``position`` and where it ends; -1 when it does not."""
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    return 0, -1
