"""The agents we know: one row each, and one module each that is imported only when one of its files is read."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from relay.transcripts.types import Source

APPEND, WHOLE, DATABASE = "append", "whole", "database"


@dataclass(frozen=True)
class Env:
    """Where to look: the account's home, its environment variables, and the platform (``sys.platform``).

    ``extra_homes`` maps an agent to folders named by the person (``relay enable --root AGENT=PATH``). ``may_read`` is
    False before consent: no file is opened then, not even to learn where to look.
    """

    home: str
    variables: Mapping[str, str] = field(default_factory=dict)
    platform: str = "linux"
    extra_homes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    may_read: bool = True

    @classmethod
    def of_this_account(cls, extra_homes: Mapping[str, Sequence[str]], may_read: bool = True) -> "Env":
        """This process's own account and environment."""
        return cls(os.path.expanduser("~"), dict(os.environ), sys.platform, extra_homes, may_read)


@dataclass(frozen=True)
class Store:
    """One way an agent keeps sessions below its home.

    ``claim(relative)`` answers, for a path relative to the root (``/`` separated), the relative path of the source it
    belongs to, or None when it is no transcript: a database's ``-wal`` file belongs to the database, a folder's parts
    to the file that stands for the folder. ``descend(relative)`` says whether a folder below the root can hold any.
    ``reader`` is ``module:attribute``: an AppendReader class (append), a function from a Source to Transcripts
    (whole), or a DatabaseReader class (database). ``files(source)`` names the further files whose change changes a
    source; ``mark(source)`` gives what stands about it in a file that many sources share: a text that stays the same
    while that does. ``belongs(root, relative)`` gives, like ``claim``, the source of a path that changed and whose name
    alone does not tell it; it may look at the disk. Where a session stands in two stores of one agent, the higher
    ``rank`` answers.
    """

    agent: str
    name: str
    kind: str
    below: str
    reader: str
    claim: Callable[[str], Optional[str]]
    descend: Callable[[str], bool] = lambda relative: True
    files: Optional[Callable[[Source], Sequence[str]]] = None
    mark: Optional[Callable[[Source], str]] = None
    belongs: Optional[Callable[[str, str], Optional[str]]] = None
    rank: int = 0

    def load(self) -> Any:
        """The reader itself; imports its module."""
        module, _, attribute = self.reader.partition(":")
        return getattr(importlib.import_module(module), attribute)


@dataclass(frozen=True)
class Agent:
    """One agent: ``name`` on the wire, ``label`` for people, ``homes`` in order of preference (existing or not).

    ``homes(env)`` gives ``(folder, is_default)`` pairs; ``is_default`` means the agent finds the folder without help.
    ``lists(env)`` names the files, if any, in which the agent says where its homes are: they change while it runs.
    """

    name: str
    label: str
    homes: Callable[[Env], Sequence[Tuple[str, bool]]]
    stores: Sequence[Store]
    lists: Optional[Callable[[Env], Sequence[str]]] = None


@dataclass(frozen=True)
class Root:
    """A folder to watch for one store."""

    store: Store
    home: str
    path: str
    default_home: bool


def agents() -> Dict[str, Agent]:
    """Every known agent by its wire name."""
    from relay.transcripts.rows import AGENTS

    return {agent.name: agent for agent in AGENTS}


def roots(env: Env) -> List[Root]:
    """Every folder in which this account's transcripts may lie, whether or not it exists today."""
    found: List[Root] = []
    seen = set()
    for agent in agents().values():
        homes = list(agent.homes(env)) + [(path, False) for path in env.extra_homes.get(agent.name, ())]
        for home, is_default in homes:
            for store in agent.stores:
                path = os.path.normpath(os.path.join(home, store.below))
                if (store.agent, store.name, path) not in seen:
                    seen.add((store.agent, store.name, path))
                    found.append(Root(store, home, path, is_default))
    return found


def lists(env: Env) -> List[str]:
    """The files whose change may add to ``roots``, whether or not they exist today."""
    return [path for agent in agents().values() if agent.lists is not None for path in agent.lists(env)]


def source_of(root: Root, path: str) -> Optional[Source]:
    """The source a path below ``root`` belongs to, or None when it is no transcript."""
    relative = os.path.relpath(path, root.path).replace(os.sep, "/")
    return _anchored(root, root.store.claim(relative))


def changed_by(root: Root, path: str) -> Optional[Source]:
    """The source that a change at a path below ``root`` changes, if any; may look at the disk."""
    relative = os.path.relpath(path, root.path).replace(os.sep, "/")
    store = root.store
    anchor = store.claim(relative)
    if anchor is None and store.belongs is not None:
        anchor = store.belongs(root.path, relative)
    return _anchored(root, anchor)


def _anchored(root: Root, anchor: Optional[str]) -> Optional[Source]:
    if anchor is None:
        return None
    return Source(root.store, root.home, root.path, os.path.join(root.path, *anchor.split("/")), root.default_home)


def walk(root: Root, on_error: Optional[Callable[[OSError], None]] = None) -> Iterator[Source]:
    """Every source below ``root``, each once; folders a store cannot use are not entered, links are not followed."""
    seen = set()
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(os.path.join(root.path, folder) if folder else root.path) as entries:
                for entry in entries:
                    relative = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if root.store.descend(relative):
                            pending.append(relative)
                        continue
                    anchor = root.store.claim(relative)
                    if anchor is not None and anchor not in seen:
                        seen.add(anchor)
                        path = os.path.join(root.path, *anchor.split("/"))
                        yield Source(root.store, root.home, root.path, path, root.default_home)
        except OSError as error:
            if on_error is not None and (folder == "" or os.path.isdir(os.path.join(root.path, folder))):
                on_error(error)
