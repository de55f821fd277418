"""Files as agents left them on disk: only regular ones are opened, since a pipe can hold its reader for ever."""

from __future__ import annotations

import errno
import os
import stat
from typing import Tuple


def is_regular(path: str) -> bool:
    """Whether a file, or what the link leads to, is a regular file. Raises OSError when there is none."""
    return stat.S_ISREG(os.stat(path).st_mode)


def opener(path: str, flags: int) -> int:
    """For ``open(path, opener=…)``: a descriptor that never blocks. Raises OSError for a pipe or a device, too."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # open() has its own error for a folder
        os.close(descriptor)
        raise OSError(errno.EINVAL, "It is no regular file", path)
    return descriptor


def stamp(path: str) -> Tuple[int, int, int]:
    """A file's inode, size and mtime in nanoseconds; zeros when it cannot be looked at."""
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0, 0
    return status.st_ino, status.st_size, status.st_mtime_ns
