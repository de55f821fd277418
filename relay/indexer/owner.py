"""The owner's day: opens the index, watches, and does one piece of work after the other until it is told to end."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from typing import Any, Callable, Dict, List, Optional

from relay.index import opening, upkeep
from relay.index.faults import IndexDamaged, IndexFault, IndexForeign, IndexUnavailable, IndexUnwritable, is_damage
from relay.indexer import channel, standing
from relay.indexer.backlog import Events
from relay.indexer.indexing import Indexing
from relay.indexer.listing import Interrupted
from relay.indexer.passes import Passes
from relay.indexer.standing import warn
from relay.indexer.watching import Watcher
from relay.transcripts import registry
from relay.transcripts.registry import Env
from relay.transcripts.regular import stamp

#: Seconds between two looks at cheap things: folders that appeared, a database that was replaced.
TICK = 1.0
#: Seconds between two looks at the index through a reader's eyes, and between two purges of what is too old.
PROBE, PURGE = 5.0, 60.0
#: Seconds between two checks of the whole file: a search that fails for another reason asks again and again.
CHECK = 30.0
#: Seconds between two full sweeps.
SWEEP = 900.0
#: A polled folder is looked at this many times its own cost (so that polling stays below 0.2 % of a core), at least
#: every so many seconds.
POLL_FACTOR, POLL_LEAST = 500.0, 2.0
#: Seconds to wait after a fault, doubled each time.
RETRY_LEAST, RETRY_MOST = 1.0, 10.0
#: Seconds between two small steps of tidying up.
TIDY_REST = 0.02
#: Seconds of a reading after which what a reconcile pass would read besides is read in the middle of it.
SHORT_READING = 1.0


class _Replaced(Exception):
    """Another file, or none, stands where the index was."""


class Owner:
    """What the process with the writer's lock does. ``run`` works; the other methods are for other threads.

    ``wake`` is notified whenever something may be to do.
    """

    def __init__(self, state_folder: str, env: Env, history_days: Optional[int], wake: threading.Condition) -> None:
        self._state_folder = state_folder
        self._path = opening.database_path(state_folder)
        self._env = env
        self._history_days = history_days
        self._wake = wake
        self._events = Events(wake)
        self._watcher = Watcher(registry.roots(env), self._events)
        self._lists = registry.lists(env)
        self._lists_seen = [stamp(path) for path in self._lists]
        self._indexing: Optional[Indexing] = None
        #: The reconcile passes that this and other processes ask for.
        self.passes = Passes(wake)
        self._should_end: Callable[[], bool] = lambda: False
        self._problem: Optional[str] = None
        #: The fault that is waited out is that nothing can be written.
        self.unwritable = False
        self._faults = 0
        self._rebuilding = False
        self._check_owed = False
        self._next_check = 0.0
        self._damage_found = False
        self._busy = False
        self._inside = False
        #: Up to which number the passes asked for have been made, but for the source that was being read.
        self._passed_amid = 0
        self._sweep_owed = True
        self._sweeping = False
        self._swept = False
        self._tidy = True
        now = time.monotonic()
        self._next_tick = now
        self._next_sweep = now + SWEEP
        self._next_probe = now + PROBE
        self._next_purge = now + PURGE
        self._next_tidy = now
        #: Polled folder ▶ when it is looked at next.
        self._polls: Dict[str, float] = {}

    # For other threads

    @property
    def ready(self) -> bool:
        """Whether searches can use the index now."""
        if self._indexing is None:
            return standing.is_readable(self._path, upkeep.cutoff(self._history_days))
        return not self._rebuilding

    def check(self) -> None:
        """Have the index read through; it is set aside and rebuilt when it is damaged."""
        with self._wake:
            now = time.monotonic()
            if now >= self._next_check:
                self._next_check = now + CHECK
                self._check_owed = True
                self._wake.notify_all()

    def status(self) -> Dict[str, Any]:
        """Phase, what is due, and degraded roots with their reasons."""
        indexing = self._indexing
        problems = {} if indexing is None else dict(indexing.problems)
        degraded = [{"root": path, "reason": why} for path, why in problems.items()]
        for path, why in list(self._watcher.polled.items()):
            degraded.append({"root": path, "reason": f"Changes are found by polling: {why}."})
        if self._problem is not None:
            degraded.append({"root": self._state_folder, "reason": self._problem})
        due = len(self._events) + (0 if indexing is None else indexing.waiting)
        working = self._busy or self._sweep_owed or self._sweeping or due > 0 or self.passes.owed
        if self._problem is not None:
            phase = standing.DEGRADED
        elif working or indexing is None:
            phase = standing.INDEXING
        elif degraded:
            phase = standing.DEGRADED
        else:
            phase = standing.CURRENT if self._swept else standing.IDLE
        return {"phase": phase, "filesDue": due, "degradedRoots": degraded}

    # The work

    def run(self, should_end: Callable[[], bool]) -> None:
        """Work until ``should_end`` says so; index faults are waited out, a damaged index is rebuilt."""
        self._should_end = should_end
        listener = channel.Listener(self._state_folder, self.status, self._pass_for_another, self.check)
        try:
            while not should_end():
                pause = 0.0
                try:
                    if self._indexing is None:
                        self._open()
                    pause = self._work()
                    self._recovered()
                except (IndexDamaged, IndexForeign) as fault:
                    pause = self._set_aside(fault)
                except (IndexFault, OSError) as fault:
                    pause = self._hold(fault)
                except sqlite3.Error as error:
                    pause = self._set_aside(IndexDamaged(str(error))) if is_damage(error) else self._hold(error)
                except _Replaced:
                    self._leave()
                except Interrupted:
                    break
                self._rest(pause)
        finally:
            self.passes.close()
            listener.close()
            self._watcher.stop()
            self._leave(clean=True)

    def _pass_for_another(self) -> bool:
        return bool(self.passes.wait(60.0))

    def _rest(self, pause: float) -> None:
        with self._wake:
            if pause <= 0 or self._should_end() or self.passes.owed and self._problem is None:
                return
            if self._problem is None:
                due = self._events.next_due()
                if due is not None:
                    pause = min(pause, due - time.monotonic())
            if pause > 0:
                self._wake.wait(pause)

    def _open(self) -> None:
        index = opening.open_for_writing(self._path)
        indexing = Indexing(index, self._env, self._events, self._history_days, urgent=self._urgent)
        writer = indexing.writer
        if index.rebuilt:
            writer.put_meta("rebuilding", "1")
        self._rebuilding = writer.meta("rebuilding") != ""
        if writer.meta("ended_well", "1") != "1":
            threading.Thread(target=self._quick_check, name="relay-check", daemon=True).start()
        writer.put_meta("ended_well", "0")
        writer.commit()
        self._indexing = indexing
        self._sweep_owed = self._tidy = True
        self._swept = self._sweeping = False

    def _work(self) -> float:
        """One piece of work; the seconds until there may be more."""
        indexing = self._indexing
        assert indexing is not None
        now = time.monotonic()
        self._busy = True
        try:
            if now >= self._next_tick:
                self._next_tick = now + TICK
                self._look_around(indexing, now)
            if self.passes.owed:
                self._pass(indexing)
                return 0.0
            if self._events.overflowed:
                self._events.clear()
                self._sweep_owed = True
            if indexing.read_events():
                self._tidy = True
                return 0.0
            if self._sweep_owed:
                self._sweep(indexing)
                return 0.0
            if indexing.read_next():
                self._tidy = True
                return 0.0
            if self._sweeping:
                self._end_sweep(indexing)
                return 0.0
            if self._check_owed:
                self._check_owed = False
                upkeep.check(indexing.writer)
            if self._tidy and now >= self._next_tidy:
                self._tidy = indexing.tidy()
                self._next_tidy = time.monotonic() + TIDY_REST
        finally:
            self._busy = False
        now = time.monotonic()
        return max(0.001, min(self._next_tick, self._next_tidy if self._tidy else self._next_tick) - now)

    def _urgent(self) -> None:
        """What cannot wait for the end of a long reading."""
        if self._should_end():
            raise Interrupted
        indexing = self._indexing
        if self._inside or indexing is None:
            return
        self._inside = True
        try:
            asked = self.passes.begin()
            if not self.passes.owed or self._passed_amid == asked:
                indexing.read_events()
            elif time.monotonic() - indexing.reading_since > SHORT_READING:
                # The pass itself waits for the end of the reading: the source may be the very one it was asked for.
                # Who cannot wait so long finds all the rest, and is told that it may not be current.
                self._passed_amid = asked
                indexing.reconcile()
        finally:
            self._inside = False

    def _pass(self, indexing: Indexing) -> None:
        number = self.passes.begin()
        failure: Optional[str] = "The pass was interrupted."
        try:
            indexing.reconcile()
            self._tidy = True
            failure = None
        except IndexFault as fault:
            failure = str(fault)
            raise
        finally:
            self.passes.end(number, failure)

    def _sweep(self, indexing: Indexing) -> None:
        self._sweep_owed = False
        first = not self._swept
        self._polled(indexing.scan(retry_failed=first, watched_since=None if first else self._watcher.since))
        self._sweeping = self._tidy = True
        self._next_sweep = time.monotonic() + SWEEP

    def _end_sweep(self, indexing: Indexing) -> None:
        self._sweeping = False
        if indexing.due.overflowed:
            indexing.due.clear()
            self._sweep_owed = True
            return
        if self._rebuilding:
            indexing.writer.execute("DELETE FROM meta WHERE name = 'rebuilding'")
            self._rebuilding = False
            opening.remove_damaged(self._path)
        if not self._swept:
            indexing.note("last_reconcile")
        indexing.note("last_sweep")
        self._swept = True

    def _look_around(self, indexing: Indexing, now: float) -> None:
        """Once a second: what costs next to nothing to look at."""
        if self._damage_found:
            self._damage_found = False
            raise IndexDamaged("The index is damaged; it is set aside and rebuilt.")
        if indexing.index.replaced():
            raise _Replaced
        if indexing.index.bereft():
            raise IndexDamaged("The index has lost a file beside it; it is rebuilt.")
        lists = [stamp(path) for path in self._lists]
        if lists != self._lists_seen:
            self._lists_seen = lists
            roots = registry.roots(self._env)
            indexing.know(roots)
            self._watcher.know(roots)
        changed = set(self._watcher.tick())
        for why in set(self._watcher.polled.values()):
            warn(f"some folders are watched by polling: {why}")
        # What could not be looked at causes no event when it can be.
        for path in {*self._watcher.polled, *self._watcher.doubted, *indexing.problems}:
            if now >= self._polls.setdefault(path, now + POLL_LEAST):
                changed.add(path)
        for path in changed if not self._sweep_owed else ():
            self._look_at(indexing, path)
        if now >= self._next_probe:
            self._next_probe = now + PROBE
            self._probe()
        if now >= self._next_purge:
            self._next_purge = now + PURGE
            indexing.expire()
            self._tidy = True
        if now >= self._next_sweep:
            self._sweep_owed = True

    def _look_at(self, indexing: Indexing, path: str) -> None:
        started = time.monotonic()
        self._polled(indexing.scan(only={path}, watched_since=self._watcher.since))
        cost = time.monotonic() - started
        self._polls[path] = time.monotonic() + max(POLL_LEAST, cost * POLL_FACTOR)

    def _polled(self, missed: List[str]) -> None:
        for path in missed:
            self._watcher.poll_instead(path, "changes were found that caused no event")

    def _probe(self) -> None:
        """Look at the index as a search would: the writer's own pages may be whole where the file is not."""
        try:
            opening.open_for_reading(self._path).close()
        except (IndexDamaged, IndexForeign):
            raise
        except IndexUnavailable:
            pass  # out of file handles, or just replaced: not for long

    def _quick_check(self) -> None:
        """After an end by a kill or a power cut, in a thread of its own: is the file whole?"""
        try:
            with contextlib.closing(opening.open_for_reading(self._path)) as connection:
                answer = connection.execute("PRAGMA quick_check(1)").fetchone()
            damaged = answer is None or answer[0] != "ok"
        except IndexDamaged:
            damaged = True
        except IndexUnavailable:
            return
        except sqlite3.Error as error:
            damaged = is_damage(error)
        if damaged:
            self._damage_found = True

    # Faults

    def _hold(self, fault: Exception) -> float:
        """Nothing can be written now: say so, and try again after a while."""
        self._problem = str(fault) if isinstance(fault, IndexFault) else f"Reading failed ({type(fault).__name__})."
        self.unwritable = isinstance(fault, (IndexUnwritable, OSError))
        warn(self._problem)
        self._leave()
        self.passes.end(self.passes.begin(), self._problem)
        self._faults += 1
        return min(RETRY_MOST, RETRY_LEAST * 2.0 ** (self._faults - 1))

    def _set_aside(self, fault: IndexUnavailable) -> float:
        """The file is damaged: out of the way with it. Damage that comes again and again is waited out like a fault."""
        self._leave()
        try:
            opening.set_aside(self._path, opening.FOREIGN if isinstance(fault, IndexForeign) else opening.DAMAGED)
            opening.open_for_writing(self._path, rebuilding=True).close()
        except (IndexFault, OSError, sqlite3.Error) as error:
            fault_now = error if isinstance(error, IndexFault) else IndexUnwritable("The index cannot be made anew.")
            return self._hold(fault_now)
        self._faults += 1
        return 0.0 if self._faults == 1 else min(RETRY_MOST, RETRY_LEAST * 2.0 ** (self._faults - 2))

    def _recovered(self) -> None:
        """What was wrong is over once everything has been read: a disk that is all but full takes a few writes."""
        if self._swept:
            self._problem = None
            self.unwritable = False
            self._faults = 0

    def _leave(self, clean: bool = False) -> None:
        """Give the open index back; ``clean`` when everything that was read is to be kept."""
        indexing, self._indexing = self._indexing, None
        if indexing is None:
            return
        indexing.close()
        with contextlib.suppress(IndexFault):
            indexing.writer.rollback()
            if clean:
                indexing.writer.put_meta("ended_well", "1")
                indexing.writer.commit()
        indexing.index.close()
        self._sweep_owed = True
