"""Qwen Code: a tree of records, one JSONL file a session; before that, the documents of the Gemini CLI it came from."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

from relay.transcripts import content, gemini, resume, titles
from relay.transcripts.fold import kind_of, mapping
from relay.transcripts.tree import TreeFold
from relay.transcripts.types import ASSISTANT, SYSTEM, TOOL, USER, Event, Message, Source, Transcript

#: Characters of a message that are held to join its further lines; a longer one goes on as another message.
_HELD = 64 << 10
_SILENT = frozenset(
    "chat_compression slash_command ui_telemetry at_command rewind session_source session_model notification cron"
    " background_task_completed agent_bootstrap file_history_snapshot branch_checkpoint turn_result"
    " session_artifact_snapshot attribution_snapshot".split()
)


class QwenReader(TreeFold):
    """Joins the lines of one record, follows the active branch, and counts what a real user typed."""

    label = "Qwen"
    id_key, parent_key = "uuid", "parentUuid"

    def begin(self) -> None:
        super().begin()
        self.id = os.path.splitext(os.path.basename(self.source.path))[0]
        self.open: Dict[str, Any] = {}  # the last message: its uuid, place and text

    def is_entry(self, record: Mapping[str, Any]) -> bool:
        return not _is_sidechain(record) and super().is_entry(record)

    def went_back(self) -> None:
        self.open = {}

    def entry(self, record: Mapping[str, Any]) -> Sequence[Event]:
        at = self.saw(record.get("timestamp"))
        kind = kind_of(record)
        if not _is_sidechain(record):
            self._place(record)
        if kind == "system":
            return self._system(record, at)
        if kind not in ("user", "assistant", "tool_result"):
            self.unknown += 1
            return ()
        parts = mapping(record.get("message")).get("parts")
        if kind == "user":
            self.mark(record.get("uuid"), record.get("timestamp"), parts)
            return self._user(record, parts, at)
        return self._said(record, parts, at, ASSISTANT if kind == "assistant" else TOOL)

    def _place(self, record: Mapping[str, Any]) -> None:
        if self.cwd is None and isinstance(record.get("cwd"), str):
            self.cwd = record["cwd"] or None
        if self.branch is None and isinstance(record.get("gitBranch"), str):
            self.branch = record["gitBranch"] or None

    def _system(self, record: Mapping[str, Any], at: Optional[int]) -> Sequence[Event]:
        subtype = kind_of(record, "subtype")
        payload = mapping(record.get("systemPayload"))
        if subtype == "custom_title":
            self.name = titles.title(payload.get("customTitle"))
        elif subtype == "parent_session":
            parent = payload.get("parentSessionId")
            self.parent = parent if isinstance(parent, str) and parent and parent != self.id else self.parent
        elif subtype == "mid_turn_user_message":
            return self._user(record, mapping(record.get("message")).get("parts") or payload.get("message"), at)
        elif not isinstance(subtype, str) or (subtype not in _SILENT and not subtype.startswith("goal_")):
            self.unknown += 1
        return ()

    def _user(self, record: Mapping[str, Any], parts: Any, at: Optional[int]) -> Sequence[Event]:
        shown = mapping(record.get("systemPayload")).get("displayText")
        results = _results(parts)
        if results:
            return self._said(record, parts, at, TOOL)
        text = content.text_of(shown) if isinstance(shown, str) and shown.strip() else content.text_of(parts)
        text = titles.visible(text)
        if not text:
            return ()
        real = record.get("provenance") in (None, "real_user")
        if not real or record.get("subtype") not in (None, "mid_turn_user_message"):
            return (self.message(SYSTEM, text, at),)
        if self._is_again(record):
            return self._joined(USER, text, at)
        if not _is_sidechain(record):
            self.count += 1
            self.said(text)
        return self._opened(record, USER, text, at)

    def _said(self, record: Mapping[str, Any], parts: Any, at: Optional[int], role: str) -> Sequence[Event]:
        """A reply or a tool's answer: its text, calls and results."""
        events: List[Event] = []
        again = self._is_again(record)
        spoken = [part for part in _items(parts) if not mapping(part).get("thought")]
        text = content.text_of(spoken)
        calls = [mapping(part)["functionCall"] for part in spoken if mapping(mapping(part).get("functionCall"))]
        counted = again and self.open["counted"]
        if role == ASSISTANT and not counted and (text.strip() or calls) and not _is_sidechain(record):
            self.count += 1
            counted = True
        if text.strip():
            events.extend(self._joined(role, text, at) if again else self._opened(record, role, text, at))
        elif not again:
            self.open = {"uuid": record.get("uuid"), "seq": None, "text": ""}
        self.open["counted"] = counted
        tools = [content.call_text(call.get("name"), call.get("args")) for call in calls] + _results(parts)
        events.extend(self.message(TOOL, tool, at) for tool in tools if tool)
        return events

    def _is_again(self, record: Mapping[str, Any]) -> bool:
        """Whether this line goes on with the record of the line before."""
        return bool(self.open) and isinstance(record.get("uuid"), str) and self.open["uuid"] == record["uuid"]

    def _opened(self, record: Mapping[str, Any], role: str, text: str, at: Optional[int]) -> Sequence[Event]:
        message = self.message(role, text, at)
        self.open = {"uuid": record.get("uuid"), "seq": message.seq, "text": text if len(text) <= _HELD else None}
        self.open["counted"] = True
        return (message,)

    def _joined(self, role: str, text: str, at: Optional[int]) -> Sequence[Event]:
        held, seq = self.open["text"], self.open["seq"]
        if held is not None and text in held.split("\n\n"):
            return ()
        if held is None or seq is None:
            return self._opened({"uuid": self.open["uuid"]}, role, text, at)
        joined = f"{held}\n\n{text}"
        self.open["text"] = joined if len(joined) <= _HELD else None
        return (Message(seq, role, joined, at),)

    def resume(self) -> Optional[str]:
        return resume.command("qwen", "--resume", self.id, env=_moved(self.source))


class OldChat(gemini.Chat):
    """A session of the time when Qwen Code kept its sessions as the Gemini CLI does."""

    label = "Qwen"

    def resume(self) -> Optional[str]:
        return None  # today's program does not know these sessions


def read_document(source: Source) -> Iterable[Transcript]:
    """``tmp/<hash>/chats/session-*.json``. Raises Unreadable, OSError."""
    return gemini.read(source, OldChat)


def _moved(source: Source) -> Mapping[str, str]:
    """The variable that moved the sessions: one of the two moves the account's settings with them."""
    runtime = os.path.normpath(os.path.expanduser(os.environ.get("QWEN_RUNTIME_DIR") or os.curdir))
    return resume.home_variable(source, "QWEN_RUNTIME_DIR" if runtime == source.home else "QWEN_HOME")


def _items(parts: Any) -> List[Any]:
    return parts if isinstance(parts, list) else [] if parts is None else [parts]


def _results(parts: Any) -> List[str]:
    found = []
    for part in _items(parts):
        response = mapping(part).get("functionResponse")
        if isinstance(response, dict):
            answer = response.get("response")
            inner = mapping(answer)
            found.append(content.output_text(inner.get("output", inner.get("error", answer))))
    return found


def _is_sidechain(record: Mapping[str, Any]) -> bool:
    return bool(record.get("isSidechain") or record.get("agentId"))
