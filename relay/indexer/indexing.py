"""The work of the index's owner: look, read the newest first, commit, and tidy up when nothing else is to do."""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING, Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple

from relay.index import opening, upkeep
from relay.index.names import given
from relay.index.writer import Cursor, Writer
from relay.indexer import priority, reading, roots
from relay.indexer.backlog import Due, Events, Folder
from relay.indexer.changes import Fingerprint, fingerprint
from relay.indexer.listing import Lost
from relay.transcripts import registry
from relay.transcripts.registry import Env, Root
from relay.transcripts.types import Source

if TYPE_CHECKING:
    from relay.indexer.ahead import Ahead, Early

#: A commit is made when so many characters of text, or so many seconds, have gathered. FTS5 writes out everything it
#: holds at a commit, so their size decides the speed of a backfill (docs/decisions/index-storage.md).
COMMIT_CHARACTERS, COMMIT_SECONDS = 16 << 20, 3.0
#: Bytes due that make a backfill: FTS5 then gathers more before it writes, and merges afterwards.
BULK_BYTES = 16 << 20
_BULK = (("hashsize", 24 << 20), ("automerge", 0), ("crisismerge", 64))
_STEADY = (("hashsize", 1 << 20), ("automerge", 4), ("crisismerge", 16))

#: Sources of each agent, and seconds, that a reconcile pass spends at most; the rest is read behind it.
RECENT, RECENT_SECONDS = 200, 4.0

#: An event for a change would have been here after so many nanoseconds.
_MISSED_NS = 3_000_000_000
#: The longest rest between two pieces of a backfill while the machine is busy.
_REST = 1.0


