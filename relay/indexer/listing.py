"""Putting one session that was read from its start into the index, in place of what stood there."""

from __future__ import annotations

import itertools
from typing import Callable, Iterator, Optional

from relay.index.writer import Cursor, Writer
from relay.indexer.collecting import Slice
from relay.transcripts.types import Session

#: Called where what was written so far may be committed; commits when enough has gathered, and may pause.
Breath = Callable[[], None]


class Interrupted(Exception):
    """Raised out of a breath: it is time to end, in the middle of a reading; what is not committed is read again."""


class Lost(Exception):
    """A file could not be read ahead, or not to its end: it is read here."""


def store(
    writer: Writer,
    cursor: Cursor,
    key: Optional[int],
    pieces: Iterator[Slice],
    head: Callable[[], Optional[Session]],
    breathe: Breath,
    rank: int = 0,
    change_key: str = "",
) -> Optional[int]:
    """Store a session; its key in the index, or None when ``head``, asked behind the last slice, knows of none.

    ``key`` is the session that stands there now: it gets only the rows that differ. A session of several slices is
    staged instead and takes the old one's place in the transaction that holds its head. ``cursor`` has an id.
    """
    assert cursor.id is not None
    first = next(pieces, None) or Slice()
    second = next(pieces, None)
    if second is None:
        session = head()
        if session is None:
            return None
        rows = [row for row in first.rows() if row.text]
        if key is not None and writer.replace_rows(key, rows):
            return writer.put_session(key, cursor, cursor.id, session, rank, change_key)
        if key is not None:
            writer.hide_sessions("id = ?", (key,))
        key = writer.put_session(None, cursor, cursor.id, session, rank, change_key)
        writer.add_rows(key, rows)
        return key
    staged = writer.stage_session(cursor, cursor.id)
    for piece in itertools.chain((first, second), pieces):
        writer.merge_rows(staged, piece.rows(), piece.rewind)
        breathe()
    session = head()
    if session is None:
        return None
    if key is not None:
        writer.hide_sessions("id = ?", (key,))
    return writer.put_session(staged, cursor, cursor.id, session, rank, change_key)


def unexpired(session: Session, oldest: Optional[int]) -> Optional[Session]:
    """The session, or None when it was last updated before ``oldest`` (epoch ms)."""
    if oldest is not None and session.updated_at is not None and session.updated_at < oldest:
        return None
    return session
