"""Where a chain of forks began: what all copies of a conversation share."""

from __future__ import annotations

from typing import Callable, Optional, Set

#: Generations that are looked up.
_GENERATIONS = 16


def first(session_id: str, origin: Callable[[str], Optional[str]]) -> str:
    """The first session of the chain that ``session_id`` stands in; ``origin`` tells what a session was forked from.

    Ends where an origin is not known (the session is gone), at a circle, and after some generations.
    """
    seen: Set[str] = set()
    while session_id not in seen and len(seen) < _GENERATIONS:
        seen.add(session_id)
        before = origin(session_id)
        if before is None:
            break
        session_id = before
    return session_id
