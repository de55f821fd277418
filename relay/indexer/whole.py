"""Reading documents and foreign databases: session by session, with only what differs written."""

from __future__ import annotations

import json
import zlib
from typing import Any, Dict, Iterable, Optional, Set

from relay.index.writer import Cursor, Writer
from relay.indexer import changes, listing
from relay.indexer.changes import Fingerprint
from relay.indexer.collecting import slices
from relay.transcripts.types import Session, Source, Transcript, Unreadable


def read_document(
    writer: Writer,
    source: Source,
    cursor: Cursor,
    seen: Fingerprint,
    breathe: listing.Breath,
    oldest: Optional[int] = None,
) -> None:
    """Read every session of a document (or folder); those it no longer has stop answering."""
    transcripts: Iterable[Transcript] = source.store.load()(source)
    cursor = _with_id(writer, cursor)
    assert cursor.id is not None
    stored = writer.live_sessions(cursor.id)
    kept: Set[int] = set()
    met: Set[str] = set()
    unknown = 0
    failure: Optional[str] = None
    for transcript in transcripts:
        session = transcript.session
        failure = failure or transcript.failure
        if session.updated_at is None:
            session.updated_at = seen.mtime_ns // 1_000_000
        unknown += transcript.unknown
        # A document that names a session twice: the first one answers.
        if session.session_id in met or listing.unexpired(session, oldest) is None:
            continue
        met.add(session.session_id)
        old = stored.get(session.session_id)
        key = _store(writer, source, cursor, transcript, None if old is None else old[0], breathe)
        kept.add(key)
    _hide_others(writer, (key for key, _ in stored.values()), kept)
    writer.put_cursor(_reached(cursor, seen)._replace(unknown=unknown, failure=failure))


def read_database(
    writer: Writer,
    source: Source,
    cursor: Cursor,
    seen: Fingerprint,
    breathe: listing.Breath,
    oldest: Optional[int] = None,
) -> None:
    """Read the sessions of a foreign database whose change key is another than when they were read."""
    cursor = _with_id(writer, cursor)
    assert cursor.id is not None
    with source.store.load()(source) as reader:
        stored = writer.live_sessions(cursor.id)
        # Sessions that are empty or expired have no row to hold their change key.
        passed_over = _unpacked(cursor.state)
        still: Dict[str, str] = {}
        kept: Set[int] = set()
        unknown = cursor.unknown
        failure: Optional[str] = None
        known_keys = {**passed_over, **{session_id: change_key for session_id, (_, change_key) in stored.items()}}
        for session_id, change_key in reader.sessions(known_keys):
            key, known = stored.get(session_id, (None, ""))
            if key is not None and known == change_key:
                kept.add(key)
                continue
            if passed_over.get(session_id) == change_key:
                still[session_id] = change_key
                continue
            try:
                transcript: Optional[Transcript] = reader.read(session_id)
            except Unreadable as error:
                # One bad session costs that session; it is tried again when its key changes.
                failure = failure or error.reason
                still[session_id] = change_key
                if key is not None:
                    kept.add(key)
                continue
            if transcript is None or listing.unexpired(transcript.session, oldest) is None:
                still[session_id] = change_key
                continue
            unknown += transcript.unknown
            kept.add(_store(writer, source, cursor, transcript, key, breathe, change_key))
            breathe()
    _hide_others(writer, (key for key, _ in stored.values()), kept)
    reached = _reached(cursor, seen)
    writer.put_cursor(reached._replace(unknown=unknown, state=_packed(still), failure=failure))


def _store(
    writer: Writer,
    source: Source,
    cursor: Cursor,
    transcript: Transcript,
    key: Optional[int],
    breathe: listing.Breath,
    change_key: str = "",
) -> int:
    def head() -> Session:
        return transcript.session

    stored = listing.store(
        writer, cursor, key, slices(transcript.messages), head, breathe, source.store.rank, change_key
    )
    assert stored is not None
    return stored


def _with_id(writer: Writer, cursor: Cursor) -> Cursor:
    """Sessions name their source: it gets its row first, as one that is still due."""
    return cursor if cursor.id is not None else cursor._replace(id=writer.put_cursor(cursor))


def _reached(cursor: Cursor, seen: Fingerprint) -> Cursor:
    mtime_ns = seen.mtime_ns if changes.settled(seen.mtime_ns) else changes.UNSETTLED
    return cursor._replace(identity=seen.identity, size=seen.size, mtime_ns=mtime_ns, failure=None)


def _hide_others(writer: Writer, stored: Iterable[int], kept: Set[int]) -> None:
    for key in stored:
        if key not in kept:
            writer.hide_sessions("id = ?", (key,))


def _packed(change_keys: Dict[str, str]) -> Optional[bytes]:
    return zlib.compress(json.dumps(change_keys).encode("utf-8", "surrogatepass"), 1) if change_keys else None


def _unpacked(state: Optional[bytes]) -> Dict[str, Any]:
    if state is None:
        return {}
    try:
        value = json.loads(zlib.decompress(state).decode("utf-8", "surrogatepass"))
    except (ValueError, zlib.error):
        return {}
    return value if isinstance(value, dict) else {}
