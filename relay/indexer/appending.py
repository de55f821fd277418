"""Reading append-only files by what was appended, from a durable offset with the reader's state behind it."""

from __future__ import annotations

import json
import os
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO, Dict, Iterator, Mapping, Optional, Union

from relay.index.writer import Cursor, Writer
from relay.indexer import changes, listing
from relay.indexer.changes import Fingerprint
from relay.indexer.collecting import SLICE, Slice
from relay.transcripts.jsonl import Lines, fault
from relay.transcripts.regular import opener
from relay.transcripts.types import Session, Source, Unreadable

if TYPE_CHECKING:
    from relay.indexer.ahead import Early

#: Slices of messages that are held while the session's head is unknown; nothing was said in such a file.
_HELD = 8


class Fold:
    """A reader's way through one file: where it is, and the evidence by which the way behind it is known again."""

    def __init__(self, source: Source, file: BinaryIO, offset: int, state: Mapping[str, Any]) -> None:
        self._file = file
        self._reader = source.store.load()(source, state.get("reader"))
        self._checksum = int(state.get("checksum", 0))
        self._records = int(state.get("records", 0))
        self._known = int(state.get("known", self._records))
        self._skipped = int(state.get("skipped", 0))
        self._oversized = int(state.get("oversized", 0))
        self._misread = int(state.get("misread", 0))
        self.offset = offset
        #: Whether the last slice has been given.
        self.done = False

    def slices(self, size: int) -> Iterator[Slice]:
        """What was said from here to the end of the file, of which ``size`` bytes are known; the last may be empty."""
        reader, feed = self._reader, self._reader.feed
        piece = Slice()
        while True:
            start = self.offset
            lines = Lines(self._file, start, SLICE)
            for record in lines:
                self._records += 1
                unknown = reader.unknown
                try:
                    for event in feed(record):
                        piece.add(event)
                except Unreadable:
                    raise
                except Exception:  # a record no reader foresaw costs that record; it is counted and shown
                    self._misread += 1
                self._known += reader.unknown == unknown
            record = {}  # it may have been a huge one
            self.offset = lines.offset
            self._skipped += lines.skipped
            self._oversized += lines.oversized
            self._checksum = changes.checksum(self._file, start, self.offset, self._checksum)
            self.done = self.offset < start + SLICE or self.offset >= size
            if self.done or not piece or self._reader.session() is not None or piece.characters > _HELD * SLICE:
                yield piece
                piece = Slice()
            if self.done:
                return

    def session(self) -> Optional[Session]:
        """The head of the session as far as it was read."""
        return self._reader.session()  # type: ignore[no-any-return]

    @property
    def unknown(self) -> int:
        """Records of unknown type met so far."""
        return int(self._reader.unknown)

    def failure(self) -> Optional[str]:
        """What could not be read on the way, or None."""
        known = self._known or int(self._reader.session() is not None)
        found = fault(self._oversized, self._skipped, self._records, known)
        return found or ("Some records could not be understood." if self._misread else None)

    def state(self) -> bytes:
        """Everything needed to go on from here."""
        state: Dict[str, Any] = {
            "reader": self._reader.state(),
            "marks": changes.marks(self._file, self.offset),
            "checksum": self._checksum,
            "records": self._records,
            "known": self._known,
            "skipped": self._skipped,
            "oversized": self._oversized,
            "misread": self._misread,
        }
        return zlib.compress(json.dumps(state, separators=(",", ":")).encode("utf-8", "surrogatepass"), 1)


def read(
    writer: Writer,
    source: Source,
    cursor: Cursor,
    breathe: listing.Breath,
    oldest: Optional[int] = None,
    early: Optional[Early] = None,
) -> None:
    """Bring an append-only file up to date. ``oldest`` (epoch ms): a session last updated before it is not kept.

    ``early`` is the file as it is read ahead, which serves if it was never read. Raises Lost when that broke off.
    """
    if early is not None and cursor.id is None:
        _put(writer, source, cursor, early.now, early, False, breathe, oldest)
        return
    with open(source.path, "rb", buffering=1 << 18, opener=opener) as file:
        now = changes.complete(source, os.fstat(file.fileno()))
        state = _unpacked(cursor)
        continued = _is_continued(file, cursor, state, now)
        if not continued:
            cursor = cursor._replace(offset=0, state=None)
        fold = Fold(source, file, cursor.offset, state if continued else {})
        _put(writer, source, cursor, now, fold, continued, breathe, oldest)


