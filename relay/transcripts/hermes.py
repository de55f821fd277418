"""Hermes: one session may stand in its database, in a JSON Lines file and in a JSON file."""

from __future__ import annotations

import os
import re
from typing import Any, Iterable, Iterator, Mapping, Optional

from relay.transcripts import content, jsonl, resume, times, titles
from relay.transcripts.documents import members
from relay.transcripts.fold import Fold, mapping, text_or_none
from relay.transcripts.foreign_database import parsed
from relay.transcripts.tool_calls import calls
from relay.transcripts.types import ASSISTANT, SYSTEM, TOOL, USER, Event, Source, Transcript
from relay.transcripts.whole import transcripts

_SKILL = re.compile(r'\[(?:SYSTEM|IMPORTANT): The user has invoked the "([^"]*)" skill')
_ALONGSIDE = re.compile(
    r"instruction[^:\n]{0,200}\balongside\b[^:\n]{0,200}:\s*(.*?)\s*(?:\[Runtime note:|\Z)", re.DOTALL
)
_WRITTEN_BY_HERMES = ("[CONTEXT COMPACTION", "Review the conversation above and ")
#: Before the JSON of a message that is more than text, in the database.
_JSON_MARK = "\0json:"


class Hermes(Fold):
    """One session: records are messages in the shape of OpenAI, with a ``timestamp``."""

    label = "Hermes"

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        role = record.get("role")
        # A file's times are this machine's own, without a zone.
        at = times.millis(record.get("timestamp"), local=True)
        if role == "session_meta":
            self.saw(at)
            return
        if role not in (USER, ASSISTANT, TOOL, SYSTEM):
            self.unknown += 1
            return
        if record.get("display_kind") == "hidden" or role == SYSTEM:
            return
        self.saw(at)
        words = _plain(record.get("content"))
        if role == TOOL:
            output = content.output_text(words)
            if output:
                yield self.message(TOOL, output, at)
            return
        words = content.text_of(words)
        if role == USER:
            typed = _typed(words)
            if typed:
                self.said(titles.visible(typed))
                self.count += 1
                yield self.message(USER, typed, at)
            elif words.strip():
                yield self.message(SYSTEM, words, at)
            return
        called = list(calls(_decoded(record.get("tool_calls"))))
        if words.strip():
            yield self.message(ASSISTANT, words, at)
        for call in called:
            yield self.message(TOOL, call, at)
        if words.strip() or called:
            self.count += 1

    def resume(self) -> Optional[str]:
        return resume.command("hermes", "--resume", self.id, env=resume.home_variable(self.source, "HERMES_HOME"))


def _typed(words: str) -> str:
    """What a person typed: with a skill what was given alongside it, else its name; "" for Hermes' own text."""
    stripped = words.strip()
    if stripped.startswith(_WRITTEN_BY_HERMES):
        return ""
    skill = _SKILL.match(stripped)
    if skill is None:
        return words if stripped else ""
    alongside = _ALONGSIDE.search(stripped)
    return (alongside.group(1) if alongside else "") or f"/{skill.group(1)}"


def _plain(value: Any) -> Any:
    """A message's content: text, or the list of blocks that a text holds as JSON."""
    if not isinstance(value, str):
        return value
    if value.startswith(_JSON_MARK):
        return parsed(value[len(_JSON_MARK) :])
    if value.startswith("[{"):
        found = parsed(value)
        if isinstance(found, list):
            return found
    return value


def _decoded(value: Any) -> Any:
    return parsed(value) if isinstance(value, (str, bytes)) else value


def read_lines(source: Source) -> Iterator[Transcript]:
    """The session in ``sessions/<id>.jsonl``."""

    def start() -> Hermes:
        fold = Hermes(source)
        fold.id = os.path.basename(source.path)[: -len(".jsonl")]
        return fold

    return transcripts(start, lambda: jsonl.transcript(source.path))


def read_document(source: Source) -> Iterator[Transcript]:
    """The session in ``sessions/session_<id>.json``."""
    head = {name: value for name, value in members(source.path, "messages") if name not in ("messages", "tools")}
    name = os.path.basename(source.path)[: -len(".json")]

    def start() -> Hermes:
        fold = Hermes(source)
        fold.id = text_or_none(head.get("session_id")) or re.sub(r"\Asession_", "", name)
        fold.name = text_or_none(head.get("title")) or ""
        cwd = text_or_none(head.get("cwd")) or text_or_none(mapping(head.get("model_config")).get("cwd"))
        fold.cwd = os.path.expanduser(cwd) if cwd else None
        fold.saw(times.millis(head.get("session_start"), local=True))
        fold.saw(times.millis(head.get("last_updated"), local=True))
        return fold

    return transcripts(start, lambda: _messages(source))


def _messages(source: Source) -> Iterator[Mapping[str, Any]]:
    for name, value in members(source.path, "messages"):
        if name == "messages" and isinstance(value, dict):
            yield value
