"""OpenCode: its SQLite databases (``opencode.db``, one more for each release channel), which may be very large."""

from __future__ import annotations

import os
import re
import zlib
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from relay.transcripts import content, resume, times, titles
from relay.transcripts.fold import Fold, mapping, text_or_none
from relay.transcripts.foreign_database import SqliteReader, capped, parsed, text, topmost
from relay.transcripts.tool_calls import call_text, result_text
from relay.transcripts.types import ASSISTANT, SYSTEM, TOOL, USER, Event, Message, Session, Transcript
from relay.transcripts.whole import transcripts

#: Bytes beyond which a session that has long been quiet is compared by its row and its messages' count alone.
BIG = 128 << 20
#: Milliseconds without a change after which a session counts as quiet, against the newest of the database.
QUIET = 24 * 3600 * 1000

_DEFAULT_TITLE = re.compile(r"(?:New|Child) session - \d{4}-\d\d-\d\dT[\d:.]+Z?\s*\Z")
_WORDLESS = frozenset(
    ("reasoning", "compaction", "step-start", "step-finish", "snapshot", "patch", "agent", "retry")  # fmt: skip
)


class OpenCode(Fold):
    """One session: records are ``{"info": message, "parts": [part, …], "at": epoch ms or None}`` in order."""

    label = "OpenCode"

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        info = mapping(record.get("info"))
        role = info.get("role")
        if role not in (USER, ASSISTANT):
            self.unknown += 1
            return
        clock = mapping(info.get("time"))
        at = self.saw(record.get("at")) or self.saw(clock.get("created"))
        self.saw(clock.get("completed"))
        # ``summary: true`` marks the text a compaction left; a user message's ``summary`` is an object.
        speaker = SYSTEM if info.get("summary") is True else str(role)
        said = False
        parts = record.get("parts") or ()
        if role == USER and not parts:  # the first versions kept a prompt's text in the message itself
            summary = mapping(info.get("summary"))
            parts = ({"type": "text", "text": summary.get("body") or summary.get("title")},)
        for part in parts:
            for message in self._part(speaker, mapping(part), at):
                said = True
                yield message
        if said and speaker != SYSTEM:
            self.count += 1

    def _part(self, speaker: str, part: Mapping[str, Any], at: Optional[int]) -> Iterator[Message]:
        kind = text_or_none(part.get("type"))
        state = mapping(part.get("state"))
        clock = mapping(state.get("time")) if kind == "tool" else mapping(part.get("time"))
        at = self.saw(clock.get("start")) or at
        if kind == "text":
            words = part.get("text") or part.get("content")
            # What the program added to a prompt (a file's contents, a reminder) is not shown to the person either.
            if not isinstance(words, str) or not words.strip() or part.get("synthetic") or part.get("ignored"):
                return
            if speaker == USER:
                self.said(titles.visible(words))
            yield self.message(speaker, content.text_of(words), at)
        elif kind == "tool":
            self.saw(clock.get("end"))
            call = call_text({"tool": part.get("tool"), "input": state.get("input")})
            if call:
                yield self.message(TOOL, call, at)
            result = result_text(state.get("output") or state.get("error"))
            if result:
                yield self.message(TOOL, result, self.saw(clock.get("end")) or at)
        elif kind == "file":
            mime = part.get("mime")
            if isinstance(mime, str) and mime.startswith("image/"):
                yield self.message(speaker, content.image(mime, part.get("url")), at)
            elif isinstance(part.get("filename"), str) and part["filename"]:
                yield self.message(speaker, content.clean(f"[file {part['filename']}]"), at)
        elif kind == "subtask":
            call = call_text({"name": part.get("agent"), "input": [part.get("description"), part.get("prompt")]})
            if call:
                yield self.message(TOOL, call, at)
        elif kind not in _WORDLESS:
            self.unknown += 1

    def resume(self) -> Optional[str]:
        env = resume.data_home(self.source, "opencode")
        path, found = self.source.path, bool(env) or self.source.default_home
        if path.endswith(".db") and not (found and os.path.basename(path).startswith("opencode")):
            env = {"OPENCODE_DB": path}
        return resume.command("opencode", "--session", self.id, env=env)


def own_title(value: object) -> str:
    """A title somebody gave; empty for the one every new session has."""
    found = text(value)
    return "" if _DEFAULT_TITLE.match(found) else found


def place(directory: object, worktree: object) -> Optional[str]:
    """The session's folder: its own, else its project's; ``/`` stands for no project."""
    for found in (text(directory), text(worktree)):
        if found and found != "/":
            return found
    return None


def undone_from(revert: object) -> Optional[str]:
    """The id of the first message a revert hides, or None."""
    message = mapping(revert).get("messageID")
    return message if isinstance(message, str) and message else None


