"""Cline, Roo Code and Kilo Code tasks of an editor: the log of what was shown, else the model's history."""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional

from relay.transcripts import content, documents, titles, whole
from relay.transcripts.anthropic import Blocks
from relay.transcripts.cline_session import read_session
from relay.transcripts.fold import Fold, items, mapping, text_or_none
from relay.transcripts.types import ASSISTANT, SYSTEM, TOOL, USER, Event, Session, Source, Transcript

_SHOWN = ("ui_messages.json", "claude_messages.json")
_HISTORY = "api_conversation_history.json"

_ASSISTANT = frozenset(("text", "completion_result", "followup", "plan_mode_respond", "act_mode_respond", "new_task"))
_TOOLS = frozenset(
    "tool command command_output use_mcp_server mcp_server_response mcp_notification browser_action "
    "browser_action_launch browser_action_result user_feedback_diff user_edit_todos codebase_search_result "
    "subtask_result subagent use_subagents load_mcp_documentation generate_explanation".split()
)
_NOTICES = frozenset("error error_retry diff_error clineignore_error rooignore_error api_req_failed info".split())
_QUIET = re.compile(
    r"(?:api_req_|checkpoint_|shell_integration_|condense|sliding_window|resume_|mistake_limit|auto_approval|hook_|"
    r"deleted_api_reqs|reasoning|task_progress|mcp_server_request_started|summarize_task|report_bug|too_many_tools|"
    r"conditional_rules|subagent_usage|image)"
)
_CHANGES_FLAG = "HAS_CHANGES"
_DETAILS = titles.blocks("environment_details")
_WRAPPED = re.compile(r"<(task|feedback|user_message|answer)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_OLD_RESULT = re.compile(r"\s*\[[^\]\n]+\] Result:")
_WORKING_FOLDER = re.compile(r"Current (?:Working|Workspace) Directory \(([^)\n]+)\)")


def read(source: Source) -> Iterator[Transcript]:
    """One task or session. Raises Unreadable, OSError."""
    folder, name = os.path.split(source.path)
    if name in _SHOWN:
        yield from _task(source, _Shown)
    elif name == _HISTORY:
        if not any(os.path.exists(os.path.join(folder, other)) for other in _SHOWN):
            yield from _task(source, _Sent)
    else:
        yield from read_session(source)


def _task(source: Source, fold: Any) -> Iterator[Transcript]:
    yield from whole.transcripts(
        lambda: fold(source),
        lambda: (record for _, record in documents.records(source.path)),
        lambda _, session: _describe(source, session),
    )


class _Shown(Fold):
    """Fold over ``ui_messages.json``: asks and says, the first of which is the task."""

    label = "Cline"

    def begin(self) -> None:
        self.id = os.path.basename(os.path.dirname(self.source.path))
        #: An ask and the say that follows it show the same tool.
        self.last_tool = ""

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        kind = record.get("say") if record.get("type") == "say" else record.get("ask")
        at = self.saw(record.get("ts"))
        if record.get("partial") is True:
            return
        if not isinstance(kind, str):
            self.unknown += 1
            return
        text = content.text_of(record.get("text"))
        first = self.seq == 0 and kind in ("text", "task")
        if first or kind in ("user_feedback", "task"):
            notes = [content.image(None, url) for url in items(record.get("images")) if isinstance(url, str)]
            text = "\n".join([text.strip(), *notes]).strip()
            if text:
                self.count += 1
                self.said(_first_line(text))
                yield self.message(USER, text, at)
        elif kind in _ASSISTANT:
            text = _asked(text)
            if text:
                self.count += 1
                yield self.message(ASSISTANT, text, at)
        elif kind in _TOOLS:
            tool = content.output_text(record.get("text"))
            if tool.strip() and tool != self.last_tool:
                self.last_tool = tool
                yield self.message(TOOL, tool, at)
        elif kind in _NOTICES:
            if text.strip():
                yield self.message(SYSTEM, text, at)
        elif not _QUIET.match(kind):
            self.unknown += 1


