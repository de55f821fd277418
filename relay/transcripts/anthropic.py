"""Messages in the Anthropic form (a role and blocks), as several agents keep them."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, List, Mapping, Optional

from relay.transcripts import content, titles, tool_calls
from relay.transcripts.fold import Fold, mapping
from relay.transcripts.types import ASSISTANT, TOOL, USER, Event

_CALLS = ("tool_use", "server_tool_use")
_RESULTS = ("tool_result", "web_search_tool_result")
_SILENT = ("thinking", "redacted_thinking", "reasoning")


class Blocks(Fold):
    """Fold over records of ``role`` and ``content``; a subclass says when a record was said and what a user typed."""

    def at(self, record: Mapping[str, Any]) -> Optional[int]:
        """The record's time in epoch milliseconds, taken into the session's."""
        return self.saw(record.get("ts"))

    def user(self, text: str, at: Optional[int]) -> Iterator[Event]:
        """A user's turn with this text; nothing when only injected text is in it."""
        text = titles.visible(text)
        if text:
            self.count += 1
            self.said(text)
            yield self.message(USER, text, at)

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        role, body = record.get("role"), record.get("content")
        if role not in ("user", "assistant"):
            if role not in ("system", "developer"):
                self.unknown += 1
            return
        at = self.at(record)
        results: List[str] = []  # they answer what was called before this was said
        spoken: List[str] = []
        tools: List[str] = []
        for block in body if isinstance(body, list) else [body]:
            fields = mapping(block)
            kind = fields.get("type")
            if kind in _CALLS:
                tools.append(tool_calls.call_text(block))
            elif kind in _RESULTS:
                results.append(self.result(fields))
            elif kind == "file":
                tools.append(content.call_text(fields.get("path"), fields.get("content")))
            elif kind not in _SILENT:
                text = content.text_of(block)
                spoken.append(text)
                if not text and fields and kind != "text":
                    self.unknown += 1
        yield from self._tools(results, at)
        text = "\n".join(part for part in spoken if part.strip())
        if role == "assistant":
            if text or tools:
                self.count += 1
            if text:
                yield self.message(ASSISTANT, text, at)
        elif text:
            yield from self.user(text, at)
        yield from self._tools(tools, at)

    def _tools(self, texts: List[str], at: Optional[int]) -> Iterator[Event]:
        for text in texts:
            if text.strip():
                yield self.message(TOOL, text, at)

    def result(self, block: Mapping[str, Any]) -> str:
        """The text of a tool's output."""
        return content.output_text(block.get("content"))
