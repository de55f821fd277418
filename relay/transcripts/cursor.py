"""Cursor CLI: transcripts as JSON Lines or as text; title, folder and times stand in the chat's ``meta.json``."""

from __future__ import annotations

import os
import re
from typing import Any, Iterable, Iterator, List, Mapping, Optional, Sequence

from relay.transcripts import content, documents, resume, times, titles, tool_calls, whole
from relay.transcripts.fold import Fold, mapping, text_or_none
from relay.transcripts.regular import opener
from relay.transcripts.types import ASSISTANT, TOOL, USER, Event, Session, Source, Transcript, Unreadable

_QUERY = re.compile(r"<user_query>(.*?)(?:</user_query>|\Z)", re.DOTALL)
_INJECTED = titles.blocks(
    "user_info",
    "git_status",
    "open_and_recently_viewed_files",
    "system_reminder",
    "attached_files",
    "project_layout",
    "rules",
    "agent_skills",
    "agent_transcripts",
    "manually_attached_skills",
    "cursor_commands",
    "timestamp",
)
_CALLS = ("tool_use", "tool_call", "tool-call")
_RESULTS = ("tool_result", "tool-result")
_SPEAKER = re.compile(r"(user|assistant):[ \t]*\Z")
_MARK = re.compile(r"\[(Thinking|Tool call|Tool result)\]\s*(.*)\Z", re.DOTALL)
_REDACTED = "[REDACTED]"
#: A text transcript beyond this is no transcript.
_TEXT_LIMIT = 64 << 20


class _Chat(Fold):
    label = "Cursor"

    def begin(self) -> None:
        folder = os.path.dirname(self.source.path)
        self.id = os.path.splitext(os.path.basename(self.source.path))[0]
        if os.path.basename(folder) == "subagents":
            self.parent = os.path.basename(os.path.dirname(folder))
        #: Whether the assistant's turn that is under way has been counted: a turn is several records.
        self.replying = False

    def user(self, text: str, at: Optional[int]) -> Iterator[Event]:
        self.replying = False
        text = query(text)
        if text:
            self.count += 1
            self.said(text)
            yield self.message(USER, text, at)

    def replied(self) -> None:
        if not self.replying:
            self.replying = True
            self.count += 1

    def session(self) -> Optional[Session]:
        if self.parent is None and not _is_main(self.source.path):
            return None
        session = super().session()
        if session is not None:
            describe(self.source, session)
        return session

    def resume(self) -> Optional[str]:
        return resume.command("cursor-agent", "--resume", self.parent or self.id)


class JsonlReader(_Chat):
    """``<id>.jsonl``: records of a role and blocks, without ids and mostly without times."""

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        at = self.saw(record.get("timestamp"))
        role = record.get("role")
        if role not in ("user", "assistant"):
            if record.get("type") not in ("turn_ended", "turn_started"):
                self.unknown += 1
            return
        body = mapping(record.get("message")).get("content", record.get("content"))
        blocks = body if isinstance(body, list) else [body]
        spoken: List[str] = []
        tools: List[str] = []
        for block in blocks:
            kind = block.get("type") if isinstance(block, dict) else None
            if kind in _CALLS:
                tools.append(tool_calls.call_text(block))
            elif kind in _RESULTS:
                tools.append(content.output_text(block.get("content", block.get("output"))))
            elif kind in ("thinking", "redacted_thinking"):
                continue
            else:
                text = block if isinstance(block, str) else content.block_text(block)
                if not text and isinstance(block, dict) and isinstance(block.get("text"), str):
                    self.unknown += 1  # a kind of block that is not known, but shows text
                    text = block["text"]
                spoken.append(content.text_of(text))
        text = "\n".join(part for part in spoken if part.strip())
        if role == "user":
            yield from self.user(text, at)
        elif text and text.strip() != _REDACTED:
            self.replied()
            yield self.message(ASSISTANT, text, at)
        elif any(tools):
            self.replied()
        for tool in tools:
            if tool.strip():
                yield self.message(TOOL, tool, at)


def read_text(source: Source) -> Iterator[Transcript]:
    """``<id>.txt``; nothing when the same transcript is there as JSON Lines. Raises Unreadable, OSError."""
    if os.path.exists(os.path.splitext(source.path)[0] + ".jsonl"):
        return
    if os.stat(source.path).st_size > _TEXT_LIMIT:
        raise Unreadable(f"The text is over {_TEXT_LIMIT >> 20} MiB.")
    yield from whole.transcripts(lambda: _Text(source), lambda: _paragraphs(source.path))


