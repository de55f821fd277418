"""What keeps memory bounded: a budget of bytes for calls in flight, and an output that holds back who writes to it."""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections import deque
from typing import Callable, Deque, Union


class Budget:
    """Bytes that may be in use at a time; whoever wants more waits. One too large for it is let in alone."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._open = True
        self._changed = threading.Condition()

    def take(self, cost: int) -> None:
        """Wait until ``cost`` bytes are free, or ``lift`` was called, and use them."""
        with self._changed:
            while self._open and self._used and self._used + cost > self._limit:
                self._changed.wait()
            self._used += cost

    def give(self, cost: int) -> None:
        """Free ``cost`` bytes."""
        with self._changed:
            self._used -= cost
            self._changed.notify_all()

    def lift(self) -> None:
        """Let everybody through from now on."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def wait_unused(self, deadline: float) -> bool:
        """Wait until nothing is in use, at most until ``deadline`` (``time.monotonic()``); whether it came to that."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._used, max(0.0, deadline - time.monotonic()))


class Output:
    """Whole frames to a file descriptor, written by a thread of its own in the order they came.

    ``put`` waits while ``limit`` bytes are unwritten, so a peer that does not read holds up whoever answers it.
    ``on_closed`` is called once when the peer is gone; from then on frames are dropped.
    """

    def __init__(self, fd: int, on_closed: Callable[[], None], limit: int = 1 << 20) -> None:
        self._fd = fd
        self._on_closed = on_closed
        self._limit = limit
        self._frames: Deque[bytes] = deque()
        self._size = 0
        self._changed = threading.Condition()
        self.closed = False
        threading.Thread(target=self._drain, name="output", daemon=True).start()

    def put(self, frame: bytes) -> None:
        """Have ``frame`` written."""
        with self._changed:
            while self._size >= self._limit and not self.closed:
                self._changed.wait()
            if not self.closed:
                self._frames.append(frame)
                self._size += len(frame)
                self._changed.notify_all()

    def lift(self) -> None:
        """Let everybody put what they hold and go: the end is near, and what is left is little."""
        with self._changed:
            self._limit = sys.maxsize
            self._changed.notify_all()

    def close(self, deadline: float) -> None:
        """Wait until all is written, at most until ``deadline`` (``time.monotonic()``); drop the rest."""
        with self._changed:
            self._changed.wait_for(lambda: not self._size, max(0.0, deadline - time.monotonic()))
            self._close()

    def _drain(self) -> None:
        while True:
            with self._changed:
                while not self._frames:
                    if self.closed:
                        return
                    self._changed.wait()
                data = b"".join(self._frames)
                self._frames.clear()
            try:
                write_all(self._fd, data)
            except OSError:  # EPIPE and its kin: nobody will ever read it
                with self._changed:
                    self._close()
                self._on_closed()
                return
            with self._changed:
                self._size -= len(data)
                self._changed.notify_all()

    def _close(self) -> None:
        self.closed = True
        self._frames.clear()
        self._size = 0
        self._changed.notify_all()


def write_all(fd: int, data: Union[bytes, memoryview]) -> None:
    """Write every byte, on a descriptor that may have been set not to block as well. Raises OSError."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:
            select.select((), (fd,), ())


def read_some(fd: int, most: int = 1 << 16) -> bytes:
    """Read what there is, waiting for at least a byte; empty at the end of the stream. Raises OSError."""
    while True:
        try:
            return os.read(fd, most)
        except BlockingIOError:
            select.select((fd,), (), ())