class Indexing:
    """Reads what changed into an open index. One thread; the caller holds the writer's lock.

    ``gentle`` rests while the machine is busy. ``urgent`` is called between slices of long readings, after a commit was
    possible: the owner looks after what cannot wait there. Index faults come out of every method and leave nothing
    half done; the caller opens the index anew or waits, and owes a sweep.
    """

    def __init__(
        self,
        index: opening.OpenIndex,
        env: Env,
        events: Events,
        history_days: Optional[int],
        gentle: bool = True,
        urgent: Callable[[], None] = lambda: None,
    ) -> None:
        self.index = index
        self.writer = Writer(index)
        self.due = Due()
        #: What is being read right now; urgent work in the middle of it leaves it alone.
        self.reading: Set[str] = set()
        #: What was read since the last commit: no search sees it yet.
        self._uncommitted: Set[str] = set()
        #: Monotonic time at which the outermost of these readings began.
        self.reading_since = 0.0
        #: Root path ▶ why it could not be looked at.
        self.problems: Dict[str, str] = {}
        self._env = env
        self._roots = registry.roots(env)
        self._named = {home for homes in env.extra_homes.values() for home in homes}
        self._events = events
        self._history_days = history_days
        self._gentle = gentle
        self._urgent = urgent
        self._bulk = False
        #: A backfill has left free memory that is not given back yet.
        self._swollen = False
        self._ahead: Optional[Ahead] = None
        self._began = time.monotonic()
        self._worked_since = time.monotonic()
        self._merge_owed = False
        self._set_words(_STEADY)
        self.expire()
        self._leave_roots()

    @property
    def waiting(self) -> int:
        """Sources that are due, being read, or read and not committed. May be asked by any thread."""
        return len(self.due) + len(self.reading | self._uncommitted)

    # Looking

    def know(self, found: Sequence[Root]) -> None:
        """Look at these roots, too, from now on; one that is named no longer stays as it is."""
        known = {(root.path, root.store.agent, root.store.name) for root in self._roots}
        self._roots += [root for root in found if (root.path, root.store.agent, root.store.name) not in known]

    def scan(
        self,
        only: Optional[Set[str]] = None,
        retry_failed: bool = False,
        watched_since: Optional[Dict[str, int]] = None,
    ) -> List[str]:
        """Look at all roots (or those at the paths in ``only``): what changed is due, what is gone is removed.

        Answers the roots in which something changed after ``watched_since`` (path ▶ wall clock, ns) without an event.
        """
        if only is None:
            self.know(registry.roots(self._env))
        oldest = upkeep.cutoff(self._history_days)
        missed: List[str] = []
        everything = self._known(only)
        for root in self._roots:
            if only is not None and root.path not in only:
                continue
            known = everything.pop((root.path, root.store.agent, root.store.name), {})
            mount_key = f"mount:{root.path}"
            mount_before = self.writer.meta(mount_key)
            found = roots.look(root, known, mount_before, None if oldest is None else oldest * 1_000_000, retry_failed)
            since = (watched_since or {}).get(root.path)
            if since is not None and any(self._is_missed(pair, known, since) for pair in found.due):
                missed.append(root.path)
            for source, seen in found.due:
                if source.path not in self._events and source.path not in self.reading:
                    self.due.add(source, seen)
            for path in found.gone:
                if path not in self.reading:
                    self._remove(path)
            if found.problem is not None:
                self.problems[root.path] = found.problem
            else:
                self.problems.pop(root.path, None)
            if found.mount and found.mount != mount_before and (known or found.due):
                self.writer.put_meta(mount_key, found.mount)
            self.commit()
        degraded = json.dumps(sorted(self.problems))
        if degraded != self.writer.meta("degraded_roots", "[]"):
            self.writer.put_meta("degraded_roots", degraded, visible=True)  # what hits say of their sources
            self.commit()
        if self.due.bytes > BULK_BYTES:
            self._enter_bulk()
        return missed

    def _known(self, only: Optional[Set[str]]) -> Dict[Tuple[str, str, str], Dict[str, roots.Known]]:
        """What the index has, by root, agent and store."""
        known: Dict[Tuple[str, str, str], Dict[str, roots.Known]] = {}
        sql = "SELECT root, agent, store, path, id, failure IS NOT NULL, identity, size, mtime_ns FROM sources"
        if only is not None:
            sql += f" WHERE root IN ({', '.join('?' * len(only))})"
        for row in self.writer.fetch(sql, tuple(only or ())):
            known.setdefault((given(row[0]), row[1], row[2]), {})[given(row[3])] = row[4:]
        return known

    def _is_missed(self, pair: Tuple[Source, Fingerprint], known: Dict[str, roots.Known], since: int) -> bool:
        source, seen = pair
        before = known.get(source.path)
        if before is not None and (before[1] or before[4] < 0 or not before[2]):
            return False  # failed, unsettled or to be read anew: due without an event
        if source.path in self._events or source.path in self.due or source.path in self.reading:
            return False
        return since < seen.mtime_ns < time.time_ns() - _MISSED_NS

    # Reading

    def read(self, source: Source, seen: Optional[Fingerprint] = None, early: Optional[Early] = None) -> None:
        """Bring one source up to date; the rows stand in the open transaction."""
        if source.path in self.reading:
            self._events.add(source, 0.5)
            return
        self.due.discard(source.path)
        if not self.reading:
            self.reading_since = time.monotonic()
        self.reading.add(source.path)
        try:
            self._read(source, seen, early)
        finally:
            self.reading.discard(source.path)

    def _read(self, source: Source, seen: Optional[Fingerprint], early: Optional[Early]) -> None:
        started = time.monotonic()
        cursor = self.writer.cursor(source.path)
        try:
            if seen is None:
                seen = fingerprint(source)
                if cursor is not None and Fingerprint(*cursor[5:8]) == seen and cursor.failure is None:
                    return
                oldest = upkeep.cutoff(self._history_days)
                if cursor is None and oldest is not None and seen.mtime_ns < oldest * 1_000_000:
                    return
            oldest = upkeep.cutoff(self._history_days)
            try:
                settled = reading.read(self.writer, source, seen, self._breathe, oldest, early)
            except Lost:
                settled = reading.read(self.writer, source, seen, self._breathe, oldest)
        except FileNotFoundError:
            self._vanished(source.path, source.root)
            return
        except OSError:
            return  # not to be looked at: the sweep says why
        self._merge_owed = True
        self._uncommitted.add(source.path)
        self._events.rest(source.path, (time.monotonic() - started) * self._again(source.path, cursor))
        if not settled:
            self._events.add(source, 0.2)

    def _again(self, path: str, before: Optional[Cursor]) -> float:
        """The part of what was just read that had been read before: what is new need not rest."""
        now = self.writer.cursor(path)
        if now is None or not now.size:
            return 1.0
        return 1.0 - min(max(now.offset - (before.offset if before else 0), 0) / now.size, 1.0)

    def read_events(self, early: bool = False) -> bool:
        """Read what events named (``early``: also what should wait) and commit it; False when there was nothing."""
        sources, folders = self._events.take(early)
        if not sources and not folders:
            return False
        for source in sources:
            self.read(source)
        for folder in folders:
            self._read_folder(folder)
        self.commit()
        return True

    def _read_folder(self, folder: Folder) -> None:
        for source in roots.below(folder.root, folder.path):
            self.read(source)
        found = self.writer.fetch(
            "SELECT path FROM sources WHERE root = ? AND path >= ? AND path < ?",
            (folder.root.path, folder.path + "/", folder.path + "0"),
        )
        for (path,) in found:
            if roots.is_gone(given(path)) and given(path) not in self.reading:
                self._vanished(given(path), folder.root.path)

    def read_next(self) -> bool:
        """Read one source that a look found; False when none is due any more and everything is committed."""
        found = self.due.pop()
        if found is None:
            self.commit()
            self._leave_bulk()
            return False
        source, seen = found
        self.read(source, seen, self._early(source))
        self._breathe()
        return True

    def _early(self, source: Source) -> Optional[Early]:
        """The source as it is read ahead, or None; then the other process gets more to do."""
        ahead = self._ahead
        if ahead is None:
            return None
        early: Optional[Early] = None
        with contextlib.suppress(Lost):
            early = ahead.take(source.path)
        for coming, seen in self.due.next(ahead.FILES) if ahead.has_room else ():
            if coming.path not in ahead and ahead.has_room and self.writer.cursor(coming.path) is None:
                ahead.ask(coming, seen.size)
        return early

    def reconcile(self) -> None:
        """The bounded recent pass: look at everything, read the newest of every agent, leave the rest for later."""
        self.read_events()
        self.scan()
        # The look passes over what events have named, however late they came.
        self.read_events(early=True)
        deadline = time.monotonic() + RECENT_SECONDS
        for source, seen in self.due.newest(RECENT):
            if time.monotonic() > deadline:
                self.due.add(source, seen)
            else:
                self.read(source, seen)
        self.note("last_reconcile")

    def note(self, name: str) -> None:
        """Keep the time at which something was completed, and commit."""
        self.writer.put_meta(name, str(int(time.time() * 1000)))
        self.commit()

    def commit(self) -> None:
        """Make what was read visible."""
        try:
            self.writer.commit()
        finally:  # what could not be committed is found again by a sweep
            self._uncommitted.clear()
        self._began = time.monotonic()

    # Removing

    def _remove(self, path: str) -> None:
        cursor = self.writer.cursor(path)
        if cursor is not None and cursor.id is not None:
            self.writer.remove_source(cursor.id)

    def _vanished(self, path: str, root_path: str) -> None:
        """A source is not there: it is removed when its root is, on the file system it was on; else a look decides."""
        mount = self.writer.meta(f"mount:{root_path}")
        if roots.is_gone(path) and not roots.is_gone(root_path) and mount in ("", roots.mount_of(root_path)):
            self._remove(path)

    def _leave_roots(self) -> None:
        """Forget what was read from folders that a person had named and names no longer.

        Folders known from the environment stay: another process of the account may have another environment.
        """
        named = {root.path for root in self._roots if root.home in self._named}
        before = set(filter(None, self.writer.meta("named_roots").split("\n")))
        for path in before - {root.path for root in self._roots}:
            for (key,) in self.writer.fetch("SELECT id FROM sources WHERE root = ?", (path,)):
                self.writer.remove_source(key)
        if before != named:
            self.writer.put_meta("named_roots", "\n".join(sorted(named)))
        self.commit()

    # Between the work

    def _breathe(self) -> None:
        writer = self.writer
        now = time.monotonic()
        if writer.pending_characters >= COMMIT_CHARACTERS or now - self._began >= COMMIT_SECONDS:
            self.commit()
        if self._gentle and now - self._worked_since > 0.1:
            if priority.is_busy():
                self.commit()
                time.sleep(min(now - self._worked_since, _REST))
            self._worked_since = time.monotonic()
        self._urgent()

    def tidy(self) -> bool:
        """One small step of upkeep; False when there is nothing left to tidy."""
        if upkeep.drain(self.writer):
            return True
        if self._merge_owed and not self._bulk:
            if upkeep.merge(self.writer):
                return True
            self._merge_owed = False
        self.writer.execute("PRAGMA shrink_memory")
        if self._swollen:
            self._swollen = False
            priority.give_back_memory()
        return False

    def expire(self) -> None:
        """Stop answering from what has become older than the history that is kept."""
        upkeep.expire(self.writer, upkeep.cutoff(self._history_days))

    def _enter_bulk(self) -> None:
        if not self._bulk:
            self._bulk = self._swollen = True
            self._set_words(_BULK)
            from relay.indexer.ahead import Ahead  # what only a backfill needs

            self._ahead = Ahead()

    def _leave_bulk(self) -> None:
        if self._bulk:
            self._bulk = False
            self.close()
            self._set_words(_STEADY)

    def close(self) -> None:
        """End what a backfill has running; may be called twice. The index stays open."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.close()

    def _set_words(self, settings: Iterable[Tuple[str, int]]) -> None:
        self.writer.begin()
        for name, value in settings:
            self.writer.execute("INSERT INTO words(words, rank) VALUES(?, ?)", (name, value))
        self.commit()