class _Text(_Chat):
    """Fold over the paragraphs of a text transcript."""

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        role, kind, text = record["role"], record["kind"], content.text_of(record["text"]).strip()
        if kind == "Thinking" or not text:
            return
        if kind:
            if role == "assistant":
                self.replied()
            yield self.message(TOOL, text, None)
        elif role == "user":
            yield from self.user(text, None)
        elif text != _REDACTED:
            self.replied()
            yield self.message(ASSISTANT, text, None)


def _paragraphs(path: str) -> Iterator[Mapping[str, str]]:
    """``{role, kind, text}`` for each speaker's text, and for each marked part of it (``kind`` is the mark)."""
    role, kind = "", ""
    lines: List[str] = []

    def done() -> Iterator[Mapping[str, str]]:
        if role and "".join(lines).strip():
            yield {"role": role, "kind": kind, "text": "".join(lines)}
        lines.clear()

    with open(path, encoding="utf-8-sig", errors="replace", newline=None, opener=opener) as file:
        before = ""
        for line in file:
            speaker = _SPEAKER.match(line.rstrip("\n"))
            mark = _MARK.match(line) if role else None
            if speaker is not None and not before.strip():
                yield from done()
                role, kind = speaker.group(1), ""
            elif mark is not None:
                yield from done()
                kind = mark.group(1)
                lines.append(mark.group(2))
            else:
                if kind and kind != "Thinking" and line.strip() and not line[0].isspace():
                    yield from done()  # what is not indented is no longer the tool's
                    kind = ""
                elif kind == "Thinking" and not line.strip():
                    yield from done()
                    kind = ""
                lines.append(line)
            before = line
    yield from done()


def query(text: str) -> str:
    """What the person typed: the inside of every ``<user_query>``, else the text without injected blocks."""
    found = [inner.strip() for inner in _QUERY.findall(text)]
    return "\n\n".join(part for part in found if part) if found else titles.visible(text, _INJECTED)


def _is_main(path: str) -> bool:
    """A transcript in a folder of its own bears the folder's name; what else lies there is none."""
    folder = os.path.basename(os.path.dirname(path))
    return folder in ("agent-transcripts", os.path.splitext(os.path.basename(path))[0])


def describe(source: Source, session: Session) -> None:
    """Title, folder and times from ``chats/<md5 of the folder>/<id>/meta.json``; else what the paths tell."""
    found = _meta(source, session.session_id)
    meta = documents.sidecar_object(found) if found else {}
    session.title = titles.title(text_or_none(meta.get("title"))) or session.title
    session.cwd = text_or_none(meta.get("cwd")) or session.cwd
    if session.created_at is None:
        session.created_at = times.millis(meta.get("createdAtMs"))
        session.updated_at = times.millis(meta.get("updatedAtMs")) or session.updated_at
    if session.cwd is None:
        slug = os.path.relpath(source.path, source.root).split(os.sep)[0]
        session.cwd = text_or_none(folder_of_slug(slug))


def files(source: Source) -> Sequence[str]:
    """The ``meta.json`` of the transcript's chat, for ``Store.files``; none while there is none."""
    found = _meta(source, os.path.splitext(os.path.basename(source.path))[0])
    return [found] if found else []


def _meta(source: Source, session_id: str) -> Optional[str]:
    chats = os.path.join(source.home, "chats")
    try:
        names = sorted(os.listdir(chats))
    except OSError:
        return None
    paths = (os.path.join(chats, name, session_id, "meta.json") for name in names)
    return next((path for path in paths if os.path.exists(path)), None)


def folder_of_slug(slug: str, top: str = "/") -> Optional[str]:
    """The folder below ``top`` whose path is spelled ``slug`` (all punctuation as ``-``), when there is just one."""
    found = _folders(top, slug, 24)
    first = next(found, None)
    return first if first is not None and next(found, None) is None else None


def _folders(folder: str, slug: str, depth: int) -> Iterator[str]:
    if depth == 0:
        return
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
    except OSError:
        return
    for name in names:
        spelled = re.sub(r"[^A-Za-z0-9]", "-", name)
        for spelling in {spelled, spelled.lstrip("-")}:
            if spelling and slug == spelling:
                yield os.path.join(folder, name)
            elif spelling and slug.startswith(spelling + "-"):
                yield from _folders(os.path.join(folder, name), slug[len(spelling) + 1 :], depth - 1)
