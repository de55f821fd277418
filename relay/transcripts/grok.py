"""Grok Build: a folder for each session, with a history that compaction rewrites and an event log that is complete."""

from __future__ import annotations

import itertools
import os
import re
from collections import deque
from typing import Any, Deque, Dict, Iterable, Iterator, List, Mapping, Optional, Set, Tuple
from urllib.parse import unquote

from relay.transcripts import content, documents, forks, jsonl, resume, times, titles, tool_calls, whole
from relay.transcripts.fold import Fold, items, mapping, text_or_none
from relay.transcripts.types import ASSISTANT, TOOL, USER, Event, Session, Source, Transcript

_QUERY = re.compile(r"<user_query>(.*?)(?:</user_query>|\Z)", re.DOTALL)
_INJECTED = titles.blocks("user_info", "git_status", "agent_skills", "mcp_servers", "system_reminder")
_CHUNKS = {"user_message_chunk": USER, "agent_message_chunk": ASSISTANT}
_QUIET = frozenset(
    "agent_thought_chunk turn_completed plan available_commands_update current_mode_update session_info_update "
    "usage_update config_option_update turn_started".split()
)
#: What of a text tells it from others.
_KEY = 200


def read(source: Source) -> Iterator[Transcript]:
    """The session of one folder; ``source.path`` is its ``summary.json``. Raises Unreadable, OSError."""
    summary: Mapping[str, Any] = dict(documents.members(source.path))
    folder = os.path.dirname(source.path)
    updates, history = os.path.join(folder, "updates.jsonl"), os.path.join(folder, "chat_history.jsonl")
    clock = Clock()
    compacted: Optional[int] = 0  # that many updates tell what the history no longer has; None: there is no history
    for number, update in enumerate(_updates(updates)):
        if update["sessionUpdate"] == "compaction_checkpoint":
            clock, compacted = Clock(), number
        else:
            clock.take(update)
    clock.end()
    if not _has_records(history):
        clock, compacted = Clock(), None

    def records() -> Iterator[Mapping[str, Any]]:
        yield from itertools.islice(_updates(updates), compacted)
        yield {"$end": "of the log"}
        if os.path.exists(history):
            yield from jsonl.transcript(history)

    yield from whole.transcripts(lambda: _Build(source, summary, clock.copy()), records)


def _rows(path: str) -> Iterator[Mapping[str, Any]]:
    try:
        yield from jsonl.records(path)
    except FileNotFoundError:
        return


def _has_records(path: str) -> bool:
    return next(iter(_rows(path)), None) is not None


def _updates(path: str) -> Iterator[Dict[str, Any]]:
    """The updates of the event log, each with its ``timestamp``; those of the hosting program are left out."""
    for record in _rows(path):
        update = mapping(mapping(record.get("params")).get("update")) or mapping(record.get("update"))
        if isinstance(update.get("sessionUpdate"), str) and not mapping(update.get("_meta")).get("hostTurn"):
            yield {**update, "timestamp": record.get("timestamp")}


class Clock:
    """When the rows of the history were said: they carry no times, so they are found again in the event log."""

    def __init__(self) -> None:
        #: Role and start of text, or "call"/"result" and the call's id, to the times it was seen.
        self._seen: Dict[Tuple[str, str], Deque[int]] = {}
        self._run: Optional[List[Any]] = None

    def take(self, update: Mapping[str, Any]) -> None:
        """Takes one update of the event log."""
        kind, at = update["sessionUpdate"], times.millis(update.get("timestamp"))
        role = _CHUNKS.get(kind)
        if role is not None:
            text = content.block_text(update.get("content"))
            if self._run is None or self._run[0] != role:
                self.end()
                self._run = [role, "", at]
            if len(self._run[1]) < 4 * _KEY:
                self._run[1] += text[: 4 * _KEY]
            return
        self.end()
        if kind in ("tool_call", "tool_call_update") and at is not None:
            call = str(update.get("toolCallId"))
            self._seen.setdefault(("call", call), deque((at,)))
            if kind == "tool_call_update":
                self._seen[("result", call)] = deque((at,))

    def end(self) -> None:
        """The run of chunks that is under way, if there is one, is whole."""
        if self._run is not None and self._run[2] is not None:
            self._seen.setdefault((self._run[0], key(self._run[0], self._run[1])), deque()).append(self._run[2])
        self._run = None

    def at(self, role: str, text: str) -> Optional[int]:
        """When this was said; of several equal texts the first that is not taken yet. None when the log has no more."""
        found = self._seen.get((role, text))
        return found.popleft() if found else None

    def copy(self) -> "Clock":
        """One that has given no time away yet."""
        fresh = Clock()
        fresh._seen = {name: deque(found) for name, found in self._seen.items()}
        return fresh


def key(role: str, text: str) -> str:
    """The start of a text without white space and injected blocks, to find it again."""
    shown = said(text) if role == USER else text
    return "".join(shown[: 2 * _KEY].split())[:_KEY]


def said(text: str) -> str:
    """What the person typed: the inside of ``<user_query>``, else the text without injected blocks."""
    found = [inner.strip() for inner in _QUERY.findall(text)]
    return "\n\n".join(part for part in found if part) if found else titles.visible(text, _INJECTED)


