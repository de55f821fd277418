"""watchdog observers on every root: events become changed sources, and what cannot be watched is said."""

from __future__ import annotations

import errno
import os
import time
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from relay.indexer.backlog import Events, Folder
from relay.indexer.roots import file_system
from relay.transcripts.registry import Root, changed_by

#: The kernel holds 16,384 events; when so many come at once, some may have been dropped before they were read.
BURST, BURST_SECONDS = 8_000, 1.0
#: A folder this much older (seconds) than the event that names it was moved here with its contents.
MOVED_AGE = 2.0

_LIMITS = {
    errno.ENOSPC: "the limit of inotify watches is reached",
    errno.EMFILE: "the limit of inotify instances is reached",
    errno.ENFILE: "the system has no file handles left",
    errno.ENOSYS: "this system cannot watch folders",
}


class Watcher:
    """Watches the folders of all roots, those that appear later too (``tick`` looks for them).

    ``polled`` says for which folders, and why, events cannot be relied on.
    """

    def __init__(self, roots: Sequence[Root], events: Events) -> None:
        self._events = events
        self._roots: Dict[str, List[Root]] = {}
        self.know(roots)
        self._observer: Any = None
        self._watches: Dict[str, Tuple[Any, Tuple[int, int]]] = {}
        self._anew: Set[str] = set()
        self._burst = 0
        self._burst_began = 0.0
        self.polled: Dict[str, str] = {}
        #: Folders whose events may be incomplete (overlay file systems): they are polled as well.
        self.doubted: Set[str] = set()
        self._flat: Set[str] = set()
        #: Folders that may not be read; they are watched when they may.
        self._denied: Set[str] = set()
        #: Folder ▶ wall clock (ns) since which changes cause events.
        self.since: Dict[str, int] = {}

    def know(self, roots: Sequence[Root]) -> None:
        """Look after these roots, too; the next ``tick`` watches them."""
        for root in roots:
            there = self._roots.get(root.path, [])
            if all((root.store.agent, root.store.name) != (known.store.agent, known.store.name) for known in there):
                self._roots[root.path] = [*there, root]

    def start(self) -> None:
        """Begin; every folder that exists is watched when this returns."""
        self.tick()

    def tick(self) -> List[str]:
        """Watch folders that appeared, let go of those that went; the folders that must be looked at now. Cheap."""
        changed: List[str] = []
        for path in self._roots:
            try:
                status = os.stat(path)
                identity: Optional[Tuple[int, int]] = (status.st_dev, status.st_ino)
            except OSError:
                identity = None
            if path in self._denied and os.access(path, os.R_OK | os.X_OK):
                self._denied.discard(path)
                self.polled.pop(path, None)
            watched = self._watches.get(path)
            if watched is not None and (watched[1] != identity or path in self._anew or not self._is_alive(watched[0])):
                self._forget(path)
                watched = None
                changed.append(path)
            if identity is not None and watched is None and path not in self.polled:
                if self._watch(path, identity) and path not in changed:
                    changed.append(path)
            elif identity is None and self.polled.pop(path, None) is not None:
                changed.append(path)
        return changed

    def poll_instead(self, path: str, why: str) -> None:
        """Events for this folder cannot be relied on; it is polled from now on."""
        self.polled[path] = why

    def stop(self) -> None:
        """End all watches; may be called twice."""
        if self._observer is not None:
            self._observer.stop()
            self._observer.join(5)
            self._observer = None
        self._watches.clear()

    def _watch(self, path: str, identity: Tuple[int, int]) -> bool:
        from watchdog import events as kinds

        wanted = [
            kinds.FileCreatedEvent,
            kinds.FileModifiedEvent,
            kinds.FileMovedEvent,
            kinds.FileDeletedEvent,
            kinds.DirCreatedEvent,
            kinds.DirMovedEvent,
            kinds.DirDeletedEvent,
        ]
        try:
            if self._observer is None:
                from watchdog.observers import Observer

                self._observer = Observer()
                self._observer.start()
            recursive = any(_has_depth(root) for root in self._roots[path])
            watch = self._observer.schedule(_Handler(self, path), path, recursive=recursive, event_filter=wanted)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return False  # gone again; the next tick sees what is there
            if not os.access(path, os.R_OK | os.X_OK):
                self._denied.add(path)
            self.polled[path] = _LIMITS.get(error.errno or 0, f"watching it failed ({error.strerror})")
            return True
        self._anew.discard(path)
        self._watches[path] = (watch, identity)
        self.since[path] = time.time_ns()
        (self._flat.discard if recursive else self._flat.add)(path)
        kind = file_system(path)
        if kind == "remote":
            self.polled[path] = "it is on a network file system"
        elif kind == "overlay":
            self.doubted.add(path)
        return True

    def _forget(self, path: str) -> None:
        watch, _ = self._watches.pop(path)
        self._anew.discard(path)
        self.since.pop(path, None)
        try:
            self._observer.unschedule(watch)
        except (KeyError, OSError, RuntimeError):
            pass  # the emitter ended by itself with its folder

    def _is_alive(self, watch: Any) -> bool:
        for emitter in self._observer.emitters:
            if emitter.watch == watch:
                # An emitter on inotify is two threads; the inner one reads, and a bug or a race there ends it silently.
                reader = getattr(emitter, "_inotify", None)
                return bool(emitter.is_alive() and (reader is None or reader.is_alive()))
        return False

    def handle(self, root_path: str, event: Any) -> None:
        """Take one event of a watched folder (on the observer's thread)."""
        now = time.monotonic()
        if now - self._burst_began > BURST_SECONDS:
            self._burst, self._burst_began = 0, now
        self._burst += 1
        if self._burst == BURST:
            self._events.overflowed = True
        for path in {os.fspath(event.src_path), os.fspath(getattr(event, "dest_path", "") or "")}:
            path = os.fsdecode(path)
            if not path:
                continue
            for root in self._roots[root_path]:
                if event.is_directory:
                    self._folder(root, root_path, path)
                    continue
                source = changed_by(root, path) if path.startswith(root_path + os.sep) else None
                if source is not None:
                    self._events.add(source)

    def _folder(self, root: Root, root_path: str, path: str) -> None:
        if path == root_path or not path.startswith(root_path + os.sep):
            return
        relative = os.path.relpath(path, root_path).replace(os.sep, "/")
        if not root.store.descend(relative):
            return
        self._events.add_folder(Folder(root, path))
        if root_path in self._flat:
            self._anew.add(root_path)
        try:
            # watchdog does not watch what is below a folder that was moved in: the whole root is watched anew.
            if time.time() - os.stat(path).st_mtime > MOVED_AGE and os.listdir(path):
                self._anew.add(root_path)
        except OSError:
            pass


class _Handler:
    """What watchdog wants: something with ``dispatch``."""

    def __init__(self, watcher: Watcher, path: str) -> None:
        self._watcher = watcher
        self._path = path

    def dispatch(self, event: Any) -> None:
        self._watcher.handle(self._path, event)


def _has_depth(root: Root) -> bool:
    """Whether transcripts of this root may lie deeper than the root itself; a store that says no is watched flat."""
    return root.store.descend("any") or any(root.store.descend(name) for name in _folders(root.path))


def _folders(path: str) -> List[str]:
    with os.scandir(path) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
