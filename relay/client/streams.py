"""What every way to reach a host gives its caller: a connection, a pair of streams, a completed command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class Completed(NamedTuple):
    """A command that ended: its exit code, and what it wrote (each output cut at 1 MiB)."""

    code: int
    stdout: bytes
    stderr: bytes


class ByteReader(Protocol):
    """The far side's stdout."""

    def read1(self, size: int) -> bytes:
        """Wait for bytes and give at most ``size`` of them; ``b""`` is the end, also after ``Streams.close()``."""
        ...


class ByteWriter(Protocol):
    """The far side's stdin."""

    def write(self, data: bytes) -> object:
        """Write all of ``data``; raises OSError when the far side is gone or the streams are closed meanwhile."""
        ...

    def flush(self) -> object: ...


class Streams(Protocol):
    """A running command. Any thread may call ``close()``: it ends a ``read1`` or ``write`` another thread waits in."""

    @property
    def reader(self) -> ByteReader: ...

    @property
    def writer(self) -> ByteWriter: ...

    def exit_code(self, timeout: float) -> int | None:
        """The command's exit code, waited for up to ``timeout`` seconds; None when it still runs or left none."""
        ...

    def stderr_tail(self) -> bytes:
        """The last 4 KiB the command wrote to stderr so far (the rest is dropped as it comes); never shown unasked."""
        ...

    def close(self) -> None:
        """End the command and free what it holds; returns at once and never raises. A second call does nothing."""
        ...


class Connection(Protocol):
    """A host that runs commands for us, each in an SSH exec (or a process) of its own."""

    def run(self, command: str, input: bytes | Iterable[bytes] = b"", timeout: float = 30.0) -> Completed:
        """Run ``command`` in the account's login shell to its end.

        ``timeout`` is in seconds, for all of it. Raises TimedOut, or ConnectionLost when the connection breaks.
        """
        ...

    def open(self, command: str) -> Streams:
        """Start ``command`` and give its streams. Raises ConnectionLost."""
        ...

    def close(self) -> None:
        """Close the connection and every stream of it; never raises."""
        ...
