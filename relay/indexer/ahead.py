"""Reading ahead of a backfill: a second process turns the next files into rows while this one writes those before.

Only files never read before, of append-only stores, are read ahead. Whatever goes wrong there (a fault in a reader, a
process that ends) only means that the writer reads the file itself. The process ends with its standard input: with the
backfill, and with this process however that ends.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from typing import Any, Deque, Iterator, List, NamedTuple, Optional, Tuple

import relay
from relay.index.rows import Row
from relay.indexer.changes import Fingerprint
from relay.indexer.collecting import Slice
from relay.indexer.listing import Lost
from relay.transcripts.registry import APPEND
from relay.transcripts.types import Session, Source

#: Larger files are read by the writer: their slices overlap little, and one process with a huge line is enough.
FILE_LIMIT = 64 << 20
#: Bytes of files that are asked for ahead.
BYTES = 16 << 20
#: Bytes of answers that wait here; further ones wait in the pipe and hold up the other process.
READY = 8 << 20
#: Seconds for which an answer waits when the writer is the slower of the two; then texts are compressed here, too.
WAITED = 0.005

_LENGTH = struct.Struct(">I")
_START = "import sys; sys.path.insert(0, sys.argv[1]); from relay.indexer.ahead import work; work()"


class Portion(NamedTuple):
    """A slice of a file as rows, and how the reader stood behind it (see ``appending.Fold``)."""

    rows: List[Row]
    rewind: Optional[int]
    characters: int
    offset: int
    done: bool
    session: Optional[Session]
    unknown: int
    failure: Optional[str]
    state: bytes


class Early:
    """A file that is read ahead, to be used like the ``appending.Fold`` of a file that is read here."""

    def __init__(self, ahead: Ahead) -> None:
        self._ahead = ahead
        #: The file's fingerprint when it was opened.
        self.now: Fingerprint = ahead.receive()
        self.offset = 0
        self.done = False
        self.unknown = 0
        self._last: Optional[Portion] = None

    def slices(self, size: int) -> Iterator[Slice]:
        """What was said in the file, slice by slice. Raises Lost."""
        while not self.done:
            portion: Portion = self._ahead.receive()
            self._last = portion
            self.offset, self.done, self.unknown = portion.offset, portion.done, portion.unknown
            yield Slice.of_rows(portion.rows, portion.rewind, portion.characters)

    def session(self) -> Optional[Session]:
        """The head of the session behind the last slice."""
        return None if self._last is None else self._last.session

    def failure(self) -> Optional[str]:
        """What could not be read on the way, or None."""
        return None if self._last is None else self._last.failure

    def state(self) -> bytes:
        """Everything needed to go on from here."""
        return b"" if self._last is None else self._last.state


class Ahead:
    """The other process. Used by the writer's thread."""

    #: Files that are asked for at a time: they fit into the pipe, so that asking never waits.
    FILES = 16

    def __init__(self) -> None:
        self._asked: Deque[Tuple[str, int]] = deque()
        self._bytes = 0
        self._in_answer = False  # portions of the file taken last are still to come
        self._process: Optional[subprocess.Popen[bytes]] = None
        command = [sys.executable, "-I", "-c", _START, os.path.dirname(os.path.dirname(relay.__file__))]
        # With one processor, or a Python that cannot say where it is, the writer does all by itself.
        if sys.executable and len(_processors()) > 1:
            with contextlib.suppress(OSError):
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/"
                )
        #: What has come and waits: the other process goes on while this one is busy with a commit.
        self._ready: Deque[Optional[bytes]] = deque()
        self._ready_bytes = 0
        self._turn = threading.Condition()
        if self._process is not None:
            threading.Thread(target=self._collect, args=(self._process,), name="relay-ahead", daemon=True).start()

    @property
    def has_room(self) -> bool:
        """Whether more files should be asked for."""
        return self._process is not None and len(self._asked) < self.FILES and self._bytes < BYTES

    def __contains__(self, path: str) -> bool:
        return any(asked == path for asked, _ in self._asked)

    def ask(self, source: Source, size: int) -> None:
        """Have a file of ``size`` bytes read that is among the next; others of another kind are passed over."""
        if source.store.kind != APPEND or size > FILE_LIMIT or self._process is None:
            return
        store = source.store
        asked = (store.agent, store.name, source.home, source.root, source.path, source.default_home)
        try:
            assert self._process.stdin is not None
            _send(self._process.stdin, asked)
        except OSError:
            self.close()
            return
        self._asked.append((source.path, size))
        self._bytes += size

    def take(self, path: str) -> Optional[Early]:
        """The file at ``path`` if it is read ahead; what was asked for before it is given up. Raises Lost."""
        while path in self:
            self._finish()
            if not self._asked:  # the process has ended meanwhile
                break
            asked, size = self._asked.popleft()
            self._bytes -= size
            self._in_answer = True
            if asked == path:
                return Early(self)
        return None

    def _finish(self) -> None:
        """Pass over the rest of the answer before."""
        while self._in_answer:
            with contextlib.suppress(Lost):
                self.receive()

    def receive(self) -> Any:
        """The next part of an answer: a Fingerprint, then Portions up to the last. Raises Lost."""
        if self._process is None:
            self._in_answer = False
            raise Lost
        data = self._collected()
        if data is None:
            self.close()
            raise Lost
        part = pickle.loads(data)
        if part is None or isinstance(part, Portion) and part.done:
            self._in_answer = False
        if part is None:
            raise Lost
        return part

    def _collect(self, process: subprocess.Popen[bytes]) -> None:
        """In a thread of its own: take answers from the pipe until it ends."""
        assert process.stdout is not None
        data: Optional[bytes] = b""
        with process.stdout as pipe:
            while data is not None:
                try:
                    data = _bytes(pipe)
                except (OSError, EOFError):
                    data = None
                with self._turn:
                    self._ready.append(data)
                    self._ready_bytes += len(data or b"")
                    self._turn.notify_all()
                    self._turn.wait_for(lambda: self._ready_bytes < READY or process is not self._process)

    def _collected(self) -> Optional[bytes]:
        with self._turn:
            self._turn.wait_for(lambda: self._ready)
            data = self._ready.popleft()
            self._ready_bytes -= len(data or b"")
            self._turn.notify_all()
            return data

    def close(self) -> None:
        """End the process; may be called twice."""
        with self._turn:
            process, self._process = self._process, None
            self._turn.notify_all()
        self._asked.clear()
        self._bytes = 0
        self._in_answer = False
        if process is None:
            return
        process.kill()  # it writes nothing
        process.wait()
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()


