"""Droid (Factory): one append-only JSONL file a session, also in the form of its stream-json output."""

from __future__ import annotations

import os
from typing import Any, Iterable, List, Mapping, Optional

from relay.transcripts import content, resume, titles
from relay.transcripts.fold import Fold, kind_of, mapping
from relay.transcripts.types import ASSISTANT, TOOL, USER, Event

_SILENT = frozenset("todo_state compaction_state error session_end reasoning".split())
_UNNAMED = ("New Session", "Untitled Session")


class DroidReader(Fold):
    """Claude's blocks in an envelope of Droid's own."""

    label = "Droid"

    def begin(self) -> None:
        self.id = os.path.splitext(os.path.basename(self.source.path))[0]
        self.last = ""  # the start of the last reply: the completion says it once more

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        kind = kind_of(record)
        at = self.saw(record.get("timestamp"))
        if kind == "message":
            message = mapping(record.get("message")) or record
            body = message.get("content", message.get("text"))
            if message.get("role") == "user":
                return self._user(body, at)
            return self._reply(body, at) if message.get("role") == "assistant" else ()
        if kind in ("session_start", "system"):
            self._start(record)
        elif kind == "tool_call":
            name = record.get("toolName") or record.get("name") or record.get("toolId")
            return self._tool(content.call_text(name, record.get("parameters", record.get("input"))), at)
        elif kind == "tool_result":
            output = record.get("value", record.get("content", record.get("output")))
            return self._tool(content.output_text(output), at)
        elif kind == "completion":
            text = content.text_of(record.get("finalText"))
            return self._reply(text, at) if text[:1000] != self.last else ()
        elif kind not in _SILENT:
            self.unknown += 1
        return ()

    def _start(self, record: Mapping[str, Any]) -> None:
        if isinstance(record.get("cwd"), str):
            self.cwd = record["cwd"] or self.cwd
        if record.get("type") == "session_start":
            if isinstance(record.get("id"), str) and record["id"]:
                self.id = record["id"]
            for member in ("sessionTitle", "title"):
                title = record.get(member)
                title = titles.title(titles.visible(title)) if isinstance(title, str) else ""
                if title and title not in _UNNAMED:
                    self.name = title

    def _user(self, body: Any, at: Optional[int]) -> Iterable[Event]:
        events: List[Event] = []
        typed: List[str] = []
        for block in body if isinstance(body, list) else [body]:
            if mapping(block).get("type") == "tool_result":
                events.extend(self._tool(content.output_text(mapping(block).get("content")), at))
                continue
            text = titles.visible(content.text_of(block))
            if text:
                typed.append(text)
        if typed:
            self.count += 1
            self.said(next((text for text in typed if not text.startswith("[image ")), ""))
            events.append(self.message(USER, "\n".join(typed), at))
        return events

    def _reply(self, body: Any, at: Optional[int]) -> Iterable[Event]:
        blocks = body if isinstance(body, list) else [body]
        text = "\n".join(filter(None, (content.text_of(block) for block in blocks)))
        events: List[Event] = []
        if text.strip():
            self.last = text[:1000]
            events.append(self.message(ASSISTANT, text, at))
        for block in blocks:
            if mapping(block).get("type") == "tool_use":
                events.extend(self._tool(content.call_text(block.get("name"), block.get("input")), at))
        self.count += 1 if events else 0
        return events

    def _tool(self, text: str, at: Optional[int]) -> Iterable[Event]:
        return (self.message(TOOL, text, at),) if text.strip() else ()

    def resume(self) -> Optional[str]:
        return resume.command("droid", "--resume", self.id)
