"""OpenCode before its database: a tree of JSON files, one for each session, message and part."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from relay.transcripts import times
from relay.transcripts.documents import sidecar_object
from relay.transcripts.fold import Fold, mapping, text_or_none
from relay.transcripts.opencode import OpenCode, own_title, place, undone_from
from relay.transcripts.types import Session, Source, Transcript, Unreadable
from relay.transcripts.whole import transcripts

#: The parts of so many of a session's last messages may still be growing.
_GROWING = 2


def read(source: Source) -> Iterator[Transcript]:
    """The session whose head is at ``source.path``: ``session/<project>/<id>.json`` or ``session/info/<id>.json``."""
    if not os.path.exists(source.path):
        raise FileNotFoundError(source.path)
    head = sidecar_object(source.path)
    if not head:
        raise Unreadable("The session's file is not a JSON object.")
    session_id = _identity(source, head)
    clock = mapping(head.get("time"))
    parent = head.get("parentID")
    hidden = undone_from(head.get("revert"))

    def start() -> OpenCode:
        fold = OpenCode(source)
        fold.id, fold.name = session_id, own_title(head.get("title"))
        fold.cwd = place(text_or_none(head.get("directory")), _worktree(source, head))
        fold.saw(clock.get("updated"))
        return fold

    def finish(fold: Fold, session: Session) -> None:
        session.created_at = times.millis(clock.get("created")) or session.created_at
        session.parent_id = text_or_none(parent)

    return transcripts(start, lambda: _records(source, session_id, hidden), finish)


def files(source: Source) -> Sequence[str]:
    """The files and folders whose change changes the session: its messages, and the folders of their parts.

    Of the last messages the parts, too: while a reply grows, they are rewritten in place, which no folder shows.
    """
    messages, parts = _folders(source)
    found: List[str] = []
    named_alike = _message_folders(messages, source, {})
    for folder in named_alike or _message_folders(messages, source, sidecar_object(source.path)):
        names = _names(folder)
        owned = [_part_folder(parts, os.path.basename(folder), name[: -len(".json")]) for name in names]
        found.extend(os.path.join(folder, name) for name in names)
        found.extend(owned)
        for own in owned[-_GROWING:]:
            found.extend(os.path.join(own, name) for name in _names(own))
    return found


def belongs(root: str, relative: str) -> Optional[str]:
    """The session's file, relative to ``root``, for the path of a message or a part, or of a folder of them."""
    segments = relative.split("/")
    if segments[0] == "session":  # where the oldest versions kept them
        segments = segments[1:]
    if len(segments) < 2 or segments[0] not in ("message", "part"):
        return None
    heads = _heads(root, segments[1])
    if not heads and segments[0] == "part":
        session = _session_of_part(root, relative, segments[1])
        heads = _heads(root, session) if session else []
    return heads[0] if heads else None


def _session_of_part(root: str, relative: str, message: str) -> Optional[str]:
    if relative.endswith(".json"):
        named = text_or_none(sidecar_object(os.path.join(root, relative)).get("sessionID"))
        if named and "/" not in named:
            return named
    messages = os.path.join(root, *relative.split("/")[: relative.split("/").index("part")], "message")
    try:
        folders = os.listdir(messages)
    except OSError:
        return None
    return next((folder for folder in folders if os.path.exists(f"{messages}/{folder}/{message}.json")), None)


def _heads(root: str, session: str) -> List[str]:
    """Where a session's file is, relative to ``root``: none or one path."""
    try:
        projects = sorted(os.listdir(os.path.join(root, "session")))
    except OSError:
        return []
    found = (f"session/{project}/{session}.json" for project in projects)
    return [relative for relative in found if os.path.exists(os.path.join(root, relative))]


def _part_folder(parts: str, session: str, message: str) -> str:
    """The folder of a message's parts, whether or not it exists."""
    named = os.path.join(parts, session, message)
    return named if os.path.isdir(named) else os.path.join(parts, message)


def _identity(source: Source, head: Mapping[str, Any]) -> str:
    return text_or_none(head.get("id")) or os.path.basename(source.path)[: -len(".json")]


def _records(source: Source, session_id: str, hidden: Optional[str]) -> Iterator[Mapping[str, Any]]:
    messages, parts = _folders(source)
    found: List[Tuple[float, str, Dict[str, Any]]] = []
    for folder in _message_folders(messages, source, {"id": session_id}):
        for name in _names(folder):
            info = sidecar_object(os.path.join(folder, name))
            identity = text_or_none(info.get("id")) or name[: -len(".json")]
            if hidden is None or identity < hidden:
                found.append((times.millis(mapping(info.get("time")).get("created")) or 0, identity, info))
    for _, identity, info in sorted(found, key=lambda entry: entry[:2]):
        yield {"info": info, "parts": _parts(parts, session_id, identity)}


def _parts(folder: str, session_id: str, message: str) -> List[Dict[str, Any]]:
    if "/" in message or "/" in session_id:
        return []
    own = _part_folder(folder, session_id, message)
    if os.path.isdir(own):
        paths = [os.path.join(own, name) for name in _names(own)]
    else:
        paths = _loose_parts(folder, _changed(folder)).get(message, [])
    found = [sidecar_object(path) for path in paths]
    return sorted(filter(None, found), key=lambda part: (_began(part), str(part.get("id", ""))))


def _began(part: Mapping[str, Any]) -> int:
    clock = mapping(part.get("time")) or mapping(mapping(part.get("state")).get("time"))
    return times.millis(clock.get("start")) or 0


@lru_cache(maxsize=4)
def _loose_parts(folder: str, changed: int) -> Mapping[str, List[str]]:
    """By message id: the parts that lie in the folder itself, as the first versions kept them."""
    found: Dict[str, List[str]] = {}
    for name in _names(folder):
        message = sidecar_object(os.path.join(folder, name)).get("messageID")
        if isinstance(message, str):
            found.setdefault(message, []).append(os.path.join(folder, name))
    return found


def _changed(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _folders(source: Source) -> Tuple[str, str]:
    """Where messages and parts lie: beside ``session``, or in it when the head is in ``session/info``."""
    above, project = os.path.split(os.path.dirname(source.path))
    base = above if project == "info" else os.path.dirname(above)
    return os.path.join(base, "message"), os.path.join(base, "part")


def _message_folders(messages: str, source: Source, head: Mapping[str, Any]) -> List[str]:
    names = {_identity(source, head), os.path.basename(source.path)[: -len(".json")]}
    paths = [os.path.join(messages, name) for name in sorted(names) if "/" not in name]
    return [path for path in paths if os.path.isdir(path)]


def _worktree(source: Source, head: Mapping[str, Any]) -> Optional[str]:
    project = text_or_none(head.get("projectID")) or os.path.basename(os.path.dirname(source.path))
    storage = os.path.dirname(os.path.dirname(os.path.dirname(source.path)))
    if "/" in project:
        return None
    return text_or_none(sidecar_object(os.path.join(storage, "project", f"{project}.json")).get("worktree"))


def _names(folder: str) -> List[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except OSError:
        return []
