"""A command on a paramiko channel as a pair of streams, and run to its end."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable
from typing import Any

from relay.client.faults import ConnectionLost, TimedOut
from relay.client.streams import Completed

_PIECE = 1 << 15
_STDERR_KEPT = 4096
_OUTPUT_KEPT = 1 << 20


class ChannelStreams:
    """See ``Streams``; ``channel`` already runs its command."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._tail = b""
        self.reader = self
        self.writer = self
        # Both outputs share one window, so whoever reads stdout alone would stop at a full stderr.
        self._draining = threading.Thread(target=self._drain, name="relay-ssh-stderr", daemon=True)
        self._draining.start()

    def read1(self, size: int) -> bytes:
        """See ``ByteReader``."""
        return self._channel.recv(size)

    def write(self, data: bytes) -> int:
        """See ``ByteWriter``."""
        try:
            self._channel.sendall(data)
        except EOFError as error:  # what paramiko says of a connection that broke under it
            raise OSError("the connection is gone") from error
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def exit_code(self, timeout: float) -> int | None:
        """See ``Streams``."""
        self._channel.status_event.wait(timeout)
        code = self._channel.exit_status
        return code if code >= 0 else None

    def stderr_tail(self) -> bytes:
        """See ``Streams``."""
        if self._channel.status_event.is_set():
            self._draining.join(1.0)  # all of it has arrived, but may not be taken in yet
        return self._tail

    def close(self) -> None:
        """See ``Streams``."""
        with contextlib.suppress(Exception):
            self._channel.close()

    def _drain(self) -> None:
        with contextlib.suppress(Exception):
            for data in iter(lambda: self._channel.recv_stderr(_PIECE), b""):
                self._tail = (self._tail + data)[-_STDERR_KEPT:]


def run(channel: Any, input: bytes | Iterable[bytes], timeout: float, target: str) -> Completed:
    """Feed ``input`` to the channel's command and wait for its end. Raises TimedOut or ConnectionLost."""
    end = time.monotonic() + timeout
    outputs = (bytearray(), bytearray())
    threads = [
        threading.Thread(target=_collect, args=(channel.recv, outputs[0]), daemon=True),
        threading.Thread(target=_collect, args=(channel.recv_stderr, outputs[1]), daemon=True),
        threading.Thread(target=_feed, args=(channel, input), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        # Not the feeder: a command may well end without having read all it was given.
        for thread in threads[:2]:
            thread.join(max(0.0, end - time.monotonic()))
        if any(thread.is_alive() for thread in threads[:2]) or not channel.status_event.wait(
            max(0.0, end - time.monotonic())
        ):
            raise TimedOut(f"{target} did not finish within {timeout:g} s. Try again, or allow more time.")
    finally:
        with contextlib.suppress(Exception):
            channel.close()
    if channel.exit_status < 0:
        raise ConnectionLost(f"The connection to {target} broke before its answer was whole. Try again.")
    return Completed(channel.exit_status, bytes(outputs[0]), bytes(outputs[1]))


def _collect(receive: Any, output: bytearray) -> None:
    with contextlib.suppress(Exception):
        for data in iter(lambda: receive(_PIECE), b""):
            output += data[: _OUTPUT_KEPT - len(output)]


def _feed(channel: Any, input: bytes | Iterable[bytes]) -> None:
    with contextlib.suppress(Exception):  # the command's end tells more than its closed stdin
        for piece in (input,) if isinstance(input, bytes) else input:
            channel.sendall(piece)
        channel.shutdown_write()
