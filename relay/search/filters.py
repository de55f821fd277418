"""Which sessions a search may answer with: agents, folders, time, and the query's repo: and path: operators."""

from __future__ import annotations

import string
from typing import Callable, Dict, NamedTuple, Optional, Tuple

_FOLD = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class Filters(NamedTuple):
    """All must hold; of several values of one kind, any. ``since`` is epoch milliseconds."""

    agents: Tuple[str, ...] = ()
    scope_paths: Tuple[str, ...] = ()
    since: Optional[int] = None
    repos: Tuple[str, ...] = ()
    paths: Tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether every session passes."""
        return not (self.agents or self.scope_paths or self.repos or self.paths or self.since is not None)


def folder_test(filters: Filters) -> Callable[[Optional[str]], bool]:
    """Whether a session's folder (cwd) passes; answers are remembered, since many sessions share a folder."""
    scopes = [_below(path) for path in filters.scope_paths]
    repos = [_fold(value) for value in filters.repos]
    absolute = [_below(value) for value in filters.paths if value.startswith("/")]
    relative = [_fold(value) for value in filters.paths if not value.startswith("/")]
    known: Dict[Optional[str], bool] = {None: not (scopes or repos or absolute or relative)}

    def passes(cwd: Optional[str]) -> bool:
        answer = known.get(cwd)
        if answer is None:
            assert cwd is not None
            folded = _fold(cwd)
            answer = known[cwd] = (
                (not scopes or any(test(cwd) for test in scopes))
                and (not repos or any(value in folded.rstrip("/").rpartition("/")[2] for value in repos))
                and (
                    not (absolute or relative)
                    or any(test(cwd) for test in absolute)
                    or any(value in folded for value in relative)
                )
            )
        return answer

    return passes


def _below(path: str) -> Callable[[str], bool]:
    """Whether a folder is ``path`` or lies below it, compared exactly."""
    own = path.rstrip("/")
    below = own + "/"

    def test(cwd: str) -> bool:
        return cwd.startswith(below) or cwd.rstrip("/") == own

    return test


def _fold(text: str) -> str:
    """Separators are one, and so is the case of ASCII letters."""
    return text.replace("\\", "/").translate(_FOLD)
