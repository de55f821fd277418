"""What the agent says on stderr: single lines that never hold a path of the host, and never wait for a reader."""

from __future__ import annotations

import os
import select
import threading
from types import TracebackType
from typing import Optional

_LONGEST = 512  # bytes: POSIX promises that a pipe which polls writable takes this much without waiting
_lock = threading.Lock()


def say(line: str, fd: int = 2) -> None:
    """Write ``relay: line`` to stderr; dropped when that is closed or its reader does not read."""
    data = f"relay: {line}".encode("utf-8", "replace")[: _LONGEST - 1] + b"\n"
    try:
        with _lock:
            if select.select((), (fd,), (), 0)[1]:
                os.write(fd, data)
    except (OSError, ValueError):
        pass


def describe(error: BaseException) -> str:
    """The error's type and the line of code it came from, without its text, which may quote a path or a transcript."""
    return f"{type(error).__name__} in {_origin(error.__traceback__)}"


def _origin(trace: Optional[TracebackType]) -> str:
    """The innermost frame of our own code (of any code when there is none), as ``module:line``."""
    found = "unknown"
    ours = False
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "?")
        is_ours = str(module).startswith("relay.")
        if is_ours or not ours:
            found, ours = f"{module}:{trace.tb_lineno}", ours or is_ours
        trace = trace.tb_next
    return found
