"""Which files below a root are transcripts, and where an agent's home is: patterns as data."""

from __future__ import annotations

import functools
import importlib
import os
import re
from typing import Any, Callable, List, Optional, Pattern, Sequence, Tuple, Union

from relay.transcripts.registry import Env, Store
from relay.transcripts.types import Source

#: ``glob``, or ``(glob, anchor)`` when the file belongs to another one.
Claim = Union[str, Tuple[str, str]]


class Paths:
    """Which relative paths are transcripts.

    A pattern is ``/``-separated: ``*`` is any text within a name, ``?`` one character, ``[…]`` one of a set, a segment
    ``**`` any number of folders (none too), ``<uuid>`` a UUID, ``<hex>`` one that may lack its dashes. With an anchor,
    the path belongs to the file the anchor names: ``("*/workspace.yaml", "{0}/events.jsonl")``, where ``{n}`` is what
    the n-th wildcard stood for. The first pattern that fits decides; what fits one of ``never`` is no transcript.
    """

    def __init__(self, *claims: Claim, never: Sequence[str] = ()) -> None:
        self._globs = [(claim, None) if isinstance(claim, str) else claim for claim in claims]
        self._never_globs = never

    # Compiled when first asked: of the agents that are known, few are on one machine.

    @functools.cached_property
    def _claims(self) -> List[Tuple[Pattern[str], Optional[str]]]:
        return [(_compiled(glob), anchor) for glob, anchor in self._globs]

    @functools.cached_property
    def _never(self) -> List[Pattern[str]]:
        return [_compiled(glob) for glob in self._never_globs]

    @functools.cached_property
    def _folders(self) -> List[Tuple[List[Pattern[str]], bool]]:
        return [_folder_patterns(glob) for glob, _ in self._globs]

    def claim(self, relative: str) -> Optional[str]:
        """The path of the source that the file at ``relative`` belongs to, or None."""
        for pattern, anchor in self._claims:
            match = pattern.match(relative)
            if match is not None:
                if any(other.match(relative) for other in self._never):
                    return None
                return relative if anchor is None else anchor.format(*(group or "" for group in match.groups()))
        return None

    def descend(self, relative: str) -> bool:
        """Whether the folder at ``relative`` can hold a transcript at any depth."""
        if any(other.match(relative) for other in self._never):
            return False
        depth = relative.count("/")
        for levels, open_ended in self._folders:
            if depth < len(levels):
                if levels[depth].match(relative):
                    return True
            elif open_ended and (not levels or levels[-1].match("/".join(relative.split("/")[: len(levels)]))):
                return True
        return False


_UUID = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_TOKEN = re.compile(r"\*\*/|\*\*$|\*|\?|<uuid>|<hex>|\[[^]/]+\]|[^*?<[]+|.", re.DOTALL)


def _compiled(glob: str) -> Pattern[str]:
    out: List[str] = []
    for token in _TOKEN.findall(glob):
        if token == "**/":
            out.append("((?:[^/]+/)*)")
        elif token == "**":
            out.append("(.*)")
        elif token == "*":
            out.append("([^/]*)")
        elif token == "?":
            out.append("([^/])")
        elif token == "<uuid>":
            out.append(f"({_UUID})")
        elif token == "<hex>":
            out.append("([0-9a-fA-F-]{32,36})")
        elif token.startswith("[") and token.endswith("]"):
            out.append(f"({token})")
        else:
            out.append(re.escape(token))
    return re.compile("".join(out) + r"\Z", re.DOTALL)


def _folder_patterns(glob: str) -> Tuple[List[Pattern[str]], bool]:
    """A pattern for each level of folders above the file, down to a ``**``; and whether there was one."""
    segments = glob.split("/")[:-1]
    open_ended = "**" in segments
    if open_ended:
        segments = segments[: segments.index("**")]
    return [_compiled("/".join(segments[: level + 1])) for level in range(len(segments))], open_ended


def store(
    agent: str,
    name: str,
    kind: str,
    below: str,
    reader: str,
    claims: Sequence[Claim],
    never: Sequence[str] = (),
    **more: Any,
) -> Store:
    """A registry row's store whose files are told by patterns (see ``Paths``); ``more`` goes to ``Store`` as it is."""
    paths = Paths(*claims, never=never)
    return Store(agent, name, kind, below, f"relay.transcripts.{reader}", paths.claim, paths.descend, **more)


def beside(*names: str) -> Callable[[Source], List[str]]:
    """For ``Store.files``: files named relative to the folder of the source's own file."""

    def files(source: Source) -> List[str]:
        folder = os.path.dirname(source.path)
        return [os.path.normpath(os.path.join(folder, *name.split("/"))) for name in names]

    return files


def files_by(function: str) -> Callable[[Source], Sequence[str]]:
    """For ``Store.files``: the function at ``module:attribute`` of this package, imported when it is first asked."""
    return _later(function)


def mark_by(function: str) -> Callable[[Source], str]:
    """For ``Store.mark``, likewise."""
    return _later(function)


def _later(function: str) -> Callable[[Source], Any]:
    module, _, attribute = function.partition(":")

    def call(source: Source) -> Any:
        return getattr(importlib.import_module(f"relay.transcripts.{module}"), attribute)(source)

    return call


def homes(*places: str) -> Callable[[Env], Sequence[Tuple[str, bool]]]:
    """An agent's homes: ``homes("$CODEX_HOME", "~/.codex")``.

    A place that begins with a variable is an override: when the variable is set to an absolute path (or one below
    ``~``), that place alone counts. ``$XDG_DATA_HOME`` and its like always have a value. The other places all count,
    in this order; one written ``darwin:~/Library/…`` only on that platform (``sys.platform``).
    """

    def found(env: Env) -> Sequence[Tuple[str, bool]]:
        defaults: List[Tuple[str, bool]] = []
        for place in places:
            platform, colon, rest = place.partition(":")
            if colon and not platform.startswith(("$", "~")):
                if env.platform != platform:
                    continue
                place = rest
            head, _, tail = place.partition("/")
            if head.startswith("$") and not head.startswith("$XDG_"):
                base = _absolute(env, env.variables.get(head[1:], ""))
                if base:
                    return [(os.path.join(base, tail) if tail else base, False)]
                continue
            base = env.home if head == "~" else _xdg(env, head[1:])
            path = os.path.join(base, *tail.split("/"))
            if (path, True) not in defaults:
                defaults.append((path, True))
        return defaults

    return found


def together(*finders: Callable[[Env], Sequence[Tuple[str, bool]]]) -> Callable[[Env], Sequence[Tuple[str, bool]]]:
    """The homes that each of ``finders`` gives, for an agent whose variables move one of several places only."""
    return lambda env: [found for finder in finders for found in finder(env)]


_XDG = {"XDG_DATA_HOME": ".local/share", "XDG_CONFIG_HOME": ".config", "XDG_STATE_HOME": ".local/state"}


def _xdg(env: Env, name: str) -> str:
    value = env.variables.get(name, "")
    return value if os.path.isabs(value) else os.path.join(env.home, *_XDG[name].split("/"))


def _absolute(env: Env, value: str) -> str:
    if value == "~" or value.startswith("~/"):
        value = env.home + value[1:]
    return os.path.normpath(value) if os.path.isabs(value) else ""
