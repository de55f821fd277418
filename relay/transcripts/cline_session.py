"""Sessions of the Cline CLI: a folder with a manifest and one ``*.messages.json`` for each agent."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Iterable, Iterator, Mapping, Optional

from relay.transcripts import documents, forks, resume, times, titles, whole
from relay.transcripts.anthropic import Blocks
from relay.transcripts.fold import mapping, text_or_none
from relay.transcripts.types import Event, Session, Source, Transcript

_SUFFIX = ".messages.json"
_INJECTED = titles.blocks("SYSTEM_NOTICE", "environment_details", "mode_notice")
_INPUT = re.compile(r"<user_input\b[^>]*>(.*?)(?:</user_input>|\Z)", re.DOTALL)
_COMMAND = re.compile(r"<user_command\b([^>]*)>(.*?)(?:</user_command>|\Z)", re.DOTALL)
_SLASH = re.compile(r"""slash=["']/?([^"']+)["']""")


def read_session(source: Source) -> Iterator[Transcript]:
    """One agent of a session: the one that leads it, or one it started. Raises Unreadable, OSError."""
    yield from whole.transcripts(
        lambda: _Agent(source), lambda: _records(source.path), lambda _, session: _describe(source, session)
    )


def _records(path: str) -> Iterator[Mapping[str, Any]]:
    head: Dict[str, Any] = {}
    for name, value in documents.members(path, "messages"):
        if name == "messages" and isinstance(value, dict):
            yield value
        elif name in ("updated_at", "agent", "sessionId"):
            head[name] = value
    yield {"$head": head}


class _Agent(Blocks):
    label = "Cline"

    def begin(self) -> None:
        folder, name = os.path.split(self.source.path)
        own = name[: -len(_SUFFIX)]
        self.id = os.path.basename(folder)
        if own != self.id:
            self.parent, self.id = self.id, f"{self.id}/{own}"

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        if "$head" in record:
            self.saw(record["$head"].get("updated_at"))
            return ()
        if mapping(record.get("metadata")).get("displayRole") == "system":  # what compaction put there
            return ()
        return super().feed(record)

    def user(self, text: str, at: Optional[int]) -> Iterator[Event]:
        text = _INPUT.sub(lambda found: found.group(1).strip(), text)
        return super().user(titles.visible(_COMMAND.sub(_command, text), _INJECTED), at)


def _command(found: "re.Match[str]") -> str:
    slash = _SLASH.search(found.group(1))
    return f"/{slash.group(1)} {found.group(2).strip()}" if slash else found.group(2).strip()


def _describe(source: Source, session: Session) -> None:
    """What the session's manifest tells."""
    main = session.parent_id or session.session_id
    manifest = _manifest(os.path.dirname(source.path))
    metadata = mapping(manifest.get("metadata"))
    session.cwd = text_or_none(manifest.get("cwd")) or text_or_none(manifest.get("workspace_root"))
    session.created_at = times.millis(manifest.get("started_at")) or session.created_at
    session.resume = _resume(source, main)
    if session.parent_id is not None:
        return
    name = titles.title(text_or_none(metadata.get("title")))
    if not name and session.title == titles.fallback(_Agent.label, main):
        name = titles.title(text_or_none(manifest.get("prompt")))
    session.title = name or session.title
    ended = times.millis(manifest.get("ended_at"))
    if ended is not None and (session.updated_at is None or ended > session.updated_at):
        session.updated_at = ended
    origin = _origin(manifest)
    if origin is not None:
        sessions = os.path.dirname(os.path.dirname(source.path))
        session.lineage = forks.first(origin, lambda name: _origin(_manifest(os.path.join(sessions, name))))


def _manifest(folder: str) -> Mapping[str, Any]:
    return documents.sidecar_object(os.path.join(folder, os.path.basename(folder) + ".json"))


def _origin(manifest: Mapping[str, Any]) -> Optional[str]:
    return text_or_none(mapping(mapping(manifest.get("metadata")).get("fork")).get("forkedFromSessionId"))


def _resume(source: Source, session_id: str) -> str:
    below_data = os.path.relpath(source.path, source.home).startswith("sessions" + os.sep)
    moved = resume.home_variable(source, "CLINE_DATA_DIR" if below_data else "CLINE_SESSION_DATA_DIR")
    return resume.command("cline", "--id", session_id, env=moved)
