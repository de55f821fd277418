"""Being a good guest: the writing thread runs at low CPU and I/O priority and rests while the machine is busy."""

from __future__ import annotations

import contextlib
import os
import sys
import threading

#: Nice value of the writing thread.
NICENESS = 10

#: ioprio_set(2) by machine; there is no wrapper in libc.
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30, "arm64": 30}
_WHO_PROCESS, _CLASS_BEST_EFFORT, _LOWEST = 1, 2, 7


def lower_this_thread() -> None:
    """Lower the calling thread's priority, on Linux alone: elsewhere the call would slow down the whole process."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # a hundredth of a second that only a writer spends

    thread = threading.get_native_id()
    try:
        if os.getpriority(os.PRIO_PROCESS, thread) < NICENESS:
            os.setpriority(os.PRIO_PROCESS, thread, NICENESS)
        number = _IOPRIO_SET.get(os.uname().machine)
        if number is not None:
            ctypes.CDLL(None).syscall(number, _WHO_PROCESS, thread, _CLASS_BEST_EFFORT << 13 | _LOWEST)
    except (OSError, AttributeError):
        pass  # a politeness, no condition


def give_back_memory() -> None:
    """Have the C library (glibc alone knows how) return to the system what was freed since a backfill."""
    if sys.platform.startswith("linux"):
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def is_busy() -> bool:
    """Whether more is running on this machine than it has processors, this thread not counted."""
    try:
        return os.getloadavg()[0] - 1 > (os.cpu_count() or 1)
    except OSError:
        return False
