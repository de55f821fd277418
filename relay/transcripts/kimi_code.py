"""Kimi Code: a folder for each session, with one ``wire.jsonl`` for each of its agents."""

from __future__ import annotations

import hashlib
import os
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional

from relay.transcripts import content, documents, forks, jsonl, resume, titles, tool_calls
from relay.transcripts.fold import mapping, text_or_none
from relay.transcripts.kimi import Spoken
from relay.transcripts.types import ASSISTANT, SYSTEM, Event, Session, Source

_INJECTED = titles.blocks("git-context")
#: Records whose type begins so tell nothing that was said.
_SILENT = frozenset(
    "agent config context cron file_history forked full_compaction goal interaction interruptionReminder llm mcp "
    "metadata permission plan plan_mode plugin profile prompt runtime session skill subagent swarm swarm_mode task "
    "todo token_counting tools tower_mode turn usage".split()
)
#: The title of a session that has none yet.
_UNNAMED = "New Session"
#: User's turns that can be undone.
_UNDOABLE = 512
#: Prompts that wait for the record that repeats them.
_WAITING = 64


class WireReader(Spoken):
    """One agent's ``wire.jsonl``; an agent that is not the main one is a subagent of the session."""

    def begin(self) -> None:
        super().begin()
        folder = os.path.dirname(self.source.path)
        self.session_folder = os.path.dirname(os.path.dirname(folder))
        self.agent = os.path.basename(folder)
        self.session_id = os.path.basename(self.session_folder)
        agents = mapping(documents.sidecar_object(os.path.join(self.session_folder, "state.json")).get("agents"))
        kind = mapping(agents.get(self.agent)).get("type")
        self.main = kind == "main" if isinstance(kind, str) else self.agent == "main"
        self.id = self.session_id if self.main else f"{self.session_id}/{self.agent}"
        self.parent = None if self.main else self.session_id
        #: Digests of prompts that were taken when they were typed: the model's history repeats them.
        self.waiting: List[str] = []
        #: The user's turns that can be undone: the place and the count before each.
        self.turns: List[List[int]] = []

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        at = self.saw(record.get("time") if "time" in record else record.get("created_at"))
        kind = record.get("type")
        if kind == "context.append_loop_event":
            yield from self._event(mapping(record.get("event")), at)
        elif kind in ("turn.prompt", "turn.steer"):
            origin = mapping(record.get("origin")).get("kind")
            yield from self._prompt(record.get("input"), origin, at, steer=kind == "turn.steer")
        elif kind == "context.append_message":
            message = mapping(record.get("message"))
            if message.get("role") == "user":
                origin = mapping(message.get("origin")).get("kind")
                steer = mapping(message.get("origin")).get("inTurn") is True
                yield from self._prompt(message.get("content"), origin, at, again=True, steer=steer)
            elif message.get("role") == "assistant":
                yield from self.piece(content.text_of(message.get("content")), at)
        elif kind == "context.undo":
            yield from self._undo(record.get("count"))
        elif kind in ("context.clear", "context.apply_compaction"):
            self.turns = []  # no undo goes back behind it
        elif kind in ("config.update", "profile.bind"):
            cwd = record.get("cwd") or mapping(record.get("environmentDisclosure")).get("cwd")
            if self.cwd is None and isinstance(cwd, str) and cwd:
                self.cwd = cwd
        elif not (isinstance(kind, str) and kind.partition(".")[0] in _SILENT):
            self.unknown += 1

    def _undo(self, count: Any) -> Iterator[Event]:
        if isinstance(count, int) and count > 0 and self.turns:
            seq, counted = self.turns[-count] if count <= len(self.turns) else self.turns[0]
            del self.turns[-count:]
            self.run, self.spoke = "", False
            if seq < self.seq:
                yield self.rewind(seq, counted)

    def _prompt(
        self, parts: Any, origin: Any, at: Optional[int], again: bool = False, steer: bool = False
    ) -> Iterator[Event]:
        """A prompt is written when it is typed and again (``again``) when it goes to the model; each is taken once."""
        if origin == "injection":
            return
        text = content.text_of(parts)
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
        if again and digest in self.waiting:
            self.waiting.remove(digest)
            return
        if not again:
            self.waiting = self.waiting[-_WAITING:] + [digest]
        if origin in ("user", None) or not self.main:
            if not steer:
                self.turns = self.turns[1 - _UNDOABLE :] + [[self.seq, self.count]]
            yield from self.user(text, at, _INJECTED)
        elif text.strip():  # the program spoke: a reminder, a finished background task
            self.run = ""
            yield self.message(SYSTEM, text, at)

    def _event(self, event: Mapping[str, Any], at: Optional[int]) -> Iterator[Event]:
        kind = event.get("type")
        if kind == "step.begin":
            self.run, self.spoke = "", False
        elif kind == "content.part":
            part = mapping(event.get("part"))
            if part.get("type") == "text":
                yield from self.piece(content.text_of(part), at)
            else:
                self.run = ""
                text = content.block_text(part)
                if text:
                    self.replied()
                    yield self.message(ASSISTANT, text, at)
        elif kind == "tool.call":
            self.replied()
            yield from self.tool(tool_calls.call_text(event), at)
        elif kind == "tool.result":
            result = event.get("result")
            shown = mapping(result)
            output = content.output_text(shown.get("output") if shown else result)
            yield from self.tool(output or content.text_of(shown.get("message"), content.TOOL_LIMIT), at)
        elif kind != "step.end":
            self.unknown += 1

    def state(self) -> Dict[str, Any]:
        state = super().state()
        for name in ("session_folder", "agent", "session_id", "main", "id", "parent"):  # told by where the file lies
            del state[name]
        return state

    def session(self) -> Optional[Session]:
        session = super().session()
        if session is None:
            return None
        state = documents.sidecar_object(os.path.join(self.session_folder, "state.json"))
        if self.main:
            name = titles.title(text_or_none(state.get("title")))
            if name and name != _UNNAMED:
                session.title = name
            elif not self.prompt:
                session.title = titles.title(text_or_none(state.get("lastPrompt"))) or session.title
        if session.cwd is None:
            session.cwd = text_or_none(state.get("workDir")) or text_or_none(state.get("cwd"))
            session.cwd = session.cwd or _folder(self.source.home, self.session_id)
        origin = text_or_none(state.get("forkedFrom"))
        if self.main and origin is not None:
            session.lineage = forks.first(origin, self._forked_from)
        return session

    def _forked_from(self, session_id: str) -> Optional[str]:
        """What another session beside this one was forked from."""
        state = os.path.join(os.path.dirname(self.session_folder), os.path.basename(session_id), "state.json")
        return text_or_none(documents.sidecar_object(state).get("forkedFrom"))

    def resume(self) -> Optional[str]:
        moved = resume.home_variable(self.source, "KIMI_CODE_HOME")
        return resume.command("kimi", "--session", self.session_id, env=moved)


def registered_folder(source: Source) -> str:
    """The working folder that the index file has for a session, or an empty string; the store's ``mark``."""
    session_folder = os.path.dirname(os.path.dirname(os.path.dirname(source.path)))
    return _folder(source.home, os.path.basename(session_folder)) or ""


def _folder(home: str, session_id: str) -> Optional[str]:
    folders = documents.shared(os.path.join(home, "session_index.jsonl"), _folders)
    return text_or_none(folders.get(session_id))


def _folders(path: str) -> Dict[str, Any]:
    try:
        entries = [entry for entry in jsonl.records(path) if isinstance(entry.get("sessionId"), str)]
    except OSError:
        return {}
    return {entry["sessionId"]: entry.get("workDir") for entry in entries}  # a later line wins
