"""Kimi CLI: the log of what the user saw (``wire.jsonl``), and the model's history where there is no such log."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional

from relay.transcripts import content, documents, jsonl, resume, titles, tool_calls, whole
from relay.transcripts.fold import Fold, items, mapping, text_or_none
from relay.transcripts.types import ASSISTANT, TOOL, USER, Event, Message, Session, Source, Transcript

#: A command of the program, not something said to the model: ``/compact``, ``/skill:review now``; no path.
SLASH = re.compile(r"/[A-Za-z][\w:.-]*(?:\s|\Z)")
_CHECKPOINT = re.compile(r"\s*<system>CHECKPOINT \d+</system>\s*\Z")
#: Characters of a call's arguments that are put together from its parts.
_ARGUMENTS = 64 << 10

_SILENT = frozenset(
    (
        "TurnEnd StepInterrupted CompactionBegin CompactionEnd HookTriggered HookResolved HookRequest MCPLoadingBegin "
        "MCPLoadingEnd MCPStatusSnapshot StatusUpdate Notification PlanDisplay ApprovalRequest ApprovalResponse "
        "ApprovalRequestResolved QuestionRequest ToolCallRequest"
    ).split()
)


class Spoken(Fold):
    """What both generations share: replies whose text arrives in pieces, and turns that are counted once."""

    label = "Kimi"

    def begin(self) -> None:
        #: The text that is being streamed and its place; "" when none is.
        self.run = ""
        self.run_seq = 0
        #: Whether the step that is under way has been counted as a message.
        self.spoke = False

    def user(self, text: str, at: Optional[int], *injected: "re.Pattern[str]") -> Iterator[Event]:
        """A user's turn; nothing when only injected text is in it."""
        self.run, self.spoke = "", False
        text = titles.visible(text, *injected)
        if text:
            self.count += 1
            if not SLASH.match(text):
                self.said(text)
            yield self.message(USER, text, at)

    def piece(self, text: str, at: Optional[int]) -> Iterator[Event]:
        """More of the assistant's text: it goes on where the piece before ended."""
        if not text.strip() and not self.run:
            return
        self.replied()
        if self.run:
            self.run += text
            yield Message(self.run_seq, ASSISTANT, self.run, at)
        else:
            self.run, self.run_seq = text, self.seq
            yield self.message(ASSISTANT, text, at)

    def replied(self) -> None:
        """Counts the step that is under way, once."""
        if not self.spoke:
            self.spoke = True
            self.count += 1

    def tool(self, text: str, at: Optional[int]) -> Iterator[Event]:
        """A tool's call or output."""
        self.run = ""
        if text.strip():
            yield self.message(TOOL, text, at)


class WireReader(Spoken):
    """One ``wire.jsonl``: the main agent's, or that of a subagent in a folder below it."""

    def begin(self) -> None:
        super().begin()
        folder = os.path.dirname(self.source.path)
        above = os.path.dirname(folder)
        self.id = os.path.basename(folder)
        if os.path.basename(above) == "subagents":
            self.parent = os.path.basename(os.path.dirname(above))
            self.id = f"{self.parent}/{self.id}"
        #: Where the step that is under way began, and the count there: what a retry goes back to.
        self.step = 0
        self.step_count = 0
        #: The last tool call: its place, name and arguments so far.
        self.call: List[Any] = []
        #: Text of subagents that have no file of their own, by the call that started them: place and text.
        self.inner: Dict[str, List[Any]] = {}

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        message = record.get("message")
        if not isinstance(message, dict):
            if record.get("type") != "metadata":
                self.unknown += 1
            return
        at = self.saw(record.get("timestamp"))
        kind, payload = message.get("type"), mapping(message.get("payload"))
        if kind in ("TurnBegin", "SteerInput"):
            if self.lineage is None and self.parent is None and isinstance(record.get("timestamp"), float):
                # A fork is a copy of the log: the moment of the first turn is what the copies share.
                self.lineage = f"{_work_folder(self.source)}:{record['timestamp']!r}"
            yield from self.user(content.text_of(payload.get("user_input")), at)
            self.step, self.step_count = self.seq, self.count
        elif kind == "StepBegin":
            self.run, self.spoke = "", False
            self.step, self.step_count = self.seq, self.count
        elif kind == "StepRetry":
            if self.seq > self.step:
                yield self.rewind(self.step, self.step_count)
            self.run, self.spoke, self.call, self.inner = "", False, [], {}
        elif kind == "ContentPart":
            yield from self._part(payload, at)
        elif kind == "ToolCall":
            function, text = mapping(payload.get("function")), tool_calls.call_text(payload)
            self.replied()
            self.call = [self.seq, function.get("name"), _text(function.get("arguments"))] if text else []
            yield from self.tool(text, at)
        elif kind == "ToolCallPart":
            if self.call and len(self.call[2]) < _ARGUMENTS:
                self.call[2] += _text(payload.get("arguments_part"))
                yield Message(self.call[0], TOOL, content.call_text(self.call[1], self.call[2]) or "tool", at)
        elif kind == "ToolResult":
            self.call = []
            self.inner.pop(str(payload.get("tool_call_id"))[:100], None)
            yield from self.tool(_result(mapping(payload.get("return_value"))), at)
        elif kind == "SubagentEvent":
            if not payload.get("agent_id"):  # one that has an id writes a file of its own
                yield from self._subagent(payload, at)
        elif kind == "BtwBegin":
            yield from self.tool(content.text_of(payload.get("question")), at)
        elif kind == "BtwEnd":
            yield from self.tool(content.text_of(payload.get("response")), at)
        elif not (isinstance(kind, str) and kind in _SILENT):
            self.unknown += 1

    def _part(self, payload: Mapping[str, Any], at: Optional[int]) -> Iterator[Event]:
        if payload.get("type") == "text":
            yield from self.piece(content.text_of(payload), at)
        else:
            self.run = ""
            text = content.block_text(payload)
            if text:
                self.replied()
                yield self.message(ASSISTANT, text, at)

    def _subagent(self, payload: Mapping[str, Any], at: Optional[int]) -> Iterator[Event]:
        """What a subagent without a file did, as part of the tool call that it is."""
        event = mapping(payload.get("event"))
        key = str(payload.get("parent_tool_call_id") or payload.get("task_tool_call_id") or "")[:100]
        kind, inner = event.get("type"), mapping(event.get("payload"))
        if kind == "ContentPart" and inner.get("type") == "text":
            text = content.text_of(inner, content.TOOL_LIMIT)
            run = self.inner.get(key)
            if run is None:
                if text.strip() and len(self.inner) < 16:
                    self.inner[key] = [self.seq, text]
                    yield self.message(TOOL, text, at)
            elif len(run[1]) < content.TOOL_LIMIT:
                run[1] += text
                yield Message(run[0], TOOL, run[1], at)
            return
        self.inner.pop(key, None)
        text = ""
        if kind == "ToolCall":
            text = tool_calls.call_text(inner)
        elif kind == "ToolResult":
            text = _result(mapping(inner.get("return_value")))
        if text.strip():
            yield self.message(TOOL, text, at)

    def session(self) -> Optional[Session]:
        session = super().session()
        if session is not None:
            _describe(self.source, session)
        return session

    def resume(self) -> Optional[str]:
        return _resume(self.source, self.parent or self.id)


