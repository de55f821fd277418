"""Rovo Dev: a folder for each session with its metadata and the messages as the model got them."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional

from relay.transcripts import content, documents, resume, times, titles, tool_calls, whole
from relay.transcripts.fold import Fold, items, mapping, text_or_none
from relay.transcripts.types import ASSISTANT, TOOL, USER, Event, Session, Source, Transcript

_CALLS = ("tool-call", "builtin-tool-call")
_RESULTS = ("tool-return", "builtin-tool-return", "retry-prompt")
_SILENT = ("system-prompt", "thinking")


def read(source: Source) -> Iterator[Transcript]:
    """The session of one folder; ``source.path`` is its ``session_context.json``. Raises Unreadable, OSError."""
    names = {name for name, _ in documents.records(source.path, "messages", "message_history")}
    # Both lists may tell the same conversation: the history has the tools.
    wanted = "message_history" if "message_history" in names else "messages"
    yield from whole.transcripts(
        lambda: _Run(source),
        lambda: (record for name, record in documents.records(source.path, wanted) if name == wanted),
        lambda _, session: _describe(source, session),
    )


class _Run(Fold):
    label = "Rovo Dev"

    def begin(self) -> None:
        self.id = os.path.basename(os.path.dirname(self.source.path))

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        at = self.saw(record.get("timestamp"))
        if "parts" not in record:
            yield from self._plain(record, at)
            return
        if record.get("kind") not in ("request", "response"):
            self.unknown += 1
        spoken: List[str] = []
        tools: List[Any] = []
        for part in items(record["parts"]):
            part = mapping(part)
            kind, then = part.get("part_kind"), self.saw(part.get("timestamp")) or at
            if kind == "user-prompt":
                yield from self._user(_prompt(part.get("content")), then)
            elif kind == "text":
                spoken.append(content.text_of(part.get("content")))
            elif kind in _CALLS:
                tools.append((tool_calls.call_text(part), then))
            elif kind in _RESULTS:
                tools.append((content.output_text(part.get("content")), then))
            elif kind not in _SILENT:
                self.unknown += 1
        text = "\n".join(part for part in spoken if part.strip())
        if text or (tools and record.get("kind") == "response"):
            self.count += 1
        if text:
            yield self.message(ASSISTANT, text, at)
        for tool, then in tools:
            if tool.strip():
                yield self.message(TOOL, tool, then)

    def _plain(self, record: Mapping[str, Any], at: Optional[int]) -> Iterator[Event]:
        role, text = record.get("role"), content.text_of(record.get("content"))
        if role == "user":
            yield from self._user(text, at)
        elif role == "assistant":
            if text.strip():
                self.count += 1
                yield self.message(ASSISTANT, text, at)
        elif role == "tool":
            if text.strip():
                yield self.message(TOOL, text, at)
        elif role != "system":
            self.unknown += 1

    def _user(self, text: str, at: Optional[int]) -> Iterator[Event]:
        text = titles.visible(text)
        if text:
            self.count += 1
            self.said(text)
            yield self.message(USER, text, at)

    def resume(self) -> Optional[str]:
        return resume.command("acli", "rovodev", "run", "--restore", self.id)


def _prompt(value: Any) -> str:
    """A prompt's text; pictures among its parts are named."""
    if not isinstance(value, list):
        return content.text_of(value)
    parts: List[str] = []
    for part in value:
        part_kind = mapping(part).get("kind")
        if part_kind == "binary":
            parts.append(content.image(part.get("media_type"), part.get("data")))
        elif part_kind == "image-url":
            parts.append(content.image(None, part.get("url")))
        else:
            parts.append(content.text_of(part))
    return "\n".join(filter(None, parts))


def _describe(source: Source, session: Session) -> None:
    metadata: Dict[str, Any] = documents.sidecar_object(os.path.join(os.path.dirname(source.path), "metadata.json"))
    for name in ("summary", "name", "title"):
        session.title = titles.title(text_or_none(metadata.get(name))) or session.title
    for name in ("workspace_path", "workspacePath", "workspace", "cwd"):
        session.cwd = session.cwd or text_or_none(metadata.get(name))
    session.created_at = times.millis(metadata.get("created_at")) or session.created_at
    session.updated_at = times.millis(metadata.get("updated_at")) or session.updated_at
