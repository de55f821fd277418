"""Codex CLI: one append-only rollout file a thread, in which most things are said in two or three streams."""

from __future__ import annotations

import hashlib
import json
import os
import re
from typing import Any, Iterable, List, Mapping, Optional, Tuple

from relay.transcripts import codex_names, content, resume, times, titles
from relay.transcripts.fold import Fold, kind_of, mapping
from relay.transcripts.types import ASSISTANT, SYSTEM, TOOL, USER, Event, Session

_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$")
_SUFFIX = re.compile(r"\.jsonl?(?:\.zst)?$")

_INJECTED = titles.leading(
    "environment_context", "user_instructions", "recommended_plugins", "skill", "turn_aborted", "subagent_notification",
    "permissions instructions", "INSTRUCTIONS", "user_shell_command", "apps_instructions", "skills_instructions",
)  # fmt: skip
#: An editor puts its state before this heading, and what the person asked behind it.
_REQUEST = re.compile(r"^#+ My request for Codex:?[ \t]*$", re.MULTILINE)
_PICTURE = re.compile(r"^\[image [^\]\n]*\]$", re.MULTILINE)
_CONTEXT_CWD = re.compile(r"<cwd>(.*?)</cwd>|Current working directory: (\S.*)")

_SILENT_ITEMS = frozenset(
    "reasoning image_generation_call compaction context_compaction compaction_trigger additional_tools ghost_snapshot"
    " world_state".split()
)
_SILENT_EVENTS = frozenset(
    "agent_reasoning agent_reasoning_raw_content agent_reasoning_section_break token_count task_started turn_started"
    " task_complete turn_complete context_compacted entered_review_mode exited_review_mode patch_apply_begin"
    " patch_apply_end mcp_tool_call_begin mcp_tool_call_end exec_command_begin exec_command_end exec_approval_request"
    " apply_patch_approval_request web_search_begin web_search_end image_generation_begin image_generation_end"
    " sub_agent_activity collab_agent_spawn_begin collab_agent_spawn_end item_started turn_diff error warning"
    " stream_error background_event plan_update session_configured view_image_tool_call thread_settings_applied"
    " turn.completed account/rateLimits/updated codex/event/raw_item deprecation_notice guardian_assessment".split()
)
#: The streams: an item that arrives in one is looked for among what the others said.
_ITEMS, _EVENTS, _PAGES = 1, 2, 4
#: How many messages back the other streams' copy of one may lie, and how many turns can be rolled back exactly.
_WINDOW, _TURNS = 32, 256
#: A child's copies of its parent's records carry the time of the copying; what comes later than this is its own.
_COPY_MS = 1000