class _Sent(Blocks):
    """Fold over ``api_conversation_history.json``: messages in the Anthropic form, wrapped for the model."""

    label = "Cline"

    def begin(self) -> None:
        super().begin()
        self.id = os.path.basename(os.path.dirname(self.source.path))

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        if record.get("isSummary"):
            return ()
        return super().feed(record)

    def user(self, text: str, at: Optional[int]) -> Iterator[Event]:
        text = titles.visible(text, _DETAILS)
        wrapped = [inner.strip() for _, inner in _WRAPPED.findall(text)]
        if _OLD_RESULT.match(text):
            yield self.message(TOOL, text, at)
            if not wrapped:
                return
        if wrapped:
            text = "\n\n".join(part for part in wrapped if part)
        yield from super().user(text, at)


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")


def _asked(text: str) -> str:
    """An assistant's text; a question or a plan is wrapped in JSON."""
    text = text.strip()
    if text.endswith(_CHANGES_FLAG):
        text = text[: -len(_CHANGES_FLAG)].rstrip()
    if text.startswith("{"):
        try:
            value = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            return text
        for name in ("question", "response", "text"):
            if isinstance(mapping(value).get(name), str):
                return content.text_of(value[name]).strip()
    return text


def _describe(source: Source, session: Session) -> None:
    """Title, folder and parent from the editor's list of tasks; the folder also from what the model was told."""
    folder = os.path.dirname(source.path)
    item = dict(_listed(source, session.session_id))
    item.update(documents.sidecar_object(os.path.join(folder, "history_item.json")))
    task = item.get("task")
    session.title = titles.title(_first_line(task) if isinstance(task, str) else "") or session.title
    for name in ("workspace", "cwdOnTaskInitialization"):
        session.cwd = session.cwd or text_or_none(item.get(name))
    session.parent_id = text_or_none(item.get("parentTaskId"))
    if session.cwd is None:
        session.cwd = _told_folder(os.path.join(folder, _HISTORY))


def _told_folder(path: str) -> Optional[str]:
    try:
        for _, record in itertools.islice(documents.records(path), 2):
            found = _WORKING_FOLDER.search(content.text_of(record.get("content")))
            if found is not None:
                return text_or_none(found.group(1))
    except (OSError, documents.Unreadable):
        pass
    return None


def _listed(source: Source, task: str) -> Mapping[str, Any]:
    for path in (
        os.path.join(source.home, "tasks", "_index.json"),
        os.path.join(source.home, "state", "taskHistory.json"),
    ):
        try:
            state = os.stat(path)
        except OSError:
            continue
        found = _list(path, state.st_mtime_ns, state.st_size).get(task)
        if found is not None:
            return found
    return {}


@functools.lru_cache(maxsize=4)
def _list(path: str, changed: int, size: int) -> Dict[str, Dict[str, Any]]:
    """The tasks of one list by id; kept while the file stays as it is, since every task of the editor asks for it."""
    value = documents.sidecar(path)
    if isinstance(value, dict):
        entries: Any = value.get("entries") or value.get("items") or list(value.values())
    else:
        entries = value
    kept = ("task", "workspace", "cwdOnTaskInitialization", "parentTaskId")
    tasks: Dict[str, Dict[str, Any]] = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("id") is not None:
            tasks[str(entry["id"])] = {name: entry[name][:4096] for name in kept if isinstance(entry.get(name), str)}
    return tasks


def files(source: Source) -> List[str]:
    """The files whose change changes what is read from ``source``, for ``Store.files``."""
    folder, name = os.path.split(source.path)
    if name in _SHOWN:
        return [os.path.join(folder, "history_item.json")]
    if name == _HISTORY:
        return [os.path.join(folder, other) for other in (*_SHOWN, "history_item.json")]
    return [os.path.join(folder, os.path.basename(folder) + ".json")]