class _Build(Fold):
    """Fold over updates of the event log and, behind ``{"$end": …}``, rows of the history."""

    label = "Grok"

    def __init__(self, source: Source, summary: Mapping[str, Any], clock: Clock) -> None:
        super().__init__(source)
        self.summary = summary
        self.clock = clock
        #: What the event log gave: the history repeats the last of it after a compaction.
        self.told: Set[Tuple[str, str]] = set()
        self.run: List[Any] = []
        self.answered = False

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        if "$end" in record:
            yield from self._end_of_run()
        elif "sessionUpdate" in record:
            yield from self._update(record)
        else:
            yield from self._row(record)

    def _update(self, update: Mapping[str, Any]) -> Iterator[Event]:
        kind, at = update["sessionUpdate"], self.saw(update.get("timestamp"))
        role = _CHUNKS.get(kind)
        if role is not None:
            if self.run and self.run[0] != role:
                yield from self._end_of_run()
            if not self.run:
                self.run = [role, [], at]
            self.run[1].append(content.block_text(update.get("content")))
            return
        yield from self._end_of_run()
        call = str(update.get("toolCallId"))
        if kind == "tool_call":
            name = mapping(mapping(update.get("_meta")).get("x.ai/tool")).get("name") or update.get("title")
            text = content.call_text(name, update.get("rawInput"))
            self.told.add(("call", call))
            if text:
                if not self.answered:  # an answer that begins with a call
                    self.answered = True
                    self.count += 1
                yield self.message(TOOL, text, at)
        elif kind == "tool_call_update":
            text = content.output_text(update.get("rawOutput")) or content.output_text(
                [mapping(part).get("content") for part in items(update.get("content")) if isinstance(part, dict)]
            )
            if text.strip() and update.get("status") in ("completed", "failed", None):
                self.told.add(("result", call))
                yield self.message(TOOL, text, at)
        elif kind not in _QUIET and kind != "compaction_checkpoint":
            self.unknown += 1

    def _end_of_run(self) -> Iterator[Event]:
        if self.run:
            role, pieces, at = self.run
            self.run = []
            text = content.text_of("".join(pieces))
            self.told.add((role, key(role, text)))
            yield from self._said(role, text, at)

    def _said(self, role: str, text: str, at: Optional[int]) -> Iterator[Event]:
        if role == USER:
            text = said(text)
            self.said(text)
        if text.strip():
            self.answered = role == ASSISTANT
            self.count += 1
            yield self.message(role, text, at)

    def _row(self, row: Mapping[str, Any]) -> Iterator[Event]:
        kind = row.get("type") or row.get("role")
        if kind == "user":
            if row.get("synthetic_reason") in (None, "", "interjection"):
                yield from self._fresh(USER, content.text_of(row.get("content")))
        elif kind == "assistant":
            text = content.text_of(row.get("content"))
            calls = [call for call in items(row.get("tool_calls")) if isinstance(call, dict)]
            if text.strip():
                yield from self._fresh(ASSISTANT, text)
            elif calls and ("call", str(calls[0].get("id"))) not in self.told:
                self.count += 1
            for call in calls:
                yield from self._tool("call", call.get("id"), tool_calls.call_text(call))
        elif kind in ("tool_result", "tool"):
            yield from self._tool("result", row.get("tool_call_id"), content.output_text(row.get("content")))
        elif kind == "backend_tool_call":
            remote = mapping(row.get("kind"))
            text = content.call_text(remote.get("tool_type"), remote.get("action"))
            yield from self._tool("call", remote.get("id"), text)
        elif kind not in ("system", "reasoning"):
            self.unknown += 1

    def _fresh(self, role: str, text: str) -> Iterator[Event]:
        """A text of the history; one that compaction kept is not said again, unless the log has it again."""
        mark = (role, key(role, text))
        at = self.saw(self.clock.at(*mark))
        if at is not None or mark not in self.told:
            yield from self._said(role, text, at)

    def _tool(self, what: str, call: Any, text: str) -> Iterator[Event]:
        mark = (what, str(call))
        if text.strip() and mark not in self.told:
            yield self.message(TOOL, text, self.saw(self.clock.at(*mark)))

    def session(self) -> Optional[Session]:
        summary = self.summary
        info = mapping(summary.get("info"))
        folder = os.path.dirname(self.source.path)
        self.id = text_or_none(info.get("id")) or os.path.basename(folder)
        named = (summary.get(field) for field in ("generated_title", "session_summary", "firstPrompt"))
        self.name = next((name for name in named if isinstance(name, str) and name.strip()), "")
        self.cwd = text_or_none(info.get("cwd")) or _decoded(os.path.basename(os.path.dirname(folder)))
        self.branch = text_or_none(summary.get("head_branch"))
        self.created = times.millis(summary.get("created_at") or summary.get("createdAt")) or self.created
        for name in ("last_active_at", "updated_at", "updatedAt"):
            at = times.millis(summary.get(name))
            if at is not None:
                self.updated = at
                break
        parent = text_or_none(summary.get("parent_session_id"))
        if summary.get("session_kind") == "subagent":
            self.parent = parent
        elif parent is not None:
            root = self.source.root
            self.lineage = forks.first(parent, lambda name: text_or_none(_summary(root, name).get("parent_session_id")))
        return super().session()

    def resume(self) -> Optional[str]:
        return resume.command("grok", "--resume", self.id, env=resume.home_variable(self.source, "GROK_HOME"))


def _decoded(name: str) -> Optional[str]:
    path = unquote(name)
    return path if path.startswith("/") else None


def _summary(root: str, session_id: str) -> Mapping[str, Any]:
    if "/" in session_id or session_id in ("", ".", ".."):
        return {}
    try:
        names = sorted(os.listdir(root))
    except OSError:
        return {}
    for name in names:
        path = os.path.join(root, name, session_id, "summary.json")
        if os.path.exists(path):
            return documents.sidecar_object(path)
    return {}