def _processors() -> Any:
    try:
        return os.sched_getaffinity(0)
    except AttributeError:  # pragma: no cover - not on macOS
        return range(os.cpu_count() or 1)


def _send(pipe: Any, value: Any) -> None:
    data = pickle.dumps(value, 4)
    pipe.write(_LENGTH.pack(len(data)) + data)
    pipe.flush()


def _bytes(pipe: Any) -> bytes:
    """The next value, pickled. Raises EOFError when there is none any more, or not to its end."""
    head = pipe.read(_LENGTH.size)
    size = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else 0
    data: bytes = pipe.read(size)
    if not size or len(data) < size:
        raise EOFError
    return data


# In the other process


def work() -> None:
    """Answer on standard output what is asked on standard input, file by file, until that ends."""
    import signal

    from relay.index.writer import ready
    from relay.indexer import changes, priority
    from relay.indexer.appending import Fold
    from relay.transcripts.registry import agents
    from relay.transcripts.regular import opener

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C in the terminal is for the one that asked
    priority.lower_this_thread()
    known = agents()
    waited = False
    asking, answering = sys.stdin.buffer, sys.stdout.buffer
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            agent, name, home, root, path, default_home = pickle.loads(_bytes(asking))
            try:
                store = next(store for store in known[agent].stores if store.name == name)
                source = Source(store, home, root, path, default_home)
                with open(path, "rb", buffering=1 << 18, opener=opener) as file:
                    now = changes.complete(source, os.fstat(file.fileno()))
                    fold = Fold(source, file, 0, {})
                    _send(answering, now)
                    for piece in fold.slices(now.size):
                        characters = piece.characters
                        rows = [ready(row, waited) for row in piece.rows()]
                        head = fold.session(), fold.unknown, fold.failure(), fold.state()
                        began = time.monotonic()
                        _send(answering, Portion(rows, piece.rewind, characters, fold.offset, fold.done, *head))
                        waited = time.monotonic() - began > WAITED
                        del rows
            except (EOFError, BrokenPipeError):
                raise
            except Exception:  # the writer reads the file itself and meets the same
                _send(answering, None)
    os._exit(0)
