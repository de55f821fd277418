"""Messages as the AI SDK keeps them: the shape of grok-cli's rows and of the blobs in Cursor's chats."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping, Optional

from relay.transcripts import content, titles
from relay.transcripts.fold import Fold, mapping
from relay.transcripts.tool_calls import call_text, result_text
from relay.transcripts.types import ASSISTANT, SYSTEM, TOOL, USER, Event, Message


class AiSdk(Fold):
    """One session: records are messages of the AI SDK, ``{role, content: text | [block, …], at}``."""

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        role = record.get("role")
        if role not in (USER, ASSISTANT, TOOL, SYSTEM):
            self.unknown += 1
            return
        if role == SYSTEM:
            return
        at = self.saw(record.get("at"))
        blocks = record.get("content")
        spoke = False
        for block in blocks if isinstance(blocks, list) else [{"type": "text", "text": blocks}]:
            for message in self._block(str(role), mapping(block), at):
                spoke = spoke or message.role == role or role == ASSISTANT
                yield message
        if spoke and role in (USER, ASSISTANT):
            self.count += 1

    def _block(self, role: str, block: Mapping[str, Any], at: Optional[int]) -> Iterator[Message]:
        kind = block.get("type")
        words = ""
        if kind == "tool-call":
            role, words = TOOL, call_text(block)
        elif kind == "tool-result":
            output = next((block[key] for key in ("output", "result", "content") if block.get(key)), None)
            role, words = TOOL, result_text(output)
        elif kind == "file" or kind == "image":
            mime = block.get("mediaType") or block.get("mimeType")
            words = content.image(mime, block.get("data") or block.get("image"))
        elif kind == "text":
            words = content.text_of(block.get("text"))
            if role == USER:
                words = self.typed(words)
                self.said(titles.visible(words))
            elif role == TOOL:
                words = content.output_text(words)
        elif kind not in ("reasoning", "redacted-reasoning"):
            self.unknown += 1
        if words.strip():
            yield self.message(role, words, at)

    def typed(self, words: str) -> str:
        """What a person typed, of a user message's text."""
        return words
