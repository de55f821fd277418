"""One writer per index: an exclusive lock on a file, which the kernel releases when its holder dies."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from typing import Optional

from relay.index.faults import IndexUnwritable, NotOwner

FILE_NAME = "writer.lock"

_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


class Ownership:
    """The writer's lock of one state folder. Not shared with children: the descriptor is closed on exec."""

    def __init__(self, state_folder: str) -> None:
        self._path = os.path.join(state_folder, FILE_NAME)
        self._descriptor: Optional[int] = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def take(self) -> bool:
        """Take the lock if it is free, without waiting. Raises IndexUnwritable when there can be no lock file."""
        if self._descriptor is not None:
            return True
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as error:
            raise IndexUnwritable(f"The state folder cannot be written: {error.strerror}.") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in _HELD:
                return False
            raise IndexUnwritable(f"The state folder cannot be locked: {error.strerror}.") from error
        # Somebody may have removed the folder between our open and our lock: a lock on a lost file guards nothing.
        if not self._is_ours(descriptor):
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def take_within(self, seconds: float) -> None:
        """Take the lock, waiting for its holder to let go. Raises NotOwner, IndexUnwritable."""
        deadline = time.monotonic() + seconds
        while not self.take():
            if time.monotonic() >= deadline:
                raise NotOwner("Another process is writing the index and did not let go in time; try again.")
            time.sleep(0.05)

    def lost(self) -> bool:
        """Whether the lock file was removed or replaced under us, so that another process may hold a lock, too."""
        return self._descriptor is not None and not self._is_ours(self._descriptor)

    def release(self) -> None:
        """Let go; may be called twice."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _is_ours(self, descriptor: int) -> bool:
        try:
            ours, there = os.fstat(descriptor), os.stat(self._path)
        except OSError:
            return False
        return (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino)
