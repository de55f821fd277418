"""Goose: its database of sessions, and the JSON Lines files it kept before."""

from __future__ import annotations

import os
import re
from typing import Any, Iterable, Iterator, Mapping, Optional, Tuple

from relay.transcripts import content, jsonl, resume, times, titles
from relay.transcripts.fold import Fold, mapping, text_or_none
from relay.transcripts.foreign_database import SqliteReader, parsed, text, topmost
from relay.transcripts.tool_calls import call_text
from relay.transcripts.types import ASSISTANT, SYSTEM, TOOL, USER, Event, Message, Session, Source, Transcript
from relay.transcripts.whole import transcripts

_DEFAULT_NAME = re.compile(r"(?:new session|new chat|cli session|untitled)(?:[ #]*\d+)?\s*\Z", re.IGNORECASE)
_INJECTED = titles.blocks("info-msg")
_SHOWN = frozenset(("text", "image"))
_REQUESTS = frozenset(("toolRequest", "frontendToolRequest"))
_WORDLESS = frozenset(
    (
        "thinking",
        "redactedThinking",
        "toolConfirmationRequest",
        "actionRequired",
        "systemNotification",
        "contextLengthExceeded",
    )
)


class Goose(Fold):
    """One session: records are messages ``{role, created, content[], metadata?}``, or the head of a file (no role)."""

    label = "Goose"

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        role = record.get("role")
        if role is None and ("working_dir" in record or "description" in record or "message_count" in record):
            self.cwd = text_or_none(record.get("working_dir")) or self.cwd
            self.name = own_name(record.get("description")) or self.name
            return
        blocks = record.get("content")
        if role not in (USER, ASSISTANT, SYSTEM, TOOL) or not isinstance(blocks, (list, str)):
            self.unknown += 1
            return
        metadata = mapping(record.get("metadata"))
        if metadata.get("userVisible") is False:
            return
        at = self.saw(record.get("created"))
        spoke = False
        for block in [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks:
            for message in self._block(str(role), mapping(block), at):
                spoke = spoke or message.role == role or role == ASSISTANT
                yield message
        if spoke and role in (USER, ASSISTANT):
            self.count += 1

    def _block(self, role: str, block: Mapping[str, Any], at: Optional[int]) -> Iterator[Message]:
        kind = text_or_none(block.get("type"))
        if kind in _SHOWN:
            words = content.text_of(block)
            if words.strip():
                if role == USER and kind == "text":
                    self.said(titles.visible(words, _INJECTED))
                yield self.message(role, words, at)
        elif kind in _REQUESTS:
            call = mapping(block.get("toolCall"))
            # A call the model got wrong has an error in place of a name.
            words = call_text(mapping(call.get("value"))) or content.output_text(call.get("error"))
            if words:
                yield self.message(TOOL, words, at)
        elif kind == "toolResponse":
            result = mapping(block.get("toolResult"))
            value = result.get("value")
            if isinstance(value, dict) and value.get("content"):
                value = value["content"]
            words = content.output_text(value if value else result.get("error"))
            if words:
                yield self.message(TOOL, words, at)
        elif kind not in _WORDLESS:
            self.unknown += 1

    def resume(self) -> Optional[str]:
        env: Mapping[str, str] = resume.data_home(self.source, "goose")
        if os.path.basename(self.source.home) == "data" and not self.source.default_home:
            env = {"GOOSE_PATH_ROOT": os.path.dirname(self.source.home)}
        return resume.command("goose", "session", "--resume", "--session-id", self.id, env=env)


def own_name(name: object) -> str:
    """A session's name or description; empty for the one every new session has."""
    found = text(name)
    return "" if _DEFAULT_NAME.match(found.strip()) else found


def read_file(source: Source) -> Iterator[Transcript]:
    """The session in a file of the time before the database (1.20)."""

    def start() -> Goose:
        fold = Goose(source)
        fold.id = os.path.basename(source.path)[: -len(".jsonl")]
        return fold

    return transcripts(start, lambda: jsonl.transcript(source.path))


class GooseDatabase(SqliteReader):
    """The sessions of ``sessions.db``."""

    program = "Goose"
    needed = {"sessions": ("id",), "messages": ("session_id", "role", "content_json")}

    def sessions(self, known: Mapping[str, str] = {}) -> Iterator[Tuple[str, str]]:
        """A conversation that is changed is written anew, under new row ids."""
        heads = ("session_type", "updated_at", "name", "description", "working_dir", "parent_session_id")
        for session_id, head, key in self.keyed(heads, "messages", "content_json", "id"):
            if text(head[0]).lower() != "hidden":
                yield session_id, key

    def read(self, session_id: str) -> Optional[Transcript]:
        head = self.one(
            "sessions",
            "id",
            session_id,
            "name",
            "description",
            "working_dir",
            "created_at",
            "updated_at",
            "parent_session_id",
        )
        if head is None:
            return None
        name, description, folder, created, updated, parent = head

        def start() -> Goose:
            fold = Goose(self.source)
            fold.id = session_id
            fold.name = own_name(name) or own_name(description)
            fold.cwd = text(folder) or None
            fold.saw(updated)
            return fold

        def finish(fold: Fold, session: Session) -> None:
            session.created_at = times.millis(created) or session.created_at
            if parent:
                session.parent_id = topmost(self.parents("sessions", "parent_session_id"), session_id)

        return next(transcripts(start, lambda: self._records(session_id), finish), None)

    def _records(self, session_id: str) -> Iterator[Mapping[str, Any]]:
        ordered = [name for name in ("created_timestamp", "id") if name in self.database.columns("messages")]
        columns = ("role", "content_json", "created_timestamp", "timestamp", "metadata_json")
        for role, blocks, created, stored, metadata in self.each(
            "messages", "session_id", session_id, ", ".join((*ordered, "rowid")), *columns
        ):
            at = created if times.millis(created) is not None else stored
            yield {"role": text(role), "content": parsed(blocks), "created": at, "metadata": parsed(metadata)}
