"""Antigravity CLI: the step log of a conversation, or a conversation that was exported; the rest it keeps is sealed."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional

from relay.transcripts import content, documents, jsonl, titles, tool_calls, whole
from relay.transcripts.fold import Fold, items, mapping, text_or_none
from relay.transcripts.types import ASSISTANT, SYSTEM, TOOL, USER, Event, Source, Transcript, Unreadable

_REQUEST = re.compile(r"<USER_REQUEST>(.*?)(?:</USER_REQUEST>|\Z)", re.DOTALL)
_INJECTED = titles.blocks("USER_SETTINGS_CHANGE", "ADDITIONAL_METADATA", "USER_INFORMATION", "SYSTEM_MESSAGE")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
#: Folders that every conversation has.
_SHARED = ("brain", "conversations", ".system_generated", "logs")
_SILENT = ("CONVERSATION_HISTORY", "CHECKPOINT", "SYSTEM_MESSAGE", "EPHEMERAL_MESSAGE")
_SOURCES = ("MODEL", "SYSTEM", "USER_EXPLICIT", "USER_IMPLICIT", "USER")


def read(source: Source) -> Iterator[Transcript]:
    """The conversation in one file; nothing when a fuller log of it lies beside. Raises Unreadable, OSError."""
    folder, name = os.path.split(source.path)
    if name.endswith(".json"):
        yield from whole.transcripts(lambda: _Exported(source), lambda: _exported(source.path))
        return
    full = os.path.join(folder, name[: -len(".jsonl")] + "_full.jsonl")
    if not os.path.exists(full):
        yield from whole.transcripts(lambda: _Steps(source), lambda: jsonl.transcript(source.path))


class _Conversation(Fold):
    label = "Antigravity"

    def begin(self) -> None:
        below = os.path.relpath(self.source.path, self.source.root).split(os.sep)
        stem = os.path.splitext(below[-1])[0]
        # A log is called like every other one: what tells it from them is the folder of its conversation.
        folders = [part for part in below[1:-1] if part not in _SHARED]
        named = [part for part in folders if _UUID.match(part)] or (folders if stem.startswith("transcript") else [])
        self.id = named[-1] if named else stem

    def user(self, text: str, at: Optional[int]) -> Iterator[Event]:
        asked = [inner.strip() for inner in _REQUEST.findall(text)]
        text = "\n\n".join(filter(None, asked)) if asked else titles.visible(text, _INJECTED)
        if text:
            self.count += 1
            self.said(text)
            yield self.message(USER, text, at)

    def assistant(self, text: str, calls: List[str], at: Optional[int]) -> Iterator[Event]:
        if text.strip():
            yield self.message(ASSISTANT, text, at)
        for call in calls:
            yield self.message(TOOL, call, at)
        if text.strip() or calls:
            self.count += 1


class _Steps(_Conversation):
    """Fold over the steps: what was asked, what the planner answered, and what each tool gave."""

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        kind, origin = record.get("type"), record.get("source")
        if not isinstance(kind, str):
            self.unknown += 1
            return
        at = self.saw(record.get("created_at"))
        text = content.text_of(record.get("content"))
        if kind == "USER_INPUT":
            yield from self.user(text, at)
        elif kind == "PLANNER_RESPONSE":
            calls = [_plain_arguments(call) for call in items(record.get("tool_calls")) if isinstance(call, dict)]
            self.cwd = self.cwd or _working_folder(calls)
            yield from self.assistant(text, list(tool_calls.calls(calls)), at)
        elif kind in _SILENT:
            return
        elif kind == "ERROR_MESSAGE":
            if text.strip():
                yield self.message(SYSTEM, text, at)
        else:  # every other step is what a tool gave, and is called after the tool
            if origin not in _SOURCES:
                self.unknown += 1
            if text.strip():
                yield self.message(TOOL, content.output_text(record.get("content")), at)


class _Exported(_Conversation):
    """Fold over the messages of an exported conversation."""

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        if "$head" in record:
            self.id = text_or_none(record["$head"].get("id")) or self.id
            title = record["$head"].get("title")
            self.name = title if isinstance(title, str) else ""
            return
        role, at = record.get("role"), self.saw(record.get("created_at"))
        if role == "user":
            yield from self.user(content.text_of(record.get("content")), at)
        elif role == "assistant":
            calls = list(tool_calls.calls(record.get("tool_calls")))
            yield from self.assistant(content.text_of(record.get("content")), calls, at)
        elif role == "tool":
            text = content.output_text(record.get("content"))
            if text.strip():
                yield self.message(TOOL, text, at)
        elif role != "system":
            self.unknown += 1


def _exported(path: str) -> Iterator[Mapping[str, Any]]:
    head: Dict[str, Any] = {}
    found = False
    for name, value in documents.members(path, "messages"):
        if name == "conversation" and isinstance(value, dict):
            head.update((field, value[field]) for field in ("id", "title") if field in value)
            messages = value.get("messages")
        else:
            messages = [value] if name == "messages" else None
            if name in ("id", "title"):
                head[name] = value
        for message in items(messages):
            found = True
            if isinstance(message, dict):
                yield message
    if not found:
        raise Unreadable("The document holds no conversation.")
    yield {"$head": head}


def _plain_arguments(call: Mapping[str, Any]) -> Dict[str, Any]:
    """A call whose arguments are no longer JSON text each."""
    arguments = {}
    for name, value in mapping(call.get("args")).items():
        if isinstance(value, str) and value[:1] in ('"', "[", "{"):
            try:
                value = json.loads(value, strict=False)
            except (ValueError, RecursionError):
                pass
        arguments[name] = value
    return {**call, "args": arguments}


def _working_folder(calls: Iterable[Mapping[str, Any]]) -> Optional[str]:
    for call in calls:
        folder = call["args"].get("Cwd")
        if isinstance(folder, str) and os.path.isabs(folder):
            return folder
    return None
