"""GitHub Copilot CLI: a log of events, one file a session, with a small YAML file of the session's own beside it."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional

from relay.transcripts import content, documents, resume, titles, whole
from relay.transcripts.fold import Fold, kind_of, mapping
from relay.transcripts.regular import opener
from relay.transcripts.types import ASSISTANT, TOOL, USER, Event, Session, Source, Transcript

_TRUSTED = re.compile(r"Folder (.+) has been added to trusted folders\.")
#: Families of events that hold nothing to search.
_SILENT = ("session.", "assistant.", "tool.", "hook.", "system.", "subagent.", "abort", "skill.", "permission.")
_CALLS = 100
#: Where the oldest documents keep the turns, the first that is there having all of them.
TOLD = ("history", "timeline", "chatMessages")


class CopilotReader(Fold):
    """What was typed, not what was made of it for the model; a tool call once, though it is announced twice."""

    label = "Copilot"

    def begin(self) -> None:
        stem = os.path.splitext(os.path.basename(self.source.path))[0]
        if stem == "events":
            stem = os.path.basename(os.path.dirname(self.source.path))
        self.id = stem
        self.calls: List[str] = []

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        kind = kind_of(record)
        at = self.saw(record.get("timestamp"))
        data = record.get("data")
        if not isinstance(data, dict):
            turns = next((told for told in map(record.get, TOLD) if told and isinstance(told, list)), None)
            return self._flat(record, at) if turns is None else self._document(record, turns)
        if kind == "user.message":
            source = data.get("source")
            if isinstance(source, str) and source.startswith("skill-"):
                return ()
            return self._user(data.get("content"), at)
        if kind == "assistant.message":
            return self._reply(data, at)
        if kind == "tool.execution_start":
            return self._call(data.get("toolCallId"), data.get("toolName"), data.get("arguments"), at)
        if kind == "tool.execution_complete":
            result = data.get("result") if data.get("result") is not None else data.get("error")
            inner = mapping(result)
            return self._tool(content.output_text(inner.get("content", inner.get("message", result))), at)
        if kind in ("session.start", "session.resume"):
            self._place(mapping(data.get("context")))
            self.saw(data.get("startTime"))
        elif kind == "session.info" and self.cwd is None:
            match = _TRUSTED.match(str(data.get("message")))
            self.cwd = match.group(1) if match else None
        elif kind == "session.title_changed":
            self.name = titles.title(data.get("title"))
        elif not isinstance(kind, str) or not kind.startswith(_SILENT):
            self.unknown += 1
        return ()

    def _flat(self, record: Mapping[str, Any], at: Optional[int]) -> Iterable[Event]:
        """Events of old files, whose members stand in the record itself; and the turns of old documents."""
        kind = str(record.get("type") or record.get("role") or "").lower()
        self._place(record)
        text = next(filter(None, map(record.get, ("prompt", "content", "text", "result", "output"))), None)
        if kind in ("user.message", "userpromptsubmitted", "user", "human"):
            return self._user(text, at)
        if kind in ("assistantresponse", "assistant.message", "assistant", "copilot", "model"):
            return self._reply({"content": text, "toolRequests": record.get("tool_calls")}, at)
        if kind in ("tool_call_completed", "tool_call"):
            events = list(self._call(record.get("callId"), record.get("name"), record.get("arguments"), at))
            result = mapping(record.get("result"))
            output = result.get("log", result.get("content", record.get("result")))
            return events + list(self._tool(content.output_text(output), at))
        if kind == "tool":
            return self._tool(content.output_text(text), at)
        if kind not in ("info", "error", "system", "", "tool_call_requested"):
            self.unknown += 1
        return ()

    def _document(self, record: Mapping[str, Any], turns: List[Any]) -> Iterable[Event]:
        """A whole session of the oldest kind on one line."""
        self._place(record)
        self.saw(record.get("startTime"))
        for turn in filter(None, map(mapping, turns)):
            yield from self._flat(turn, self.saw(turn.get("timestamp")))

    def _place(self, context: Mapping[str, Any]) -> None:
        for name in ("cwd", "workspacePath", "gitRoot"):
            if self.cwd is None and isinstance(context.get(name), str):
                self.cwd = context[name] or None
        if self.branch is None and isinstance(context.get("branch"), str):
            self.branch = context["branch"] or None

    def _user(self, body: Any, at: Optional[int]) -> Iterable[Event]:
        text = titles.visible(content.text_of(body))
        if not text or text.startswith("<skill-context"):
            return ()
        self.count += 1
        self.said(text)
        return (self.message(USER, text, at),)

    def _reply(self, data: Mapping[str, Any], at: Optional[int]) -> Iterable[Event]:
        events: List[Event] = []
        text = content.text_of(data.get("content"))
        if text.strip():
            events.append(self.message(ASSISTANT, text, at))
        requests = data.get("toolRequests")
        for request in requests if isinstance(requests, list) else ():
            call = mapping(request)
            function = mapping(call.get("function")) or call
            identity = call.get("toolCallId") or call.get("id")
            events.extend(self._call(identity, function.get("name"), function.get("arguments"), at))
        self.count += 1 if text.strip() or requests else 0
        return events

    def _call(self, identity: Any, name: Any, arguments: Any, at: Optional[int]) -> Iterable[Event]:
        if isinstance(identity, str):
            if identity in self.calls:
                return ()
            self.calls.append(identity)
            del self.calls[:-_CALLS]
        return self._tool(content.call_text(name, arguments), at)

    def _tool(self, text: str, at: Optional[int]) -> Iterable[Event]:
        return (self.message(TOOL, text, at),) if text.strip() else ()

    def session(self) -> Optional[Session]:
        session = super().session()
        if session is not None and os.path.basename(self.source.path) == "events.jsonl":
            known = workspace(self.source)
            session.title = titles.title(known.get("name")) or session.title
            session.cwd = session.cwd or known.get("cwd") or known.get("git_root")
            session.branch = session.branch or known.get("branch")
        return session

    def resume(self) -> Optional[str]:
        return resume.command("copilot", f"--resume={self.id}", env=resume.home_variable(self.source, "COPILOT_HOME"))


def workspace(source: Source) -> Mapping[str, str]:
    """The ``key: value`` lines of the session's ``workspace.yaml``; empty when there is none."""
    values: Dict[str, str] = {}
    try:
        path = os.path.join(os.path.dirname(source.path), "workspace.yaml")
        with open(path, encoding="utf-8", errors="replace", opener=opener) as file:
            for line in file.read(64 << 10).splitlines():
                key, colon, value = line.partition(":")
                value = value.strip()
                if colon and value and key == key.strip():
                    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
                    values[key] = value[1:-1] if quoted else value
    except OSError:
        pass
    return values


def read_document(source: Source) -> Iterable[Transcript]:
    """An old session that is one JSON document of turns. Raises Unreadable, OSError."""

    # The same turns may stand there as the model and as the screen had them: one list is enough.
    held = {name for name, _ in documents.members(source.path, *TOLD)}
    turns = next((name for name in TOLD if name in held), "")

    def records() -> Iterator[Mapping[str, Any]]:
        head: Dict[str, Any] = {"type": "info"}
        for name, value in documents.members(source.path, *TOLD):
            if name == turns and isinstance(value, dict):
                yield value
            elif name in ("workspacePath", "cwd"):
                head[name] = value
            elif name == "startTime":
                head["timestamp"] = value
        yield head

    return whole.transcripts(lambda: DocumentReader(source), records)


class DocumentReader(CopilotReader):
    """A document's turns; its file is named ``session_<id>_<time>.json``."""

    def begin(self) -> None:
        super().begin()
        parts = self.id.split("_")
        self.id = parts[1] if len(parts) > 2 and parts[0] == "session" else self.id
