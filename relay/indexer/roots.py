"""Looking at a root as a whole: what below it is due, what is gone for certain, and what cannot be told."""

from __future__ import annotations

import os
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from relay.indexer.changes import Fingerprint, fingerprint
from relay.transcripts.registry import Root, source_of, walk
from relay.transcripts.types import Source

#: A source as the index has it: its id, whether it failed, and its fingerprint (identity, size, mtime). Plain tuples,
#: since a sweep makes one for every file there is.
Known = Tuple[int, int, str, int, int]


class Look(NamedTuple):
    """What one look at a root found."""

    due: List[Tuple[Source, Fingerprint]]
    #: Known paths that are gone, each proven.
    gone: List[str]
    #: Why the root could not be looked at in full, or None.
    problem: Optional[str]
    #: The file system the root is on now, to be compared with the next time; None when it could not be told.
    mount: Optional[str]


def look(
    root: Root,
    known: Dict[str, Known],
    mount_before: str,
    oldest_ns: Optional[int] = None,
    retry_failed: bool = False,
) -> Look:
    """Compare everything below a root with what is known of it.

    ``mount_before`` is where the root was mounted when something was last seen there (empty: never looked at). Files
    last changed before ``oldest_ns`` that are not known are not due. ``retry_failed`` makes failed sources due.
    """
    if not known and not os.path.lexists(root.path):
        return Look([], [], None, None)  # an agent that is not here
    errors: List[OSError] = []
    due: List[Tuple[Source, Fingerprint]] = []
    missing = set(known)
    familiar = False
    for source in walk(root, errors.append):
        path = source.path
        try:
            seen = fingerprint(source)
        except FileNotFoundError:
            continue  # a part without the file that stands for it, or just deleted
        except OSError as error:
            errors.append(error)
            continue
        missing.discard(path)
        before = known.get(path)
        if before is None:
            if oldest_ns is None or seen.mtime_ns >= oldest_ns:
                due.append((source, seen))
            continue
        if before[2] == seen.identity:
            familiar = True
        if before[2:] != seen or (retry_failed and before[1]):
            due.append((source, seen))
    if not known and not due and not errors:
        return Look(due, [], None, None)
    mount = mount_of(root.path)
    if not missing:
        gone_root = any(isinstance(error, FileNotFoundError) for error in errors)
        return Look(due, [], None if gone_root and not known else _problem(errors), mount)
    lost = _problem([error for error in errors if not isinstance(error, FileNotFoundError)])
    if lost is None and mount_before and mount != mount_before and not familiar:
        lost = "The file system it was on is not mounted."
    if lost is None and os.path.islink(root.path) and not os.path.exists(root.path):
        lost = "The folder is a link to a place that is not there."
    if lost is not None:
        return Look(due, [], lost, mount_before or None)
    return Look(due, [path for path in missing if is_gone(path)], None, mount)


def is_gone(path: str) -> bool:
    """Whether the file system itself says that there is nothing at this path."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        pass
    return False


def _problem(errors: Iterable[OSError]) -> Optional[str]:
    for error in errors:
        return f"The folder cannot be read: {error.strerror}."
    return None


def mount_of(path: str) -> str:
    """A name for the mounted file system ``path`` is (or would be) on: the same name, the same mount.

    Device numbers alone would do for most; a bind mount that is taken away leaves the same device in sight.
    """
    mount = _mount(path)
    return _device(path) if mount is None else " ".join(mount[:3])


#: File systems whose changes on other machines cause no events here.
_REMOTE = ("nfs", "cifs", "smb", "9p", "fuse.", "ceph", "gluster", "lustre", "afs", "vboxsf", "virtiofs")


def file_system(path: str) -> str:
    """``remote`` when others can change files there without an event here, ``overlay`` when an event may get lost
    between its layers, else ``local``."""
    mount = _mount(path)
    kind = "" if mount is None else mount[3]
    return "remote" if kind.startswith(_REMOTE) else "overlay" if kind == "overlay" else "local"


def _mount(path: str) -> Optional[Tuple[str, str, str, str]]:
    """Device, folder on it, mount point and type of the file system at ``path`` (Linux), or None."""
    path = os.path.realpath(path)
    best = ""
    found: Optional[Tuple[str, str, str, str]] = None
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            for line in mounts:
                before, _, after = line.partition(" - ")
                fields = before.split(" ")
                point = _unescaped(fields[4])
                inside = point == "/" or path == point or path.startswith(point + "/")
                # Of two mounts on one point the later covers the earlier.
                if inside and len(point) >= len(best):
                    best = point
                    found = fields[2], fields[3], fields[4], after.split(" ")[0]
    except (OSError, IndexError):
        return None
    return found


def _unescaped(field: str) -> str:
    for escape, sign in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(escape, sign)
    return field


def _device(path: str) -> str:
    while True:
        try:
            return str(os.stat(path).st_dev)
        except OSError:
            parent = os.path.dirname(path)
            if parent == path:
                return ""
            path = parent


def below(root: Root, folder: str) -> Iterator[Source]:
    """Every source with a part in or below ``folder``, which lies below the root; what cannot be read is left out."""
    seen = set()
    pending = [folder]
    while pending:
        current = pending.pop()
        try:
            with os.scandir(current) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        relative = os.path.relpath(entry.path, root.path).replace(os.sep, "/")
                        if root.store.descend(relative):
                            pending.append(entry.path)
                        continue
                    source = source_of(root, entry.path)
                    if source is not None and source.path not in seen:
                        seen.add(source.path)
                        yield source
        except OSError:
            continue