class CodexReader(Fold):
    """Takes each message from the stream that says it first; leaves out what the program says in the user's name."""

    label = "Codex"

    def begin(self) -> None:
        stem = _SUFFIX.sub("", os.path.basename(self.source.path))
        match = _UUID.search(stem)
        self.id = match.group() if match else ""
        self.stem = stem
        self.meta: Optional[str] = None  # the id of the first session_meta
        self.started: Optional[int] = None
        self.goal = ""
        self.heard: List[List[Any]] = []  # the newest messages: [digest, streams that said it]
        self.turns: List[List[int]] = []  # where each user turn began: [seq, count]
        self.aborted = ""  # digest of the prompt of an interrupted turn
        self.copied_at: Optional[int] = None  # a subagent's file is giving its parent's history

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        at = self.saw(record.get("timestamp") or record.get("created_at"))
        kind = kind_of(record)
        payload = record.get("payload")
        if not isinstance(payload, dict):
            return self._bare(record, at)
        if kind == "session_meta":
            self._meta(payload, at)
        elif kind == "turn_context":
            self._turn(payload.get("turn_id"))
            if self.cwd is None and isinstance(payload.get("cwd"), str):
                self.cwd = payload["cwd"] or None
        elif self._is_copy(payload, at):
            return ()
        elif kind == "response_item":
            return self._item(payload, at)
        elif kind == "event_msg":
            return self._event(payload, at)
        elif kind == "compacted":
            text = content.text_of(payload.get("message"))
            return (self.message(SYSTEM, text, at),) if text.strip() else ()
        elif kind not in ("world_state", "inter_agent_communication", "session_state"):
            self.unknown += 1
        return ()

    # -- the head

    def _meta(self, meta: Mapping[str, Any], at: Optional[int]) -> None:
        own = _text(meta, "id", "session_id", "sessionId")
        if self.meta is not None:
            # Records of another thread follow: those of a parent, whose own first record stands last.
            if own and own != self.meta:
                if self.parent is None:
                    self.lineage = own
                elif self.copied_at is None:
                    self.copied_at = at or 0
            return
        self.meta = own or self.id or self.stem
        self.id = self.id or self.meta
        self.started = times.millis(meta.get("timestamp")) or at
        self.cwd = _text(meta, "cwd") or self.cwd
        self.branch = _text(mapping(meta.get("git")), "branch") or None
        self.name = _text(meta, "thread_name", "threadName", "title")
        origin = mapping(meta.get("source"))
        spawned = mapping(mapping(origin.get("subagent")).get("thread_spawn"))
        forked = _text(meta, "forked_from_id", "forkedFromId")
        parent = _text(meta, "parent_thread_id", "parentThreadId") or _text(spawned, "parent_thread_id")
        subagent = _text(meta, "thread_source", "threadSource") not in ("", "user") or "subagent" in origin
        if subagent and (parent or forked):
            self.parent = parent or forked
        self.lineage = None if self.parent else forked or self.id

    def _turn(self, turn_id: Any) -> None:
        """A turn begins: one that is younger than the thread is the thread's own."""
        if self.copied_at is not None:
            turn, own = _uuid7_time(turn_id), _uuid7_time(self.id)
            if turn and own and turn >= own:
                self.copied_at = -1

    def _is_copy(self, payload: Mapping[str, Any], at: Optional[int]) -> bool:
        if self.copied_at is None or self.copied_at < 0:
            return False
        if payload.get("type") in ("task_started", "turn_started"):
            self._turn(payload.get("turn_id"))
        if at is not None and at > self.copied_at + _COPY_MS:
            self.copied_at = -1
        return self.copied_at >= 0

    # -- the streams

    def _event(self, event: Mapping[str, Any], at: Optional[int]) -> Iterable[Event]:
        kind = kind_of(event)
        if kind == "user_message":
            return self._user([event.get("message")], at, _EVENTS, _pictures(event))
        if kind == "agent_message":
            return self._assistant(content.text_of(event.get("message")), at, _EVENTS)
        if kind == "item_completed":
            item = mapping(event.get("item"))
            name = str(item.get("type", "")).replace("_", "").lower()
            if name == "usermessage":
                return self._user(_parts(item), at, _PAGES)
            if name in ("agentmessage", "plan"):
                return self._assistant(_item_text(item), at, _PAGES)
        elif kind == "thread_rolled_back":
            return self._rollback(event.get("num_turns", event.get("numTurns")))
        elif kind == "turn_aborted":
            if self.heard and self.heard[-1][0].startswith("u"):
                self.aborted = self.heard[-1][0]
        elif kind == "thread_goal_updated":
            self.goal = titles.title(_text(mapping(event.get("goal")), "objective")) or self.goal
        elif kind == "thread_name_updated":
            self.name = _text(event, "thread_name", "threadName", "name")
        elif kind in ("tool_call", "tool_result"):
            return self._item(event, at)
        elif kind not in _SILENT_EVENTS:
            self.unknown += 1
        return ()

    def _item(self, item: Mapping[str, Any], at: Optional[int]) -> Iterable[Event]:
        kind = kind_of(item)
        if kind == "message" or (kind is None and "role" in item):
            role = item.get("role")
            if role == "assistant":
                return self._assistant(_item_text(item), at, _ITEMS)
            return self._user(_parts(item), at, _ITEMS) if role == "user" else ()
        if kind == "agent_message":  # one agent to another
            text = content.text_of(item.get("content"), content.TOOL_LIMIT)
            return self._tool(text and content.call_text("agent_message", {"to": item.get("recipient"), "": text}), at)
        call = _call(item)
        if call is not None:
            return self._tool(content.call_text(*call), at)
        if kind in ("function_call_output", "custom_tool_call_output", "tool_search_output", "tool_result",
                    "function_result", "local_shell_call_output"):  # fmt: skip
            return self._tool(_output(item), at)
        if kind not in _SILENT_ITEMS:
            self.unknown += 1
        return ()

    def _bare(self, record: Mapping[str, Any], at: Optional[int]) -> Iterable[Event]:
        """Files from before the envelope: the first line is the thread's, the others are items."""
        if "record_type" in record:
            return ()
        if record.get("type") is None and "role" not in record:
            if "id" in record or "session" in record:
                self._meta(mapping(record.get("session")) or record, at)
            else:
                self.unknown += 1
            return ()
        if record.get("type") in ("error", "world_state", "session_meta", "turn_context"):
            return ()
        return self._item(record, at)

    # -- messages

    def _user(self, parts: Iterable[Any], at: Optional[int], stream: int, pictures: str = "") -> Iterable[Event]:
        typed: List[str] = []
        images: List[str] = [pictures] if pictures else []
        for part in parts:
            raw = part if isinstance(part, str) else content.block_text(part)
            if not isinstance(part, str) and raw.startswith("[image"):
                images.append(raw)
                continue
            if self.cwd is None and "<environment_context>" in raw[:200]:
                match = _CONTEXT_CWD.search(raw)
                self.cwd = (match.group(1) or match.group(2) or "").strip() or None if match else None
            text = titles.visible(raw, _INJECTED)
            heading = _REQUEST.search(text) if "My request for Codex" in text else None
            if heading is not None:
                text = text[heading.end() :].strip()
            if text:
                typed.append(text)
        text = "\n".join(typed)
        if not text and not images:
            return ()
        digest = "u" + _digest(text or "[image]")
        if self._is_known(digest, stream):
            return ()
        if digest == self.aborted:  # an interrupted prompt is given once more, word for word
            self.aborted = ""
            return ()
        self.aborted = ""
        shown = content.clean(content.without_base64("\n".join(typed + images)))
        self.turns.append([self.seq, self.count])
        del self.turns[:-_TURNS]
        self.count += 1
        self.said(content.clean(text))
        return (self.message(USER, shown, at),)

    def _assistant(self, text: str, at: Optional[int], stream: int) -> Iterable[Event]:
        if not text.strip() or self._is_known("a" + _digest(text), stream):
            return ()
        self.aborted = ""
        self.count += 1
        return (self.message(ASSISTANT, text, at),)

    def _tool(self, text: str, at: Optional[int]) -> Iterable[Event]:
        return (self.message(TOOL, text, at),) if text.strip() else ()

    def _is_known(self, digest: str, stream: int) -> bool:
        """Whether another stream has said this already; takes note that this one has."""
        for entry in self.heard:
            if entry[0] == digest and not entry[1] & stream:
                entry[1] |= stream
                return True
        self.heard.append([digest, stream])
        del self.heard[:-_WINDOW]
        return False

    def _rollback(self, turns: Any) -> Iterable[Event]:
        if not isinstance(turns, int) or turns <= 0 or not self.turns:
            return ()
        seq, count = self.turns[-min(turns, len(self.turns))]
        del self.turns[-min(turns, len(self.turns)) :]
        self.heard = []
        return (self.rewind(seq, count),)

    # -- the session

    def session(self) -> Optional[Session]:
        self.id = self.id or self.stem
        session = super().session()
        if session is None:
            return None
        session.created_at = self.started or session.created_at
        name = codex_names.name(self.source.home, self.id) or titles.title(self.name)
        session.title = content.clean(name or self.prompt or self.goal or session.title)
        if session.lineage is None and self.parent is None:
            session.lineage = self.id
        return session

    def resume(self) -> Optional[str]:
        if os.path.basename(self.source.root) == "archived_sessions":
            return None  # it has to be unarchived first
        thread = self.parent or self.id
        return resume.command("codex", "resume", thread, env=resume.home_variable(self.source, "CODEX_HOME"))


