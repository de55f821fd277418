"""Amp: one JSON document for each thread that is kept on this machine."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Iterator, Mapping, Optional
from urllib.parse import unquote, urlsplit

from relay.transcripts import content, documents, resume, times, whole
from relay.transcripts.anthropic import Blocks
from relay.transcripts.fold import items, mapping, text_or_none
from relay.transcripts.types import Event, Session, Source, Transcript


def read(source: Source) -> Iterator[Transcript]:
    """The thread in ``T-….json``. Raises Unreadable, OSError."""
    yield from whole.transcripts(lambda: _Thread(source), lambda: _records(source.path))


def _records(path: str) -> Iterator[Mapping[str, Any]]:
    head: Dict[str, Any] = {}
    for name, value in documents.members(path, "messages"):
        if name == "messages" and isinstance(value, dict):
            yield value
        elif name in ("created", "title", "env", "meta"):
            head[name] = value
    yield {"$head": head}


class _Thread(Blocks):
    label = "Amp"

    def begin(self) -> None:
        self.id = os.path.splitext(os.path.basename(self.source.path))[0]

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        if "$head" not in record:
            return super().feed(record)
        head = record["$head"]
        self.name = head["title"] if isinstance(head.get("title"), str) else ""
        self.saw(head.get("created"))
        self.cwd = _folder(head)
        ends = [self.saw(mapping(trace).get("endTime")) for trace in items(mapping(head.get("meta")).get("traces"))]
        known = [end for end in ends if end is not None]
        if known:
            self.updated = max(known)
        return ()

    def at(self, record: Mapping[str, Any]) -> Optional[int]:
        sent = times.millis(mapping(record.get("meta")).get("sentAt"))
        return self.saw(sent or mapping(record.get("usage")).get("timestamp"))

    def result(self, block: Mapping[str, Any]) -> str:
        run = block.get("run")
        if not isinstance(run, dict):
            return content.output_text(block.get("content"))
        result = run.get("result")
        for name in ("output", "content", "diff"):
            shown = mapping(result).get(name)
            if shown:
                return content.output_text(shown)
        return content.output_text(result) or content.output_text(run.get("error"))

    def session(self) -> Optional[Session]:
        session = super().session()
        if session is not None and session.updated_at == session.created_at:
            # No message carries a time: the file's own is the nearest there is.
            session.updated_at = max(times.modified(self.source.path) or 0, session.updated_at or 0) or None
        return session

    def resume(self) -> Optional[str]:
        return resume.command("amp", "threads", "continue", self.id, env=resume.data_home(self.source, "amp"))


def _folder(head: Mapping[str, Any]) -> Optional[str]:
    """The first working tree's folder, from its ``file:`` address."""
    for tree in items(mapping(mapping(head.get("env")).get("initial")).get("trees"))[:1]:
        address = mapping(tree).get("uri")
        if isinstance(address, str):
            parts = urlsplit(address)
            if parts.scheme == "file":
                return text_or_none(unquote(parts.path))
            if address.startswith("/"):
                return text_or_none(address)
    return None
