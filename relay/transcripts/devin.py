"""Devin CLI: its database of message trees, and transcripts as JSON documents in three spellings."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Set, Tuple

from relay.transcripts import content, resume, times, titles
from relay.transcripts.documents import members
from relay.transcripts.fold import Fold, mapping, text_or_none
from relay.transcripts.foreign_database import ForeignDatabase, SqliteReader, parsed, text
from relay.transcripts.tool_calls import calls
from relay.transcripts.types import ASSISTANT, SYSTEM, TOOL, USER, Event, Session, Source, Transcript, Unreadable
from relay.transcripts.whole import transcripts

_ROLES = {"agent": ASSISTANT, "human": USER}
_STREAMED = ("steps", "messages")
_HEAD = ("title", "working_directory", "created_at", "last_activity_at", "hidden")


class Devin(Fold):
    """One session: records are a node's message or a transcript's step, whichever of the spellings it has."""

    label = "Devin"

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        metadata = mapping(record.get("metadata"))
        body = record.get("message", record.get("content"))
        if isinstance(body, dict) and body.get("type") is None:
            body = body.get("content", body.get("text"))
        role = _role(record, metadata)
        if role is None:
            self.unknown += 1
            return
        times_named = (
            record.get("timestamp"),
            record.get("created_at"),
            metadata.get("created_at"),
            record.get("at"),
        )
        at = next((at for at in map(self.saw, times_named) if at is not None), None)
        words = content.text_of(body)
        said = bool(words.strip())
        if role == TOOL:
            words = content.output_text(body)
        if words.strip() and (role != SYSTEM or metadata.get("is_user_input") is False):
            if role == USER:
                self.said(titles.visible(words))
            yield self.message(role, words, at)
        for field in ("tool_calls", "tool_use"):
            for call in calls(record.get(field)):
                said = True
                yield self.message(TOOL, call, at)
        for result in _results(record):
            output = content.output_text(result)
            if output:
                yield self.message(TOOL, output, at)
        if said and role in (USER, ASSISTANT):
            self.count += 1

    def resume(self) -> Optional[str]:
        moved = resume.home_variable(self.source, "DEVIN_HOME") or resume.data_home(self.source, "devin/cli")
        return resume.command("devin", "--resume", self.id, env=moved)


def _role(record: Mapping[str, Any], metadata: Mapping[str, Any]) -> Optional[str]:
    """Who speaks: a person's step is marked in either of two ways; None when nothing tells."""
    named = record.get("source") or record.get("role")
    role = _ROLES.get(named, named) if isinstance(named, str) else None
    if metadata.get("is_user_input") is True:
        return USER
    if role == USER and metadata.get("is_user_input") is False:
        return SYSTEM  # said in the person's name
    if role is None and (record.get("message") or (metadata and "step_id" in record)):
        return ASSISTANT
    return role if role in (USER, ASSISTANT, TOOL, SYSTEM) else None


def _results(record: Mapping[str, Any]) -> Iterator[Any]:
    observed = mapping(record.get("observation")).get("results")
    for listed in (record.get("tool_result"), record.get("tool_results"), observed):
        for result in listed if isinstance(listed, list) else [listed]:
            if isinstance(result, dict):
                yield next((result[key] for key in ("content", "output", "result", "text") if result.get(key)), None)
            elif result:
                yield result