def _text(source: Mapping[str, Any], *names: str) -> str:
    for name in names:
        value = source.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _digest(text: str) -> str:
    # White space and what stands for a picture differ between the streams.
    words = " ".join(_PICTURE.sub("", text).split() if "[image " in text else text.split())
    return hashlib.blake2b(words.encode("utf-8", "replace"), digest_size=9).hexdigest()


def _parts(item: Mapping[str, Any]) -> List[Any]:
    said = item.get("content")
    if said is None:
        said = item.get("message") if item.get("message") is not None else item.get("text")
    return said if isinstance(said, list) else [said] if isinstance(said, (str, dict)) else []


def _item_text(item: Mapping[str, Any]) -> str:
    parts = (content.text_of({"text": part["text"]} if _text(mapping(part), "text") else part) for part in _parts(item))
    return "\n".join(filter(None, parts))


def _pictures(event: Mapping[str, Any]) -> str:
    notes: List[str] = []
    for name in ("images", "local_images"):
        for picture in event.get(name) or () if isinstance(event.get(name), list) else ():
            notes.append(content.image(None, picture if str(picture).startswith("data:") else None))
    return "\n".join(notes[:20])


def _call(item: Mapping[str, Any]) -> Optional[Tuple[Any, Any]]:
    """``(name, arguments)`` of an item that calls a tool; None when it is none."""
    kind = kind_of(item)
    if kind in ("function_call", "tool_call"):
        name = _text(item, "name") or _text(mapping(item.get("function")), "name")
        arguments = item.get("arguments", mapping(item.get("function")).get("arguments"))
        return name, arguments if arguments is not None else item.get("summary")
    if kind == "custom_tool_call":
        return item.get("name"), item.get("input")
    if kind == "local_shell_call":
        return "shell", mapping(item.get("action")).get("command")
    if kind in ("web_search_call", "tool_search_call"):
        action = {name: value for name, value in mapping(item.get("action")).items() if name != "type"}
        return kind[:-5], action or item.get("arguments") or item.get("query") or ""
    return None


def _output(item: Mapping[str, Any]) -> str:
    """A tool's output: text, or JSON text of ``{output, metadata}``, or blocks, under any of its names."""
    output = item.get("output", item.get("result", item.get("tools")))
    if isinstance(output, str) and output.startswith('{"output"') and len(output) < 1 << 20:
        try:
            output = json.loads(output, strict=False)
        except (ValueError, RecursionError):
            pass
    if isinstance(output, dict) and "output" in output:
        output = output["output"]
    return content.output_text(output)


def _uuid7_time(value: Any) -> int:
    """The milliseconds in a version 7 UUID, or 0."""
    if isinstance(value, str) and len(value) == 36 and value[14] == "7":
        digits = value[:8] + value[9:13]
        return int(digits, 16) if all(digit in "0123456789abcdefABCDEF" for digit in digits) else 0
    return 0
