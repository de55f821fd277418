"""grok-cli (superagent-ai): its database ``grok.db``, which shares a home with xAI's Grok Build."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Optional, Tuple

from relay.transcripts import resume, times
from relay.transcripts.ai_sdk import AiSdk
from relay.transcripts.fold import Fold, mapping
from relay.transcripts.foreign_database import SqliteReader, parsed, text
from relay.transcripts.types import Session, Transcript
from relay.transcripts.whole import transcripts


class Grok(AiSdk):
    """One session of grok-cli."""

    label = "Grok"

    def resume(self) -> Optional[str]:
        return resume.command("grok", "--session", self.id)


class GrokDatabase(SqliteReader):
    """The sessions of ``grok.db``."""

    program = "grok-cli"
    needed = {"sessions": ("id",), "messages": ("session_id", "message_json")}

    def sessions(self, known: Mapping[str, str] = {}) -> Iterator[Tuple[str, str]]:
        """Messages are only appended; the session's row is touched with each."""
        heads = ("updated_at", "title", "cwd_at_start", "cwd_last", "workspace_id")
        for session_id, _, key in self.keyed(heads, "messages", "message_json", "seq"):
            yield session_id, key

    def read(self, session_id: str) -> Optional[Transcript]:
        columns = ("title", "cwd_at_start", "cwd_last", "workspace_id", "created_at", "updated_at")
        head = self.one("sessions", "id", session_id, *columns)
        if head is None:
            return None
        title, began, last, workspace, created, updated = head

        def start() -> Grok:
            fold = Grok(self.source)
            fold.id, fold.name = session_id, text(title)
            fold.cwd = text(began) or text(last) or self._workspace(workspace)
            fold.saw(updated)
            return fold

        def finish(fold: Fold, session: Session) -> None:
            session.created_at = times.millis(created) or session.created_at

        return next(transcripts(start, lambda: self._records(session_id), finish), None)

    def _records(self, session_id: str) -> Iterator[Mapping[str, Any]]:
        order = "seq, rowid" if "seq" in self.database.columns("messages") else "rowid"
        for role, message, at in self.each(
            "messages", "session_id", session_id, order, "role", "message_json", "created_at"
        ):
            found = mapping(parsed(message))
            yield {"role": found.get("role") or text(role), "content": found.get("content"), "at": at}

    def _workspace(self, workspace: object) -> Optional[str]:
        if workspace is None or "canonical_path" not in self.database.columns("workspaces"):
            return None
        rows = self.database.rows("SELECT canonical_path FROM workspaces WHERE id = ?", (workspace,))
        return text(rows[0][0]) or None if rows else None
