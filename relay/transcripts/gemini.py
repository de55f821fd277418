"""Gemini CLI: a JSON document, or a log of operations that is replayed to what they leave."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from typing import Any, BinaryIO, Dict, Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Type

from relay.transcripts import content, documents, jsonl, resume, times, titles, tool_calls, whole
from relay.transcripts.fold import Fold, items, mapping, text_or_none
from relay.transcripts.regular import opener
from relay.transcripts.types import (
    ASSISTANT,
    SYSTEM,
    TOOL,
    USER,
    Event,
    Incomplete,
    Session,
    Source,
    Transcript,
    Unreadable,
)

_INJECTED = titles.blocks("session_context", "hook_context")
_SETUP = "This is the Gemini CLI. We are setting up the context"
_CONTINUE = re.compile(r"\s*System: Please continue\.\s*\Z")
_NOTICES = ("info", "error", "warning")


def read(source: Source, chat: Optional[Type["Chat"]] = None) -> Iterator[Transcript]:
    """The session of one file of a ``chats`` folder. Raises Unreadable, OSError."""
    start = chat or Chat
    if source.path.endswith(".jsonl"):
        yield from whole.transcripts(lambda: start(source), lambda: _replayed(source.path))
    else:
        yield from whole.transcripts(lambda: start(source), lambda: _document(source.path))


def _document(path: str) -> Iterator[Mapping[str, Any]]:
    head: Dict[str, Any] = {}
    for name, value in documents.members(path, "messages", "history"):
        if name == "":
            raise Unreadable("The document is an array, not a session.")
        if name not in ("messages", "history"):
            head[name] = value
        elif isinstance(value, dict):
            yield value
    yield {"$head": head}


class Chat(Fold):
    """Fold over messages; a record ``{"$head": {…}}`` gives the session's own fields."""

    label = "Gemini"
    #: The variable that moves the agent's home, and the command that reopens a session.
    variable, program = "GEMINI_CLI_HOME", "gemini"

    def begin(self) -> None:
        self.head: Dict[str, Any] = {}
        self.known = False
        #: Ids of calls that were told with their results.
        self.answered: Set[str] = set()
        folder = os.path.dirname(self.source.path)
        self.id = os.path.splitext(os.path.basename(self.source.path))[0]
        if os.path.basename(folder) != "chats":
            self.parent = os.path.basename(folder)

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        if "$head" in record:
            self.head.update(record["$head"])
            return
        kind = record.get("type") or record.get("role")
        at = self.saw(record.get("timestamp") or record.get("ts"))
        parts = record.get("content") if record.get("content") is not None else record.get("parts")
        if kind == "user":
            yield from self._user(record, parts, at)
        elif kind in ("gemini", "qwen", "model", "assistant"):
            text = content.text_of(_spoken(parts))
            calls = [call for call in items(record.get("toolCalls")) if isinstance(call, dict)]
            if text.strip():
                yield self.message(ASSISTANT, text, at)
            inline = [] if calls else list(self._functions(parts))
            for tool in inline:
                yield self.message(TOOL, tool, at)
            for call in calls:
                then, result = times.millis(call.get("timestamp")) or at, _result(call)
                if result and isinstance(call.get("id"), str):
                    self.answered.add(call["id"])
                for tool in (tool_calls.call_text(call), result):
                    if tool.strip():
                        yield self.message(TOOL, tool, then)
            if text.strip() or calls or inline:
                self.count += 1
        elif kind in _NOTICES:
            text = content.text_of(parts)
            if text.strip():
                yield self.message(SYSTEM, text, at)
        else:
            self.unknown += 1

    def _user(self, record: Mapping[str, Any], parts: Any, at: Optional[int]) -> Iterator[Event]:
        shown = record.get("displayContent")
        text = content.text_of(_spoken(shown)) if shown is not None else ""
        typed = bool(text.strip())
        if not typed:
            text = content.text_of(_spoken(parts))
        text = titles.visible(text, _INJECTED)
        if text.startswith(_SETUP) or (shown is not None and not typed and _CONTINUE.match(text)):
            text = ""
        if text:
            if not text.startswith(("/", "?")):  # a command of the program makes no session
                self.said(text)
                self.count += 1
            yield self.message(USER, text, at)
        for tool in self._functions(parts):
            yield self.message(TOOL, tool, at)

    def _functions(self, parts: Any) -> Iterator[str]:
        """Calls among the parts, and answers that were not told with their call."""
        for part in parts if isinstance(parts, list) else [parts]:
            call, answer = mapping(mapping(part).get("functionCall")), mapping(mapping(part).get("functionResponse"))
            text = tool_calls.call_text(call) or _response(answer)
            name = answer.get("id")
            if text.strip() and not (isinstance(name, str) and name in self.answered):
                yield text

    def session(self) -> Optional[Session]:
        head = self.head
        named = text_or_none(head.get("sessionId"))
        self.known = named is not None
        self.id = named or self.id
        if self.parent is not None:
            own = os.path.splitext(os.path.basename(self.source.path))[0]
            self.id = f"{self.parent}/{own}" if self.id in (self.parent, own) else self.id
        summary = head.get("summary")
        self.name = summary if isinstance(summary, str) else ""
        started = times.millis(head.get("startTime") or head.get("start_time"))
        self.created = started or self.created
        self.updated = times.millis(head.get("lastUpdated")) or self.updated
        self.cwd = folder_of_project(self.source, head)
        return super().session()

    def resume(self) -> Optional[str]:
        if not self.known and self.parent is None:
            return None  # the file's name is no id that the program takes
        moved = {} if self.source.default_home else {self.variable: os.path.dirname(self.source.home)}
        return resume.command(self.program, "--resume", self.parent or self.id, env=moved)


