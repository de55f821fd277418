"""A command of this machine as a pair of streams (``docker exec -i …``); it ends with its whole process group.

A process of a session of its own gets no signal from here; it sees the end of its stdin, which comes first.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from typing import IO

from relay.client.deadline import Deadline
from relay.client.faults import TimedOut, Unreachable
from relay.client.streams import Completed

STDERR_KEPT = 4096
#: How long a command may take to end by itself once its stdin is closed, then once it is asked to, in seconds.
_LEAVES_ALONE = 0.4
_LEAVES_ASKED = 0.2
_PIECE = 1 << 16
_OUTPUT_KEPT = 1 << 20
_STDERR_PIECES = 64

_open: set[CommandStreams] = set()


class CommandStreams:
    """The streams of ``command``: an argument list run as it is, or one line for ``/bin/sh``.

    Raises Unreachable when it cannot be started. The command has a session of its own, so that a Ctrl-C of the
    terminal does not reach it and it can ask nothing there. ``variables`` are its environment, None for ours.
    Of stderr the last ``stderr_kept`` bytes are kept.
    """

    def __init__(
        self,
        command: tuple[str, ...] | str,
        variables: Mapping[str, str] | None = None,
        stderr_kept: int = STDERR_KEPT,
    ) -> None:
        arguments = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        try:
            self._process = subprocess.Popen(
                arguments,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=variables,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "not a possible command"
            raise Unreachable(f"{arguments[0]} cannot be started here: {why}. See `relay hosts list`.") from error
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._stdin, self._stdout, self._stderr = self._process.stdin, self._process.stdout, self._process.stderr
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        self._wake, self._waker = os.pipe()
        self._reading, self._writing, self._ending = threading.Lock(), threading.Lock(), threading.Lock()
        self._closed = False
        self._tail, self._stderr_kept = b"", stderr_kept
        self._stderr_open = True
        self.reader = self
        self.writer = self
        _open.add(self)

    def read1(self, size: int) -> bytes:
        """See ``ByteReader``; what the command writes to stderr meanwhile is taken in too."""
        with self._reading:
            while self._wait(self._stdout, select.POLLIN):
                try:
                    data = self._stdout.read(size)
                except OSError:
                    return b""
                if data is not None:
                    return data
            return b""

    def write(self, data: bytes) -> int:
        """See ``ByteWriter``."""
        with self._writing:
            rest = memoryview(data)
            while rest:
                if not self._wait(self._stdin, select.POLLOUT):
                    raise OSError("the command's streams are closed")
                rest = rest[self._stdin.write(rest[:_PIECE]) or 0 :]
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def close_stdin(self) -> None:
        """The command reads the end of its stdin."""
        with self._writing, contextlib.suppress(OSError):
            self._stdin.close()

    def exit_code(self, timeout: float) -> int | None:
        """See ``Streams``; a command that a signal ended has the code a shell would show (128 + signal)."""
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        return code if code >= 0 else 128 - code

    def stderr_tail(self) -> bytes:
        """See ``Streams``."""
        with self._reading:
            for _ in range(_STDERR_PIECES):  # not without end, should the command never stop
                if self._closed or not self._take_stderr():
                    break
        return self._tail

    def close(self) -> None:
        """See ``Streams``: waiting readers and writers end at once, the command's end is seen to behind them."""
        with self._ending:
            if self._closed:
                return
            self._closed = True
        os.write(self._waker, b"x")
        self.close_stdin()
        threading.Thread(target=self._end, name="relay-command-end", daemon=True).start()

    def _end(self, alone: float = _LEAVES_ALONE) -> None:
        """Give the command time to leave at the end of its stdin, then end it and what is left of its group."""
        with self._ending:
            if self not in _open:
                return
            if self.exit_code(alone) is None:
                self._signal(signal.SIGTERM)
                if self.exit_code(_LEAVES_ASKED) is None:
                    self._signal(signal.SIGKILL)
                    self._process.wait()
            # A process id is not given away while it names a group, so this reaches what the command left behind.
            self._signal(signal.SIGKILL)
            with self._reading:
                self._stdout.close()
                self._stderr.close()
                os.close(self._wake)
                os.close(self._waker)
            _open.discard(self)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, number)

    def _wait(self, pipe: IO[bytes], event: int) -> bool:
        """Wait until the pipe is ready (its end counts); False when the streams are closed."""
        while not self._closed:
            descriptor = pipe.fileno()
            poll = select.poll()
            poll.register(descriptor, event)
            poll.register(self._wake, select.POLLIN)
            if self._stderr_open:
                poll.register(self._stderr.fileno(), select.POLLIN)
            ready = {number for number, _ in poll.poll()}
            if self._closed:
                break
            if self._stderr_open and self._stderr.fileno() in ready:
                self._take_stderr()
            if descriptor in ready:
                return True
        return False

    def _take_stderr(self) -> bool:
        """Take in what stands in the pipe; False when there is nothing."""
        try:
            data = self._stderr.read(_PIECE) if self._stderr_open else None
        except OSError:
            data = b""
        if data:
            self._tail = (self._tail + data)[-self._stderr_kept :]
        elif data is not None:
            self._stderr_open = False
        return bool(data)


def run(
    command: tuple[str, ...] | str,
    timeout: float,
    input: bytes | Iterable[bytes] = b"",
    variables: Mapping[str, str] | None = None,
) -> Completed:
    """Run ``command`` to its end, with ``input`` on its stdin; of stderr the last 1 MiB is kept.

    However much it writes, no more is held than is kept. Raises Unreachable, or TimedOut after ``timeout`` seconds.
    """
    streams = CommandStreams(command, variables, _OUTPUT_KEPT)
    deadline = Deadline(timeout)
    alarm = threading.Timer(timeout, streams.close)
    alarm.daemon = True
    alarm.start()
    output = bytearray()
    try:
        threading.Thread(target=_feed, args=(streams, input), name="relay-command-feed", daemon=True).start()
        while piece := streams.read1(_PIECE):
            output += piece[: _OUTPUT_KEPT - len(output)]
        # A command may close its stdout and go on writing to stderr, which it must not be held up by.
        while (code := streams.exit_code(min(0.1, deadline.left()))) is None and deadline.left():
            streams.stderr_tail()
        if code is None or not deadline.left():
            raise TimedOut("The command did not end in time. Try again, or give it longer with --timeout SECONDS.")
        return Completed(code, bytes(output), streams.stderr_tail())
    finally:
        alarm.cancel()
        streams.close()


def _feed(streams: CommandStreams, input: bytes | Iterable[bytes]) -> None:
    with contextlib.suppress(OSError):  # a command may well end without having read all it was given
        for piece in (input,) if isinstance(input, bytes) else input:
            streams.write(piece)
    streams.close_stdin()


def _end_all() -> None:
    """At the end of our own process: no command outlives it."""
    for streams in list(_open):
        streams.close()
    until = time.monotonic() + _LEAVES_ALONE
    for streams in list(_open):
        streams._end(max(0.0, until - time.monotonic()))


atexit.register(_end_all)
