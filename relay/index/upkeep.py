"""What keeps the index small and whole while nothing else is to do: draining, retention, merging, checking."""

from __future__ import annotations

import itertools
import time
from typing import Optional

from relay.index.faults import IndexDamaged
from relay.index.schema import ROW_BITS
from relay.index.writer import Writer

#: Rows, and sessions, removed in one transaction: some tens of milliseconds.
DRAIN_ROWS, DRAIN_SESSIONS = 500, 200
#: Pages written by one step of a merge.
MERGE_PAGES = 200

DAY_MS = 86_400_000
#: The clock (or the setting) went back by more than this: what had expired may be due again.
_WIDENED_MS = 3_600_000
#: An index whose retention is this far behind has not expired for long, or never under a shorter one.
PASSED_BY_MS = DAY_MS


def drain(writer: Writer) -> bool:
    """Remove some rows of sessions that no longer answer, in one small transaction; False when nothing was left to do.

    Not while a session is being staged. Nothing a search can see changes.
    """
    sessions = writer.fetch("SELECT id, changed FROM sessions WHERE live = 0 ORDER BY id LIMIT ?", (DRAIN_SESSIONS,))
    if not sessions:
        return False
    writer.begin()
    left = DRAIN_ROWS
    pruned = 0
    for key, changed in sessions:
        rows = list(itertools.islice(writer.stored_rows(key, page=left), left))
        if rows:
            writer.delete_rows(key, rows)
        left -= len(rows)
        if left <= 0:
            break
        writer.execute("DELETE FROM sessions WHERE id = ?", (key,))
        pruned = max(pruned, changed)
    # A reader that refreshes by ``changed`` cannot see a session that is gone: it must start over (schema.Meta).
    if pruned > int(writer.meta("pruned", "0")):
        writer.put_meta("pruned", str(pruned))
    writer.commit()
    return True


def cutoff(history_days: Optional[int], now_ms: Optional[int] = None) -> Optional[int]:
    """Sessions last updated before this (epoch ms) are neither read nor answered; None keeps everything."""
    if history_days is None:
        return None
    return int(time.time() * 1000 if now_ms is None else now_ms) - history_days * DAY_MS


def expire(writer: Writer, oldest: Optional[int]) -> int:
    """Stop answering from sessions older than ``oldest``; how many. One transaction.

    Their sources forget how far they were read, so that a later change reads them from the start. When ``oldest`` went
    back (a longer history, a clock set back), every source that may hold expired sessions is due again.
    """
    before = writer.meta("cutoff")
    if before and (oldest is None or oldest < int(before) - _WIDENED_MS):
        writer.begin()
        # Documents and databases have no offset; they may hold expired sessions beside live ones.
        writer.execute(
            "UPDATE sources SET identity = '', offset = 0, state = NULL WHERE offset = 0 OR NOT EXISTS "
            "(SELECT 1 FROM sessions WHERE sessions.source = sources.id AND live = 1)"
        )
    now = "" if oldest is None else str(oldest)
    count = 0
    if oldest is not None:
        old = "live = 1 AND updated_at < ?"
        if writer.first(f"SELECT 1 FROM sessions WHERE {old} LIMIT 1", (oldest,)):
            writer.begin()
            writer.execute(
                f"UPDATE sources SET offset = 0, state = NULL WHERE id IN (SELECT source FROM sessions WHERE {old})",
                (oldest,),
            )
            count = writer.hide_sessions("updated_at < ?", (oldest,))
    # Every minute's cutoff is not worth a write: the coarse value serves to notice a step back.
    if bool(now) != bool(before) or count or (now and abs(int(now) - int(before)) > _WIDENED_MS):
        writer.put_meta("cutoff", now)
    writer.commit()
    return count


def merge(writer: Writer) -> bool:
    """One step of merging the full-text index's segments; False when there is nothing left to merge."""
    connection = writer.index.connection
    before = connection.total_changes
    writer.begin()
    writer.execute("INSERT INTO words(words, rank) VALUES('merge', ?)", (MERGE_PAGES,))
    done = connection.total_changes - before
    writer.commit()
    return done >= 2


def check(writer: Writer) -> None:
    """Read the whole file and compare its parts. Raises IndexDamaged."""
    answer = writer.first("PRAGMA quick_check(1)")
    if answer is None or answer[0] != "ok":
        raise IndexDamaged("The index is damaged; it is set aside and rebuilt.")
    writer.begin()
    try:
        writer.execute("INSERT INTO words(words) VALUES('integrity-check')")
    finally:
        writer.rollback()
    lost = writer.first(
        "SELECT 1 FROM rows WHERE NOT EXISTS "
        f"(SELECT 1 FROM sessions WHERE sessions.id = rows.id >> {ROW_BITS}) LIMIT 1"
    )
    if lost is not None:
        raise IndexDamaged("The index holds rows of no session; it is set aside and rebuilt.")
