"""Crush: one database a project, found through the registry of projects."""

from __future__ import annotations

import os
from typing import Any, Iterable, Iterator, Mapping, Optional, Tuple

from relay.transcripts import content, resume, times, titles
from relay.transcripts.crush_projects import project_of
from relay.transcripts.fold import Fold, mapping, text_or_none
from relay.transcripts.foreign_database import SqliteReader, parsed, text, topmost
from relay.transcripts.tool_calls import call_text
from relay.transcripts.types import ASSISTANT, SYSTEM, TOOL, USER, Event, Message, Session, Transcript
from relay.transcripts.whole import transcripts

_DEFAULT_TITLES = frozenset(("untitled session", "new session"))
_WORDLESS = frozenset(("reasoning", "finish"))


class Crush(Fold):
    """One session: records are ``{"role", "parts": [{"type", "data"}, …], "at", "summary": bool}``."""

    label = "Crush"
    #: Where the database is when it is not in the project's ``.crush``.
    data_folder: Optional[str] = None

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        role, parts = record.get("role"), record.get("parts")
        if role not in (USER, ASSISTANT, TOOL, SYSTEM) or not isinstance(parts, list):
            self.unknown += 1
            return
        at = self.saw(record.get("at"))
        speaker = SYSTEM if record.get("summary") else str(role)
        spoke = False
        for part in parts:
            for message in self._part(speaker, mapping(part), at):
                spoke = True
                yield message
        if spoke and speaker in (USER, ASSISTANT):
            self.count += 1

    def _part(self, speaker: str, part: Mapping[str, Any], at: Optional[int]) -> Iterator[Message]:
        kind, data = text_or_none(part.get("type")), mapping(part.get("data"))
        words, role = "", speaker
        if kind == "text":
            words = content.text_of(data.get("text"))
            if speaker == USER:
                self.said(titles.visible(words))
        elif kind == "tool_call":
            words, role = call_text(data), TOOL
        elif kind == "tool_result":
            words, role = content.output_text(data.get("content")), TOOL
            if data.get("data"):
                words = f"{words}\n{content.image(data.get('mime_type'), data['data'])}".strip()
        elif kind == "shell_command":
            role = TOOL
            command = content.call_text(data.get("command"))
            if command:
                yield self.message(TOOL, command, at)
            words = content.output_text(data.get("output"))
        elif kind == "image_url":
            words = content.image(None, data.get("url"))
        elif kind == "binary":
            words = content.image(data.get("MIMEType"), data.get("Data"))
        elif kind not in _WORDLESS:
            self.unknown += 1
        if words.strip():
            yield self.message(role, words, at)

    def resume(self) -> Optional[str]:
        where = ("--data-dir", self.data_folder) if self.data_folder else ()
        return resume.command("crush", *where, "--session", self.id)


class CrushDatabase(SqliteReader):
    """The sessions of one project's ``crush.db``."""

    program = "Crush"
    needed = {"sessions": ("id",), "messages": ("session_id", "role", "parts")}

    def sessions(self, known: Mapping[str, str] = {}) -> Iterator[Tuple[str, str]]:
        """All but the helper sessions in which Crush asks for another one's title."""
        heads = ("updated_at", "message_count", "title", "parent_session_id")
        for session_id, _, key in self.keyed(heads, "messages", "parts", "updated_at", "finished_at"):
            if not session_id.startswith("title-"):
                yield session_id, key

    def read(self, session_id: str) -> Optional[Transcript]:
        head = self.one("sessions", "id", session_id, "title", "parent_session_id", "created_at", "updated_at")
        if head is None:
            return None
        title, parent, created, updated = text(head[0]), text(head[1]), head[2], head[3]
        data_folder = os.path.dirname(self.source.path)
        inside = os.path.basename(data_folder) == ".crush"
        project = os.path.dirname(data_folder) if inside else project_of(data_folder)

        def start() -> Crush:
            fold = Crush(self.source)
            fold.id = session_id
            fold.name = "" if title.strip().lower() in _DEFAULT_TITLES else title
            fold.cwd = project
            fold.data_folder = None if inside else data_folder
            fold.saw(updated)
            return fold

        def finish(fold: Fold, session: Session) -> None:
            session.created_at = times.millis(created) or session.created_at
            if parent:
                session.parent_id = topmost(self.parents("sessions", "parent_session_id"), session_id)
            elif "$$" in session_id:  # a task agent's: message id and tool call id of the session that started it
                session.parent_id = self._session_of(session_id.partition("$$")[0])

        return next(transcripts(start, lambda: self._records(session_id), finish), None)

    def _records(self, session_id: str) -> Iterator[Mapping[str, Any]]:
        clock = "created_at, " if "created_at" in self.database.columns("messages") else ""
        for role, parts, at, summary in self.each(
            "messages", "session_id", session_id, f"{clock}rowid", "role", "parts", "created_at", "is_summary_message"
        ):
            yield {"role": text(role), "parts": parsed(parts), "at": at, "summary": summary}

    def _session_of(self, message: str) -> Optional[str]:
        found = self.one("messages", "id", message, "session_id")
        return text(found[0]) or None if found else None
