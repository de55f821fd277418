"""Pi (pi-coding-agent): a tree of entries, one JSONL file a session; also the form of several agents made from it."""

from __future__ import annotations

import os
from typing import Any, List, Mapping, Optional, Sequence

from relay.transcripts import content, resume, titles
from relay.transcripts.fold import kind_of, mapping
from relay.transcripts.tree import TreeFold
from relay.transcripts.types import ASSISTANT, SYSTEM, TOOL, USER, Event

_SILENT = frozenset("model_change thinking_level_change custom label".split())


class PiReader(TreeFold):
    """Follows the active branch; forks share the entries that they copied."""

    label = "Pi"
    program, option, variable = "pi", "--session", "PI_CODING_AGENT_DIR"
    #: Entry types that hold nothing to search.
    silent = _SILENT

    def begin(self) -> None:
        super().begin()
        stem = os.path.splitext(os.path.basename(self.source.path))[0]
        self.id = stem.rpartition("_")[2]

    def entry(self, record: Mapping[str, Any]) -> Sequence[Event]:
        kind = kind_of(record)
        at = self.saw(record.get("timestamp"))
        if kind == "message":
            message = mapping(record.get("message"))
            if at is None:
                at = self.saw(message.get("timestamp"))
            self.mark(record.get("id"), record.get("timestamp"), message.get("content"))
            return self._message(message, at)
        if kind == "session":
            self.header(record)
        elif kind == "session_info":
            self.name = titles.title(record.get("name"))
        elif kind in ("compaction", "branch_summary"):
            return self._notice(record.get("summary"), at)
        elif kind == "custom_message":
            return self._notice(record.get("content"), at) if record.get("display") else ()
        elif kind not in self.silent:
            self.unknown += 1
        return ()

    def header(self, record: Mapping[str, Any]) -> None:
        """Takes the session's own record."""
        if isinstance(record.get("id"), str) and record["id"]:
            self.id = record["id"]
        if isinstance(record.get("cwd"), str):
            self.cwd = record["cwd"] or None

    def typed(self, text: str) -> str:
        """What a person typed of a user message's text."""
        return titles.visible(text)

    def _message(self, message: Mapping[str, Any], at: Optional[int]) -> Sequence[Event]:
        role, body = message.get("role"), message.get("content")
        if role == "user":
            text = self.typed(content.text_of(body))
            if not text:
                return ()
            self.count += 1
            if not text.startswith("[image "):
                self.said(text)
            return (self.message(USER, text, at),)
        if role == "assistant":
            return self._reply(body, at)
        if role == "toolResult":
            text = content.output_text(body)
        elif role == "bashExecution":
            output = content.text_of(message.get("output"), content.TOOL_LIMIT)
            text = f"{content.call_text('bash', message.get('command'))}\n{output}"
        elif role in ("custom", "hookMessage"):
            return self._notice(body, at) if message.get("display") else ()
        elif role in ("branchSummary", "compactionSummary", "system"):
            return self._notice(body if body is not None else message.get("summary"), at)
        else:
            self.unknown += 1
            return ()
        return (self.message(TOOL, text, at),) if text.strip() else ()

    def _reply(self, body: Any, at: Optional[int]) -> Sequence[Event]:
        blocks = body if isinstance(body, list) else [body]
        text = "\n".join(filter(None, (content.text_of(block) for block in blocks)))
        events: List[Event] = []
        if text.strip():
            events.append(self.message(ASSISTANT, text, at))
        for block in blocks:
            call = mapping(block)
            if call.get("type") in ("toolCall", "tool_use"):
                shown = content.call_text(call.get("name"), call.get("arguments", call.get("input")))
                if shown:
                    events.append(self.message(TOOL, shown, at))
        self.count += 1 if events else 0
        return events

    def _notice(self, body: Any, at: Optional[int]) -> Sequence[Event]:
        text = content.text_of(body)
        return (self.message(SYSTEM, text, at),) if text.strip() else ()

    def resume(self) -> Optional[str]:
        env = resume.home_variable(self.source, self.variable)
        return resume.command(self.program, self.option, self.source.path, env=env)
