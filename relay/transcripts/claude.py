"""Claude Code: one append-only JSONL file a session, subagents in files of their own."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from relay.transcripts import content, resume, titles
from relay.transcripts.fold import Fold, kind_of, mapping
from relay.transcripts.regular import opener
from relay.transcripts.types import ASSISTANT, SYSTEM, TOOL, USER, Event, Message, Session

#: Record types that hold nothing to search.
_SILENT = frozenset(
    "summary queue-operation progress agent-setting mode permission-mode file-history-snapshot last-prompt pr-link"
    " agent-color worktree-state content-replacement bridge-session".split()
)

_IDE = titles.leading("ide_opened_file", "ide_selection", "ide_diagnostics", "local-command-caveat")
_COMMAND = re.compile(r"<command-(name|message|args)>(.*?)</command-\1>\s*", re.DOTALL)
#: What a program says in the user's name: text that begins so is shown, but is no turn and no title.
_NOTICES = (
    "This session is being continued from a previous conversation",
    "<task-notification",
    "<teammate-message",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "Stop hook feedback:",
)
_SHELL = ("<bash-input>", "<bash-stdout>", "<bash-stderr>")
_NOTHING = ("[Request interrupted", "Caveat: The messages below")
_TAGS = re.compile(r"</?(?:task-notification|teammate-message|local-command|bash-|task-|summary|status|result)[^>]*>")

#: Characters of a growing reply that are held to merge its next chunk; a longer one goes on as a further message.
_HELD = 64 << 10
#: Replies and prompts that are remembered: chunks of parallel replies interleave, and a rewind of at most this many
#: prompts is a retry (a longer branch is a conversation of its own and stays).
_OPEN, _RETRIES = 4, 3


class ClaudeReader(Fold):
    """Merges the chunks of a reply by ``message.id``, follows a retried prompt, and tells who really spoke."""

    label = "Claude"

    def begin(self) -> None:
        folder, self.id = os.path.split(self.source.path[: -len(".jsonl")])
        self.subagent = self.id.startswith("agent-")
        below = os.path.relpath(folder, self.source.root).split(os.sep)
        self.project = below[0]
        if self.subagent and "subagents" in below and below.index("subagents") > 0:
            self.parent = below[below.index("subagents") - 1]
        self.first = False  # the first message was met
        self.generated = ""  # ai-title
        self.agent_name = ""
        self.fits = False  # the cwd is the one the project folder is named after
        self.last_cwd: Optional[str] = None
        self.open: List[Dict[str, Any]] = []
        self.turns: List[List[Any]] = []  # the newest prompts: [parent, seq, count]
        self.side_count = 0  # of sidechain records inside a main file
        self.side_prompt = ""
        self.aliases: Dict[str, Optional[str]] = {}  # attachment or system record -> the message before it

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        kind = kind_of(record)
        at = self.saw(record.get("timestamp"))
        if record.get("cwd") != self.last_cwd or self.branch is None:
            self._place(record)
        if kind == "assistant" or kind == "user":
            if not self.first:
                self._first(record)
            message = record.get("message")
            if not isinstance(message, dict):
                return ()
            return self._reply(record, message, at) if kind == "assistant" else self._user(record, message, at)
        if kind == "attachment":
            self._alias(record)
            attachment = mapping(record.get("attachment"))
            if attachment.get("type") == "queued_command":
                return self._prompt(attachment.get("prompt"), {}, at)
        elif kind == "system":
            self._alias(record)
            if record.get("subtype") == "local_command":
                self._command(record.get("content"))
        elif kind == "custom-title":
            self.name = _text(record.get("customTitle"))
        elif kind == "ai-title":
            self.generated = titles.title(record.get("aiTitle")) or self.generated
        elif kind == "agent-name":
            self.agent_name = titles.title(record.get("agentName"))
        elif kind not in _SILENT:
            self.unknown += 1
        return ()

    # -- what a record says about the session

    def _place(self, record: Mapping[str, Any]) -> None:
        cwd, branch = record.get("cwd"), record.get("gitBranch")
        if not isinstance(cwd, str) or not cwd:
            return
        self.last_cwd = cwd
        if self.cwd is None or (not self.fits and cwd != self.cwd and _folder_fits(cwd, self.project)):
            self.cwd, self.branch = cwd, None
        if not self.fits and cwd == self.cwd:
            self.fits = _folder_fits(cwd, self.project)
        if cwd == self.cwd and self.branch is None and isinstance(branch, str) and branch:
            self.branch = branch

    def _first(self, record: Mapping[str, Any]) -> None:
        self.first = True
        if not self.subagent:
            self.mark(record.get("uuid"), record.get("timestamp"), mapping(record.get("message")).get("content"))
        elif self.parent is None:
            parent = record.get("sessionId")
            self.parent = parent if isinstance(parent, str) and parent != self.id else None

    def _alias(self, record: Mapping[str, Any]) -> None:
        uuid, parent = record.get("uuid"), record.get("parentUuid")
        if isinstance(uuid, str) and isinstance(parent, str):
            self.aliases[uuid] = self.aliases.get(parent, parent)
            if len(self.aliases) > 64:
                del self.aliases[next(iter(self.aliases))]

    def _command(self, text: Any) -> str:
        """``/name arguments`` of a slash command's envelope, else an empty string; takes a rename into account."""
        if not isinstance(text, str) or "<command-name>" not in text[:4096]:
            return ""
        parts = {name: value.strip() for name, value in _COMMAND.findall(text[: 64 << 10])}
        name = parts.get("name", "").lstrip("/")
        arguments = parts.get("args", "")
        if name == "rename":
            self.name = titles.title(arguments)
        return content.clean(content.without_base64(f"/{name} {arguments}".strip()))

    # -- messages

    def _reply(self, record: Mapping[str, Any], message: Mapping[str, Any], at: Optional[int]) -> Iterable[Event]:
        blocks = message.get("content")
        if isinstance(blocks, str):
            blocks = ({"type": "text", "text": blocks},)
        elif not isinstance(blocks, list):
            return ()
        if record.get("isCompactSummary") or message.get("model") == "<synthetic>":
            text = content.text_of(blocks)
            return (self.message(SYSTEM, text, at),) if text.strip() else ()
        reply = self._open_reply(message.get("id"))
        events: List[Event] = []
        place = None  # of the reply's text among the events
        for block in blocks:
            if not isinstance(block, dict):
                continue
            if block.get("type") == "tool_use":
                events.extend(self._call(reply, block, at))
                continue
            text = content.text_of(block)
            if text.strip() and _merge(reply["texts"], text):
                if reply["seq"] is None:
                    reply["seq"] = self.seq
                    self.seq += 1
                place = len(events) if place is None else place
        if place is not None:
            events.insert(place, Message(reply["seq"], ASSISTANT, "\n\n".join(reply["texts"]), at))
            if sum(map(len, reply["texts"])) > _HELD:
                reply["texts"], reply["seq"] = [], None
        if events and not reply["counted"]:
            reply["counted"] = True
            self._counted(record)
        return events

    def _is_main(self, record: Mapping[str, Any]) -> bool:
        return self.subagent or not record.get("isSidechain")

    def _counted(self, record: Mapping[str, Any]) -> None:
        if self._is_main(record):
            self.count += 1
        else:
            self.side_count += 1

    def _open_reply(self, message_id: Any) -> Dict[str, Any]:
        if isinstance(message_id, str) and message_id:
            for reply in self.open:
                if reply["id"] == message_id:
                    return reply
        reply = {"id": message_id, "seq": None, "texts": [], "calls": {}, "counted": False}
        if isinstance(message_id, str) and message_id:
            self.open.append(reply)
            if len(self.open) > _OPEN:
                del self.open[0]
        return reply

    def _call(self, reply: Dict[str, Any], block: Mapping[str, Any], at: Optional[int]) -> Iterable[Event]:
        text = content.call_text(block.get("name"), block.get("input"))
        if not text:
            return ()
        call_id = block.get("id")
        if not isinstance(call_id, str):
            return (self.message(TOOL, text, at),)
        calls: Dict[str, Tuple[int, int]] = reply["calls"]
        known = calls.get(call_id)
        if known is None:
            if len(calls) < 100:
                calls[call_id] = (self.seq, len(text))
            return (self.message(TOOL, text, at),)
        if len(text) > known[1]:  # a later snapshot, with more of the arguments
            calls[call_id] = (known[0], len(text))
            return (Message(known[0], TOOL, text, at),)
        return ()

    def _user(self, record: Mapping[str, Any], message: Mapping[str, Any], at: Optional[int]) -> Iterable[Event]:
        said = message.get("content")
        if isinstance(said, list):
            results: List[Event] = []
            rest = []
            for block in said:
                if isinstance(block, dict) and block.get("type") == "tool_result":
                    text = content.output_text(block.get("content"))
                    if text:
                        results.append(self.message(TOOL, text, at))
                else:
                    rest.append(block)
            if not rest:
                return results
            results.extend(self._prompt(rest, record, at))
            return results
        return self._prompt(said, record, at)

    def _prompt(self, said: Any, record: Mapping[str, Any], at: Optional[int]) -> Iterable[Event]:
        """What stands in the user's name: a turn, a command, a notice, or nothing."""
        parts = [said] if isinstance(said, str) else said if isinstance(said, list) else []
        if record.get("isCompactSummary"):
            text = content.text_of(parts)
            return (self.message(SYSTEM, text, at),) if text.strip() else ()
        if record.get("isMeta"):
            return ()
        typed: List[str] = []
        others: List[Tuple[str, str]] = []
        title = ""
        for part in parts:
            raw = part if isinstance(part, str) else content.block_text(part)
            text = titles.visible(raw, _IDE)
            if not text or text.startswith(_NOTHING):
                continue
            command = self._command(text)
            if command:
                others.append((USER, command))
            elif text.startswith(_NOTICES):
                others.append((SYSTEM, _TAGS.sub(" ", text).strip()))
            elif text.startswith(_SHELL):
                others.append((TOOL, _TAGS.sub(" ", text).strip()))
            else:
                typed.append(content.clean(content.without_base64(text)))
                if not title and (isinstance(part, str) or mapping(part).get("type") != "image"):
                    title = text
        if record.get("promptSource") == "system" or mapping(record.get("origin")).get("kind") == "task-notification":
            others += [(SYSTEM, text) for text in typed]
            typed = []
        events: List[Event] = []
        if typed:
            if self._is_main(record):
                events.extend(self._retry(record))
                self.said(content.clean(title))
            elif not self.side_prompt:
                self.side_prompt = titles.title(content.clean(title))
            self._counted(record)
            events.append(self.message(USER, "\n".join(typed), at))
        events.extend(
            self.message(role, content.clean(content.without_base64(text)), at) for role, text in others if text
        )
        return events

    def _retry(self, record: Mapping[str, Any]) -> Iterable[Event]:
        """A prompt with the same parent as an earlier one takes that one's place (Esc-Esc)."""
        parent = record.get("parentUuid")
        if not isinstance(parent, str):
            return ()
        parent = self.aliases.get(parent, parent)
        events: Tuple[Event, ...] = ()
        for place, (other, seq, count) in enumerate(self.turns):
            if other == parent:
                self.open = []
                del self.turns[place:]
                events = (self.rewind(seq, count),)
                break
        self.turns.append([parent, self.seq, self.count])
        del self.turns[:-_RETRIES]
        return events

    # -- the head

    def session(self) -> Optional[Session]:
        main = self.count, self.prompt
        if not self.count and not self.began:  # nothing but sidechains: an old subagent file under another name
            self.count, self.prompt = self.side_count, self.side_prompt
        session = super().session()
        self.count, self.prompt = main
        if session is None or (self.subagent and self.count < 2 and self.prompt == "Warmup"):
            return None
        if not titles.title(self.name):
            named = self.generated or (self._described() if self.subagent else "")
            named = named or self.prompt or self.side_prompt or self.agent_name
            session.title = content.clean(named) or session.title
        return session

    def _described(self) -> str:
        try:
            with open(self.source.path[: -len(".jsonl")] + ".meta.json", "rb", opener=opener) as file:
                return titles.title(mapping(json.loads(file.read(64 << 10))).get("description"))
        except (OSError, ValueError, RecursionError):
            return ""

    def resume(self) -> Optional[str]:
        session_id = self.parent if self.subagent else self.id
        if not session_id:
            return None
        return resume.command(
            "claude", "--resume", session_id, env=resume.home_variable(self.source, "CLAUDE_CONFIG_DIR")
        )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _folder_fits(cwd: str, folder: str) -> bool:
    """Whether the project folder is named after ``cwd``; the name of a very long path is cut and ends in a hash."""
    name = re.sub(r"[^A-Za-z0-9-]", "-", cwd)
    return name == folder or (len(folder) > 200 and folder.startswith(name[:200]))


def _merge(texts: List[str], text: str) -> bool:
    """Takes a block's text into those of its reply; says whether anything is new."""
    for place, known in enumerate(texts):
        if known.startswith(text):
            return False
        if text.startswith(known):
            texts[place] = text
            return True
    texts.append(text)
    return True