class _Place(NamedTuple):
    """Where a message's last version stands: an offset in front of its record, its id, the place in a ``$set`` list."""

    offset: int
    name: Optional[str]
    item: int = -1


def _replayed(path: str) -> Iterator[Mapping[str, Any]]:
    """The messages that the operations in a ``.jsonl`` leave, in order; only their places are held meanwhile."""
    order: Dict[str, _Place] = {}
    head: Dict[str, Any] = {}
    with open(path, "rb", opener=opener) as file:
        lines = jsonl.Lines(file)
        offset, number = 0, -1
        for number, record in enumerate(lines):
            rewind, changes, name = record.get("$rewindTo"), record.get("$set"), record.get("id")
            if isinstance(rewind, str):
                _rewind(order, rewind)
            elif isinstance(name, str):
                order[name] = _Place(offset, name)  # again: replaced where it first stood
            elif isinstance(changes, dict):
                head.update((field, value) for field, value in changes.items() if field != "messages")
                if isinstance(changes.get("messages"), list):
                    order = {}  # a checkpoint: all there is
                    order.update(_places(offset, number, changes["messages"]))
            elif isinstance(record.get("type"), str):
                order[f"#{number}"] = _Place(offset, None)
            elif "sessionId" in record or "projectHash" in record:
                head.update((field, value) for field, value in record.items() if field != "messages")
                order.update(_places(offset, number, items(record.get("messages"))))
            else:
                yield record  # nothing known; the fold counts it
            offset = lines.offset
        held, source = -1, {}
        for place in order.values():
            if place.item < 0 or place.offset != held:  # the messages of one list come from one line
                source, held = _at(file, place), place.offset
            if place.item < 0:
                yield source
            elif place.item < len(_listed(source)):
                yield mapping(_listed(source)[place.item])
    if head or order:
        yield {"$head": head}
    else:
        with contextlib.suppress(Unreadable):  # a document under the name of a log, written over several lines
            yield from _document(path)
            return
    problem = jsonl.fault(lines.oversized, lines.skipped, number + 1)
    if problem is not None:
        raise Incomplete(problem)


def _listed(record: Mapping[str, Any]) -> Sequence[Any]:
    """The messages that a checkpoint, or the record of a whole session, brings along."""
    return items(mapping(record.get("$set")).get("messages")) or items(record.get("messages"))


def _places(offset: int, number: int, messages: Sequence[Any]) -> Iterator[Tuple[str, _Place]]:
    for item, message in enumerate(messages):
        yield str(mapping(message).get("id") or f"#{number}/{item}"), _Place(offset, None, item)


def _at(file: BinaryIO, place: _Place) -> Dict[str, Any]:
    """The record at a place: the first from its offset on that can be meant, since a line may hold several."""
    file.seek(place.offset)
    for record in jsonl.Lines(file, place.offset):
        if record.get("id") == place.name and bool(_listed(record)) == (place.item >= 0):
            return record
    return {}


def _rewind(order: Dict[str, _Place], name: str) -> None:
    """Takes back the message called ``name`` and all after it; every message when there is none of that name."""
    names = list(order)
    for later in names[names.index(name) if name in order else 0 :]:
        del order[later]


def _spoken(parts: Any) -> Any:
    """The parts without the model's thoughts."""
    if isinstance(parts, dict):
        parts = [parts]
    return [part for part in parts if not mapping(part).get("thought")] if isinstance(parts, list) else parts


def _response(answer: Mapping[str, Any]) -> str:
    response = answer.get("response")
    inner = mapping(response)
    return content.output_text(inner.get("output") or inner.get("error") or response)


def _result(call: Mapping[str, Any]) -> str:
    """A call's output: what the model was given, else what the user was shown."""
    result = call.get("result")
    if isinstance(result, list):
        text = "\n".join(
            _response(inner) if (inner := mapping(mapping(part).get("functionResponse"))) else content.text_of(part)
            for part in result
        )
    else:
        text = content.output_text(result)
    return text if text.strip() else content.output_text(call.get("resultDisplay"))


def registered_folder(source: Source) -> str:
    """The project's folder as far as it stands outside the session; the store's ``mark``."""
    return folder_of_project(source, {}) or ""


def folder_of_project(source: Source, head: Mapping[str, Any]) -> Optional[str]:
    """The project's folder: from its marker, from the register of projects, or the known folder with the right hash."""
    project = os.path.relpath(source.path, source.root).split(os.sep)[0]
    try:
        path = os.path.join(source.root, project, ".project_root")
        with open(path, encoding="utf-8", opener=opener) as marker:
            path = marker.read(4096).strip()
            if path:
                return text_or_none(path)
    except (OSError, ValueError):
        pass
    projects = mapping(documents.shared(os.path.join(source.home, "projects.json")).get("projects"))
    for path, slug in projects.items():
        if slug == project:
            return text_or_none(path)
    added = [path for path in items(head.get("directories")) if isinstance(path, str)]
    trusted = documents.shared(os.path.join(source.home, "trustedFolders.json"))
    wanted = (project, head.get("projectHash"))
    for path in [*projects, *added, *trusted]:
        if hashlib.sha256(path.encode("utf-8", "replace")).hexdigest() in wanted:
            return text_or_none(path)
    return text_or_none(added[0]) if added else None
