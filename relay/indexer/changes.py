"""What changed: a source's fingerprint on disk against the one it had when it was read."""

from __future__ import annotations

import hashlib
import os
import time
import zlib
from typing import BinaryIO, NamedTuple

from relay.transcripts.registry import APPEND, DATABASE
from relay.transcripts.types import Source

#: A file changed less than this many nanoseconds before it was read may change again under the same mtime.
_GRAIN_NS = 40_000_000
#: The mtime stored for such a file: equal to none, so that it is looked at again.
UNSETTLED = -1

#: Bytes at the start, and before the offset, by which an append-only file is known again.
_MARK = 1024
_PIECE = 1 << 20


class Fingerprint(NamedTuple):
    """A source as the file system shows it: the inode (and that of its further files), size, mtime in nanoseconds.

    The device number is left out: it changes when a machine starts anew, and the files do not.
    """

    identity: str
    size: int
    mtime_ns: int


def fingerprint(source: Source) -> Fingerprint:
    """Raises OSError when the source cannot be looked at (FileNotFoundError: it is gone)."""
    return complete(source, os.stat(source.path))


def complete(source: Source, status: os.stat_result) -> Fingerprint:
    """The fingerprint of a source whose own file has this status: further files are looked at, too.

    An append-only file keeps its own mtime, since it says how far that file was read.
    """
    identity = str(status.st_ino)
    store = source.store
    if store.kind == APPEND and store.files is None and store.mark is None:
        return Fingerprint(identity, status.st_size, status.st_mtime_ns)
    further = [source.path + "-wal"] if store.kind == DATABASE else list(store.files(source)) if store.files else []
    newest = status.st_mtime_ns
    parts = [store.mark(source)] if store.mark is not None else []
    for path in further:
        try:
            other = os.stat(path)
        except OSError:
            parts.append(path)
            continue
        parts.append(f"{path}\0{other.st_ino}\0{other.st_size}\0{other.st_mtime_ns}")
        newest = max(newest, other.st_mtime_ns)
    if parts:
        everything = "\1".join(parts).encode("utf-8", "surrogateescape")
        identity += "+" + hashlib.blake2b(everything, digest_size=8).hexdigest()
    return Fingerprint(identity, status.st_size, status.st_mtime_ns if store.kind == APPEND else newest)


def inode(identity: str) -> str:
    """The part of a fingerprint's identity that is the source's own file."""
    return identity.partition("+")[0]


def settled(mtime_ns: int) -> bool:
    """Whether a file with this mtime, had it changed since it was read, would show another one."""
    return not -2_000_000_000 < time.time_ns() - mtime_ns < _GRAIN_NS


def marks(file: BinaryIO, offset: int) -> str:
    """A hash of the first bytes and of those before ``offset``: evidence that a grown file was only appended to."""
    descriptor = file.fileno()
    length = min(offset, _MARK)
    both = os.pread(descriptor, length, 0) + os.pread(descriptor, length, offset - length)
    return hashlib.blake2b(both, digest_size=8).hexdigest()


def checksum(file: BinaryIO, start: int, stop: int, value: int = 0) -> int:
    """CRC-32 of the bytes from ``start`` to ``stop``, going on from ``value``; -1 when the file ends before."""
    descriptor = file.fileno()
    while start < stop:
        piece = os.pread(descriptor, min(_PIECE, stop - start), start)
        if not piece:
            return -1
        value = zlib.crc32(piece, value)
        start += len(piece)
    return value