def _put(
    writer: Writer,
    source: Source,
    cursor: Cursor,
    now: Fingerprint,
    fold: Union[Fold, Early],
    continued: bool,
    breathe: listing.Breath,
    oldest: Optional[int],
) -> None:
    stored = {} if cursor.id is None else writer.live_sessions(cursor.id)
    key = next((row[0] for row in stored.values()), None)
    if continued or (key is None and oldest is None):
        _extend(writer, source, cursor, now, fold, key, breathe)
    else:
        _replace(writer, source, cursor, now, fold, key, breathe, oldest)


def _extend(
    writer: Writer,
    source: Source,
    cursor: Cursor,
    now: Fingerprint,
    fold: Union[Fold, Early],
    key: Optional[int],
    breathe: listing.Breath,
) -> None:
    """Each slice lands with its cursor, so that a crash costs one slice at most."""
    for piece in fold.slices(now.size):
        session = fold.session()
        if session is None and fold.done and (piece or key is not None):
            # What was said stands before the session's head: it is read again when the head is there. Or all that was
            # said is undone: nothing answers any more, and the file is read from its start when it goes on.
            if key is not None:
                writer.hide_sessions("id = ?", (key,))
                cursor = cursor._replace(offset=0, state=None)
            writer.put_cursor(_seen(cursor, fold, now))
            return
        # A slice in the middle is left with no mtime: after a crash the file is due.
        reached = cursor._replace(size=fold.offset, mtime_ns=changes.UNSETTLED)
        if fold.done:
            reached = _seen(cursor, fold, now)
        identifier = writer.put_cursor(reached._replace(identity=now.identity, offset=fold.offset, state=fold.state()))
        cursor = cursor._replace(id=identifier)
        if session is not None:
            key = writer.put_session(key, cursor, identifier, _dated(session, now), source.store.rank)
            writer.merge_rows(key, piece.rows(), piece.rewind)
        if not fold.done:
            breathe()


def _replace(
    writer: Writer,
    source: Source,
    cursor: Cursor,
    now: Fingerprint,
    fold: Union[Fold, Early],
    key: Optional[int],
    breathe: listing.Breath,
    oldest: Optional[int],
) -> None:
    """A file read anew takes the place of what is stored all at once; one whose session is expired leaves nothing."""

    def head() -> Optional[Session]:
        session = fold.session()
        return None if session is None else listing.unexpired(_dated(session, now), oldest)

    if cursor.id is None:
        cursor = cursor._replace(id=writer.put_cursor(cursor))
    assert cursor.id is not None
    kept = listing.store(writer, cursor, key, fold.slices(now.size), head, breathe, source.store.rank)
    reached = _seen(cursor, fold, now)
    if kept is None:
        writer.hide_sessions("source = ?", (cursor.id,))
    else:
        reached = reached._replace(offset=fold.offset, state=fold.state())
    writer.put_cursor(reached)


def _seen(cursor: Cursor, fold: Union[Fold, Early], now: Fingerprint) -> Cursor:
    """The cursor of a file read to its end, without how far it was consumed."""
    return cursor._replace(
        identity=now.identity, size=now.size, mtime_ns=now.mtime_ns, failure=fold.failure(), unknown=fold.unknown
    )


def _dated(session: Session, now: Fingerprint) -> Session:
    if session.updated_at is None:
        session.updated_at = now.mtime_ns // 1_000_000
    return session


def _is_continued(file: BinaryIO, cursor: Cursor, state: Mapping[str, Any], now: Fingerprint) -> bool:
    """Whether the file still begins with what was consumed, so that reading may go on from there."""
    if not state or now.size < cursor.offset:
        return False
    if changes.inode(cursor.identity) == changes.inode(now.identity) and now.size > cursor.size:
        return bool(state.get("marks") == changes.marks(file, cursor.offset))
    # Another inode, or bytes that may have been written over in place: all that was consumed is compared.
    return bool(state.get("checksum") == changes.checksum(file, 0, cursor.offset))


def _unpacked(cursor: Cursor) -> Mapping[str, Any]:
    if not cursor.offset or not cursor.state:
        return {}
    try:
        state = json.loads(zlib.decompress(cursor.state).decode("utf-8", "surrogatepass"))
    except (ValueError, zlib.error):
        return {}
    return state if isinstance(state, dict) else {}
