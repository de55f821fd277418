"""What is still to be read: a bounded queue of changed sources, newest first behind those that events named."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Dict, List, NamedTuple, Optional, Tuple

from relay.indexer.changes import Fingerprint
from relay.transcripts.registry import APPEND, Root
from relay.transcripts.types import Source

#: Paths that events may have named and nobody has looked at yet; beyond them a sweep is owed instead.
EVENT_LIMIT = 10_000
#: Sources a sweep may leave to be read; beyond them the next sweep finds the rest.
DUE_LIMIT = 50_000

#: Seconds an event waits for others of the same source: an append is read at once, a document is written in pieces.
APPEND_WAIT, WHOLE_WAIT = 0.01, 0.08
#: A source is left alone for this many times as long as its last reading took, and at most so many seconds: what is
#: read whole at every change, or has an endless torn line, must not take all the time.
REST_FACTOR, REST_LIMIT = 3.0, 10.0


class Folder(NamedTuple):
    """A folder that was made, moved or removed below a root."""

    root: Root
    path: str


class Events:
    """What the watchers saw, folded by path. Filled by their threads, emptied by the writer's."""

    def __init__(self, wake: threading.Condition) -> None:
        self._wake = wake
        self._sources: Dict[str, Tuple[Source, float]] = {}
        self._folders: Dict[str, Folder] = {}
        self._rested: Dict[str, float] = {}
        #: Events were dropped: only a sweep can find what they named.
        self.overflowed = False

    def __len__(self) -> int:
        return len(self._sources) + len(self._folders)

    def __contains__(self, path: str) -> bool:
        return path in self._sources

    def add(self, source: Source, wait: Optional[float] = None) -> None:
        """A source changed; it is due after a short ``wait`` (seconds)."""
        with self._wake:
            if source.path in self._sources:
                return
            if len(self) >= EVENT_LIMIT:
                self._overflow()
                return
            if wait is None:
                wait = APPEND_WAIT if source.store.kind == APPEND else WHOLE_WAIT
            due = max(time.monotonic() + wait, self._rested.get(source.path, 0.0))
            self._sources[source.path] = (source, due)
            self._wake.notify_all()

    def add_folder(self, folder: Folder) -> None:
        """A folder came, went or moved: everything below it may have changed."""
        with self._wake:
            if len(self) >= EVENT_LIMIT:
                self._overflow()
                return
            self._folders[folder.path] = folder
            self._wake.notify_all()

    def _overflow(self) -> None:
        self._sources.clear()
        self._folders.clear()
        self.overflowed = True
        self._wake.notify_all()

    def rest(self, path: str, took: float) -> None:
        """Remember how long reading a source took; a costly one rests before it is read again."""
        seconds = min(took * REST_FACTOR, REST_LIMIT)
        with self._wake:
            if seconds < 0.1:
                self._rested.pop(path, None)
                return
            now = time.monotonic()
            if len(self._rested) > 1000:
                self._rested = {known: until for known, until in self._rested.items() if until > now}
            self._rested[path] = now + seconds

    def take(self, early: bool = False) -> Tuple[List[Source], List[Folder]]:
        """What is due now (``early``: everything, without its wait), taken out."""
        now = time.monotonic()
        with self._wake:
            due = [path for path, (_, when) in self._sources.items() if early or when <= now]
            sources = [self._sources.pop(path)[0] for path in due]
            folders = list(self._folders.values())
            self._folders.clear()
        return sources, folders

    def next_due(self) -> Optional[float]:
        """The monotonic time at which ``take`` will give something, or None."""
        with self._wake:
            if self._folders or self.overflowed:
                return 0.0
            return min((when for _, when in self._sources.values()), default=None)

    def clear(self) -> None:
        """Forget everything; a sweep follows."""
        with self._wake:
            self._sources.clear()
            self._folders.clear()
            self.overflowed = False


class Due:
    """Sources found by looking, newest first."""

    def __init__(self) -> None:
        self._queue: List[Tuple[int, str]] = []
        self._sources: Dict[str, Tuple[Source, Fingerprint]] = {}
        self._sorted = True
        self.bytes = 0
        #: More was due than is held: another sweep is owed behind these.
        self.overflowed = False

    def __len__(self) -> int:
        return len(self._sources)

    def add(self, source: Source, seen: Fingerprint) -> None:
        """Put a source in; one that is there already only changes its fingerprint."""
        known = self._sources.get(source.path)
        if known is None:
            if len(self._sources) >= DUE_LIMIT:
                self.overflowed = True
                return
            self._queue.append((seen.mtime_ns, source.path))
            self._sorted = False
        else:
            self.bytes -= known[1].size
        self.bytes += seen.size
        self._sources[source.path] = (source, seen)

    def discard(self, path: str) -> None:
        """Take a source out that was read in another way."""
        known = self._sources.pop(path, None)
        if known is not None:
            self.bytes -= known[1].size

    def pop(self) -> Optional[Tuple[Source, Fingerprint]]:
        """The newest, taken out, or None."""
        self._sort()
        while self._queue:
            _, path = self._queue.pop()
            found = self._sources.pop(path, None)
            if found is not None:
                self.bytes -= found[1].size
                return found
        return None

    def next(self, count: int) -> List[Tuple[Source, Fingerprint]]:
        """What the next ``count`` times ``pop`` will give, if nothing comes in between."""
        self._sort()
        there = (self._sources[path] for _, path in reversed(self._queue) if path in self._sources)
        return list(itertools.islice(there, count))

    def _sort(self) -> None:
        if not self._sorted:
            self._queue.sort()
            self._sorted = True

    def newest(self, for_each_agent: int) -> List[Tuple[Source, Fingerprint]]:
        """The newest of every agent, taken out, all together newest first."""
        taken: Dict[str, int] = {}
        chosen: List[Tuple[Source, Fingerprint]] = []
        for source, seen in sorted(self._sources.values(), key=lambda pair: -pair[1].mtime_ns):
            count = taken.get(source.store.agent, 0)
            if count < for_each_agent:
                taken[source.store.agent] = count + 1
                chosen.append((source, seen))
        for source, _ in chosen:
            self.discard(source.path)
        return chosen

    def __contains__(self, path: str) -> bool:
        return path in self._sources

    def clear(self) -> None:
        """Forget everything; a sweep follows."""
        self.__init__()  # type: ignore[misc]