def read_context(source: Source) -> Iterator[Transcript]:
    """The model's history of a session that has no log: ``context.jsonl``, or the oldest ``<id>.jsonl``.

    Yields nothing when the log beside it tells the same. Raises OSError.
    """
    wire = os.path.join(os.path.dirname(source.path), "wire.jsonl")
    if os.path.basename(source.path) == "context.jsonl" and _has_turn(wire):
        return
    yield from whole.transcripts(
        lambda: _Context(source), lambda: jsonl.transcript(source.path), lambda _, session: _describe(source, session)
    )


class _Context(Spoken):
    def begin(self) -> None:
        super().begin()
        folder, name = os.path.split(self.source.path)
        self.id = os.path.basename(folder) if name == "context.jsonl" else name[: -len(".jsonl")]

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        role = record.get("role")
        text = "" if role == "tool" else content.text_of(record.get("content"))
        if role == "user":
            if not _CHECKPOINT.match(text):
                yield from self.user(text, None)
        elif role == "assistant":
            calls = list(tool_calls.calls(record.get("tool_calls")))
            if text.strip() or calls:
                self.count += 1
            if text.strip():
                yield self.message(ASSISTANT, text, None)
            for call in calls:
                yield from self.tool(call, None)
        elif role == "tool":
            yield from self.tool(content.output_text(record.get("content")), None)
        elif role != "system" and not (isinstance(role, str) and role.startswith("_")):
            self.unknown += 1

    def resume(self) -> Optional[str]:
        return _resume(self.source, self.id)


def _has_turn(path: str) -> bool:
    try:
        first = itertools.islice(jsonl.records(path), 200)
        return any(mapping(record.get("message")).get("type") == "TurnBegin" for record in first)
    except OSError:
        return False


def _result(value: Mapping[str, Any]) -> str:
    return content.output_text(value.get("output")) or content.text_of(value.get("message"), content.TOOL_LIMIT)


def _text(value: Any) -> str:
    return value[:_ARGUMENTS] if isinstance(value, str) else ""


def _work_folder(source: Source) -> str:
    return os.path.relpath(source.path, source.root).replace(os.sep, "/").partition("/")[0]


def _describe(source: Source, session: Session) -> None:
    """The title and working folder, which stand in files beside the log."""
    folder = os.path.dirname(source.path)
    name = documents.sidecar_object(os.path.join(folder, "state.json")).get("custom_title")
    if not isinstance(name, str) or not name:
        older = documents.sidecar_object(os.path.join(folder, "metadata.json")).get("title")
        name = older if isinstance(older, str) and older != "Untitled" else ""
    if not name and session.parent_id is not None:
        name = documents.sidecar_object(os.path.join(folder, "meta.json")).get("description")
    name = titles.title(text_or_none(name))
    if name:
        session.title = name
    session.cwd = text_or_none(registered_folder(source)) or session.cwd


def registered_folder(source: Source) -> str:
    """The working folder that ``kimi.json`` has for a session, or an empty string; also the stores' ``mark``."""
    wanted = _work_folder(source)
    for entry in items(documents.shared(os.path.join(source.home, "kimi.json")).get("work_dirs")):
        path = mapping(entry).get("path")
        if isinstance(path, str):
            digest = hashlib.md5(path.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
            if wanted == digest or wanted.endswith("_" + digest):
                return path
    return ""


def _resume(source: Source, session_id: str) -> str:
    return resume.command("kimi", "--session", session_id, env=resume.home_variable(source, "KIMI_SHARE_DIR"))
