"""The shell command that reopens a session."""

from __future__ import annotations

import shlex
from typing import Mapping, Optional

from relay.transcripts.types import Source


def command(*words: str, env: Optional[Mapping[str, str]] = None) -> str:
    """``words`` quoted for a POSIX shell, with the environment they need in front."""
    assignments = [f"{name}={shlex.quote(value)}" for name, value in (env or {}).items()]
    return " ".join(assignments + [shlex.quote(word) for word in words])


def home_variable(source: Source, name: str) -> Mapping[str, str]:
    """The variable by which the agent finds a home that is not its default one; empty for the default one."""
    return {} if source.default_home else {name: source.home}


def data_home(source: Source, name: str) -> Mapping[str, str]:
    """``XDG_DATA_HOME`` for an agent that keeps ``$XDG_DATA_HOME/<name>``; empty for one it looks at anyway."""
    parent = source.home[: -len(name) - 1]
    usual = source.default_home and parent.endswith(("/.local/share", "/Library/Application Support"))
    return {"XDG_DATA_HOME": parent} if source.home == f"{parent}/{name}" and not usual else {}