class DevinDatabase(SqliteReader):
    """The sessions of ``sessions.db``; hidden ones are left out."""

    program = "Devin"
    needed = {"sessions": ("id",), "message_nodes": ("session_id", "node_id", "chat_message")}

    def sessions(self, known: Mapping[str, str] = {}) -> Iterator[Tuple[str, str]]:
        """All that are not hidden; nodes are only added."""
        for session_id, head, key in self.keyed(_HEAD, "message_nodes", "chat_message", "row_id"):
            if not _is_set(head[4]):
                yield session_id, key

    def read(self, session_id: str) -> Optional[Transcript]:
        head = self.one("sessions", "id", session_id, *_HEAD)
        if head is None or _is_set(head[4]):
            return None
        title, folder, created, active, _ = head

        def start() -> Devin:
            fold = Devin(self.source)
            fold.id, fold.name, fold.cwd = session_id, text(title), text(folder) or None
            fold.saw(active)
            return fold

        def finish(fold: Fold, session: Session) -> None:
            session.created_at = times.millis(created) or session.created_at

        return next(transcripts(start, lambda: self._records(session_id), finish), None)

    def _records(self, session_id: str) -> Iterator[Mapping[str, Any]]:
        names = self.choose("message_nodes", "node_id", "parent_node_id")
        order = "row_id" if "row_id" in self.database.columns("message_nodes") else "rowid"
        tree = self.database.rows(
            f"SELECT {names} FROM message_nodes WHERE session_id = ? ORDER BY {order}", (session_id,)
        )
        shown = kept([(text(node), text(parent)) for node, parent in tree])
        rows = self.each("message_nodes", "session_id", session_id, order, "node_id", "chat_message", "created_at")
        for node, message, at in rows:
            if text(node) in shown:
                yield {**mapping(parsed(message)), "at": at}


def kept(nodes: List[Tuple[str, str]]) -> Set[str]:
    """Of a tree of ``(node, parent)`` in the order of making: what is not on an abandoned branch.

    Where a node has several children the conversation went on from the one whose branch was added to last. Trees
    beside one another all stay: a compaction begins a new one.
    """
    parents = dict(nodes)
    shown: Set[str] = set()
    settled: Dict[str, str] = {}
    for node, _ in reversed(nodes):
        path: List[str] = []
        current = node
        while current not in shown:
            parent = parents.get(current, "")
            if settled.get(parent, current) != current or current in path:
                path = []  # a sibling's branch is newer
                break
            path.append(current)
            if parent not in parents:
                break
            current = parent
        for current in path:
            shown.add(current)
            if parents[current] in parents:
                settled[parents[current]] = current
    return shown


def read_document(source: Source) -> Iterator[Transcript]:
    """The session in ``transcripts/<id>.json``; nothing when the database says that it is hidden."""
    head = {name: value for name, value in members(source.path, *_STREAMED) if name not in _STREAMED}
    stem = os.path.basename(source.path)[: -len(".json")]
    session_id = text_or_none(head.get("session_id")) or stem
    row = _row(source, session_id)
    if row is not None and _is_set(row[4]):
        return

    def start() -> Devin:
        fold = Devin(source)
        fold.id = session_id
        fold.name = text(row[0]) if row is not None else ""
        fold.name = fold.name or text_or_none(head.get("title")) or ""
        fold.cwd = (text(row[1]) if row is not None else "") or _folder(head)
        fold.saw(head.get("created_at"))
        fold.saw(head.get("updated_at"))
        return fold

    yield from transcripts(start, lambda: _steps(source))


def _steps(source: Source) -> Iterator[Mapping[str, Any]]:
    for name, value in members(source.path, *_STREAMED):
        if name in _STREAMED and isinstance(value, dict):
            yield value


def _folder(head: Mapping[str, Any]) -> Optional[str]:
    listed = head.get("workspace_dirs")
    first = listed[0] if isinstance(listed, list) and listed else None
    return text_or_none(head.get("working_directory")) or text_or_none(head.get("cwd")) or text_or_none(first)


def _row(source: Source, session_id: str) -> Optional[Tuple[Any, ...]]:
    """What the database says of a transcript; None without a database that can be read."""
    path = os.path.join(source.home, "sessions.db")
    if not os.path.exists(path):
        return None
    try:
        with ForeignDatabase(path) as database:
            columns = database.columns("sessions")
            if "id" not in columns:
                return None
            chosen = ", ".join(column if column in columns else "NULL" for column in _HEAD)
            found = database.rows(f"SELECT {chosen} FROM sessions WHERE id = ?", (session_id,))
            return found[0] if found else None
    except Unreadable:
        return None


def _is_set(value: object) -> bool:
    return text(value).strip().lower() not in ("", "0", "false")
