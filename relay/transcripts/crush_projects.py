"""Crush's registry of projects: where each project keeps its data."""

from __future__ import annotations

import os
from typing import Iterator, List, Mapping, Optional, Sequence, Tuple

from relay.transcripts.documents import sidecar_object
from relay.transcripts.registry import Env


def homes(env: Env) -> Sequence[Tuple[str, bool]]:
    """The data folders of the registered projects; a project's own ``.crush`` is found without help."""
    found: List[Tuple[str, bool]] = []
    if not env.may_read:
        return found
    for project, folder in _projects(env.home, env.variables):
        home = (folder, os.path.join(project, ".crush") == folder)
        if home not in found:
            found.append(home)
    return found


def registries(home: str, variables: Mapping[str, str]) -> List[str]:
    """The files that may name projects, the first that exists being the one in use."""
    places = [variables.get("CRUSH_GLOBAL_DATA", "")]
    data = variables.get("XDG_DATA_HOME", "")
    places.append(os.path.join(data, "crush") if os.path.isabs(data) else "")
    places.append(os.path.join(home, ".local", "share", "crush"))
    return [os.path.join(place, "projects.json") for place in places if os.path.isabs(place)]


def project_of(data_folder: str) -> Optional[str]:
    """The project that keeps its data in this folder, which is not the project's own ``.crush``; None when unknown."""
    for project, folder in _projects(os.path.expanduser("~"), os.environ):
        if folder == data_folder:
            return project
    return None


def _projects(home: str, variables: Mapping[str, str]) -> Iterator[Tuple[str, str]]:
    """``(project, data folder)`` for each entry of the registry."""
    for registry in registries(home, variables):
        if not os.path.exists(registry):
            continue
        entries = sidecar_object(registry).get("projects")
        for entry in entries if isinstance(entries, list) else ():
            project = entry.get("path") if isinstance(entry, dict) else None
            folder = entry.get("data_dir") if isinstance(entry, dict) else None
            if isinstance(project, str) and os.path.isabs(project):
                folder = folder if isinstance(folder, str) and folder else ".crush"
                yield os.path.normpath(project), os.path.normpath(os.path.join(project, folder))
        return