class OpenCodeDatabase(SqliteReader):
    """Sessions of one OpenCode database."""

    program = "OpenCode"
    needed = {
        "session": ("id",),
        "message": ("id", "session_id", "data"),
        "part": ("message_id", "session_id", "data"),
    }

    def _check(self) -> None:
        name = os.path.basename(self.source.path)
        if not name.startswith("opencode") and not self.database.columns("session"):
            self.filled = False  # some other program's database beside one that OPENCODE_DB names
            return
        super()._check()

    def sessions(self, known: Mapping[str, str] = {}) -> Iterator[Tuple[str, str]]:
        """The key is ``quick/thorough``: the session's row and how many messages it has, then counts and times of its
        messages and parts, which change without their session. In a big database the second is for the lively only."""
        if not self.filled:
            return
        columns = self.choose(
            "session", "id", "time_updated", "title", "parent_id", "revert", "directory", "project_id"
        )
        heads = self.database.rows(f"SELECT {columns} FROM session ORDER BY 2 DESC")
        newest = max((times.millis(head[1]) or 0 for head in heads), default=0)
        big = os.path.getsize(self.source.path) > BIG and self.database.indexed("message", "session_id")
        counts = self.tallies("message") if big else {}
        for head in heads:
            session_id = text(head[0])
            if not session_id:
                continue
            quick = f"{head[1]}.{zlib.crc32(repr(head[2:]).encode('utf-8', 'replace')):x}"
            if big:
                quick += f".{counts.get(session_id, (0,))[0]}"
                key = known.get(session_id, "")
                if key.startswith(quick + "/") and (times.millis(head[1]) or 0) < newest - QUIET:
                    yield session_id, key
                    continue
            yield session_id, f"{quick}/{self._latest('message', session_id)}.{self._latest('part', session_id)}"

    def _latest(self, table: str, session_id: str) -> str:
        changed = self.choose(table, "time_updated")
        found = self.database.rows(f"SELECT count(*), max({changed}) FROM {table} WHERE session_id = ?", (session_id,))
        return f"{found[0][0]}.{found[0][1]}"

    def read(self, session_id: str) -> Optional[Transcript]:
        head = self.one(
            "session",
            "id",
            session_id,
            "title",
            "directory",
            "project_id",
            "parent_id",
            "revert",
            "time_created",
            "time_updated",
        )
        if head is None:
            return None
        title, directory, project, parent, revert, created, updated = head
        hidden = undone_from(parsed(revert))

        def start() -> OpenCode:
            fold = OpenCode(self.source)
            fold.id, fold.name = session_id, own_title(title)
            fold.cwd = place(directory, self._worktree(text(project)))
            fold.saw(updated)
            return fold

        def finish(fold: Fold, session: Session) -> None:
            session.created_at = times.millis(created) or session.created_at
            if parent:
                session.parent_id = topmost(self.parents("session", "parent_id"), session_id)
            else:
                session.lineage = self._forked_from(session_id, created)

        return next(transcripts(start, lambda: self._records(session_id, hidden), finish), None)

    def _records(self, session_id: str, hidden: Optional[str]) -> Iterator[Mapping[str, Any]]:
        parts: Dict[str, List[Tuple[int, str, int]]] = {}
        clock, name = self.choose("part", "time_created"), self.choose("part", "id")
        sql = f"SELECT message_id, {clock}, {name}, rowid FROM part WHERE session_id = ?"
        for message, at, part, row in self.database.rows(sql, (session_id,)):
            parts.setdefault(text(message), []).append((times.millis(at) or 0, text(part), row))
        for message, at, data in self.each(
            "message", "session_id", session_id, self._order(), "id", "time_created", "data"
        ):
            identity = text(message)
            if hidden is not None and identity >= hidden:
                continue
            found = [self._part(row) for _, _, row in sorted(parts.get(identity, ()))]
            yield {"info": parsed(data), "parts": found, "at": at}

    def _part(self, row: int) -> Any:
        found = self.database.rows(f"SELECT {capped('data')} FROM part WHERE rowid = ?", (row,))
        return parsed(found[0][0]) if found else {"type": "retry"}  # deleted since: no text

    def _order(self) -> str:
        return "time_created, id" if "time_created" in self.database.columns("message") else "id"

    def _worktree(self, project: str) -> Optional[str]:
        if not project or "worktree" not in self.database.columns("project"):
            return None
        found = self.one("project", "id", project, "worktree")
        return text_or_none(text(found[0])) if found else None

    def _forked_from(self, session_id: str, created: object) -> Optional[str]:
        """A fork is younger than the messages copied into it; the oldest session that begins with the same one."""
        if not {"time_created"} <= self.database.columns("message") & self.database.columns("session"):
            return None
        first = self.database.rows("SELECT min(time_created) FROM message WHERE session_id = ?", (session_id,))[0][0]
        if not isinstance(created, int) or not isinstance(first, int) or first >= created:
            return None
        found = self.database.rows(
            "SELECT id FROM session WHERE id <> ? AND time_created <= ? AND"
            " (SELECT min(time_created) FROM message WHERE session_id = session.id) = ? ORDER BY time_created LIMIT 1",
            (session_id, first, first),
        )
        return text(found[0][0]) if found else None
