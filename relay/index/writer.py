"""Everything that puts rows into the index; what stands between two commits becomes visible at once or not at all."""

from __future__ import annotations

import sqlite3
import zlib
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from relay.index.faults import translated
from relay.index.names import held
from relay.index.opening import OpenIndex
from relay.index.rows import Row, compressed, decompressed
from relay.index.schema import ROW_BITS, WORD_COLUMNS
from relay.index.words import columns
from relay.transcripts.types import Session

#: Rows of one session that are deleted in the transaction that replaces them; of more, the whole session is replaced
#: and its old rows are drained later.
DELETE_AT_ONCE = 2000

_WORDS = ", ".join(f'"{name}"' for name in WORD_COLUMNS)
_INSERT_ROW = "INSERT INTO rows(id, seq, role, timestamp, text) VALUES(?, ?, ?, ?, ?)"
_INSERT_WORDS = f"INSERT INTO words(rowid, {_WORDS}) VALUES(?, ?, ?, ?, ?, ?)"
_DELETE_WORDS = f"INSERT INTO words(words, rowid, {_WORDS}) VALUES('delete', ?, ?, ?, ?, ?, ?)"
_HEAD = (
    "session_id",
    "title",
    "cwd",
    "branch",
    "created_at",
    "updated_at",
    "message_count",
    "resume",
    "parent_id",
    "lineage",
)
_CURSOR = (
    "agent",
    "store",
    "root",
    "path",
    "identity",
    "size",
    "mtime_ns",
    "offset",
    "state",
    "failure",
    "unknown",
)


class Cursor(NamedTuple):
    """How far one source has been read (see ``schema.SourceFile``); ``id`` is None until it stands in the index."""

    id: Optional[int]
    agent: str
    store: str
    root: str
    path: str
    identity: str = ""
    size: int = 0
    mtime_ns: int = 0
    offset: int = 0
    state: Optional[bytes] = None
    failure: Optional[str] = None
    unknown: int = 0


def ready(row: Row, compress: bool) -> Row:
    """The row with its words, and its text compressed when it is to be, made before it is written."""
    return row._replace(words=columns(row.role, row.text), kept=compressed(row.text) if compress else None)


class StoredRow(NamedTuple):
    """A row as it stands in the index."""

    id: int
    seq: int
    role: str
    timestamp: Optional[int]
    text: bytes


class Writer:
    """The one writer of an open index. Used by one thread.

    Changes begin a transaction by themselves; ``commit`` ends it and, when a search could see a difference, advances
    the generation. Any sqlite3 error rolls back and comes out as IndexDamaged or IndexUnwritable.
    """

    def __init__(self, index: OpenIndex) -> None:
        self.index = index
        self._connection = index.connection
        self._changed = False
        #: Rows and characters of text put in since the last commit.
        self.pending_rows = 0
        self.pending_characters = 0
        self.generation = int(self.meta("generation", "0"))

    # Transactions

    def begin(self) -> None:
        """Begin a transaction unless one is open."""
        if not self._connection.in_transaction:
            self.execute("BEGIN IMMEDIATE")

    def commit(self) -> bool:
        """Make everything since the last commit durable and visible; True when the generation advanced."""
        if not self._connection.in_transaction:
            return False
        changed = self._changed
        if changed:
            self.execute("UPDATE meta SET value = ? WHERE name = 'generation'", (str(self.generation + 1),))
        self.execute("COMMIT")
        if changed:
            self.generation += 1
        self._forget()
        return changed

    def rollback(self) -> None:
        """Undo everything since the last commit."""
        self._forget()
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise translated(error) from error

    def _forget(self) -> None:
        self._changed = False
        self.pending_rows = self.pending_characters = 0

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        """One statement; an error undoes the open transaction. Raises IndexDamaged, IndexUnwritable."""
        try:
            return self._connection.execute(sql, parameters)
        except UnicodeEncodeError:
            return self.execute(sql, held(parameters))
        except sqlite3.Error as error:
            self._undo()
            raise translated(error) from error

    def fetch(self, sql: str, parameters: Sequence[Any] = ()) -> List[Tuple[Any, ...]]:
        """All rows of one statement; SQLite meets damage only while it steps. Raises IndexDamaged, IndexUnwritable."""
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except UnicodeEncodeError:
            return self.fetch(sql, held(parameters))
        except sqlite3.Error as error:
            self._undo()
            raise translated(error) from error

    def first(self, sql: str, parameters: Sequence[Any] = ()) -> Optional[Tuple[Any, ...]]:
        """The first row of one statement, or None. Raises IndexDamaged, IndexUnwritable."""
        rows = self.fetch(sql, parameters)
        return rows[0] if rows else None

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]]) -> None:
        """One statement for many rows; an error undoes the open transaction. Raises IndexDamaged, IndexUnwritable."""
        try:
            self._connection.executemany(sql, parameters)
        except sqlite3.Error as error:
            self._undo()
            raise translated(error) from error

    def _undo(self) -> None:
        self._forget()
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:  # the first error is the one to tell; the next statement meets this one again
            pass

    # Named values

    def meta(self, name: str, default: str = "") -> str:
        """A named value of the index."""
        row = self.first("SELECT value FROM meta WHERE name = ?", (name,))
        return default if row is None else str(row[0])

    def put_meta(self, name: str, value: str, visible: bool = False) -> None:
        """Set a named value; it becomes durable with the next commit. ``visible``: searches could see it."""
        self.begin()
        self._changed = self._changed or visible
        self.execute("INSERT OR REPLACE INTO meta(name, value) VALUES(?, ?)", (name, value))

    # Sources

    def cursor(self, path: str) -> Optional[Cursor]:
        """The cursor of the source at ``path``, or None when it has never been read."""
        row = self.first(f"SELECT id, {', '.join(_CURSOR)} FROM sources WHERE path = ?", (path,))
        return None if row is None else Cursor(*row)

    def put_cursor(self, cursor: Cursor) -> int:
        """Insert or update a source; its id."""
        self.begin()
        if cursor.id is None:
            marks = ", ".join("?" * len(_CURSOR))
            done = self.execute(f"INSERT INTO sources({', '.join(_CURSOR)}) VALUES({marks})", cursor[1:])
            return int(done.lastrowid or 0)
        names = ", ".join(f"{name} = ?" for name in _CURSOR)
        self.execute(f"UPDATE sources SET {names} WHERE id = ?", (*cursor[1:], cursor.id))
        return cursor.id

    def remove_source(self, source: int) -> None:
        """Forget a source and stop answering from its sessions."""
        self.begin()
        self.hide_sessions("source = ?", (source,))
        self.execute("DELETE FROM sources WHERE id = ?", (source,))

    def hide_sessions(self, where: str, parameters: Sequence[Any]) -> int:
        """Stop answering from the live sessions that match; how many there were. Their rows wait to be drained."""
        self.begin()
        done = self.execute(
            f"UPDATE sessions SET live = 0, changed = ? WHERE live = 1 AND {where}", (self.generation + 1, *parameters)
        )
        if done.rowcount > 0:
            self._changed = True
        return int(done.rowcount)

    # Sessions

    def live_sessions(self, source: int) -> Dict[str, Tuple[int, str]]:
        """The sessions a source answers with: id ▶ (key in the index, change key)."""
        found = self.fetch("SELECT session_id, id, change_key FROM sessions WHERE source = ? AND live = 1", (source,))
        return {row[0]: (row[1], row[2]) for row in found}

    def put_session(
        self, key: Optional[int], cursor: Cursor, source: int, session: Session, rank: int, change_key: str = ""
    ) -> int:
        """Write a session's head and let it answer; its key. ``key`` is None for a new one."""
        self.begin()
        head = tuple(getattr(session, name) for name in _HEAD) + (rank, change_key, 1)
        names = (*_HEAD, "rank", "change_key", "live")
        if key is not None:
            stored = self.first(f"SELECT {', '.join(names)} FROM sessions WHERE id = ?", (key,))
            assert stored is not None
            if stored == head:
                return key
            self._changed = self._changed or stored[:-2] != head[:-2] or stored[-1] != head[-1]
            assignments = ", ".join(f"{name} = ?" for name in names)
            self.execute(
                f"UPDATE sessions SET {assignments}, changed = ? WHERE id = ?", (*head, self.generation + 1, key)
            )
            return key
        self._changed = True
        done = self.execute(
            f"INSERT INTO sessions(source, agent, {', '.join(names)}, next_row, changed) "
            f"VALUES(?, ?, {', '.join('?' * len(names))}, 0, ?)",
            (source, cursor.agent, *head, self.generation + 1),
        )
        return int(done.lastrowid or 0)

    def stage_session(self, cursor: Cursor, source: int) -> int:
        """A session that does not answer yet: rows are added slice by slice, then ``put_session`` lets it answer.

        What is left of it after a crash is drained.
        """
        self.begin()
        done = self.execute(
            "INSERT INTO sessions(source, agent, session_id, title, message_count, rank, change_key, live, next_row, "
            "changed) VALUES(?, ?, '', '', 0, 0, '', 0, 0, 0)",
            (source, cursor.agent),
        )
        return int(done.lastrowid or 0)

    # Rows

    def add_rows(self, key: int, rows: Sequence[Row]) -> None:
        """Put rows behind what the session has; the caller keeps them in the order of ``seq``."""
        if not rows:
            return
        self.begin()
        place = self._of_session(key, "next_row")
        first = (key << ROW_BITS) + place
        self.executemany(
            _INSERT_ROW,
            ((first + n, *row[:3], row.kept or compressed(row.text)) for n, row in enumerate(rows)),
        )
        self.executemany(
            _INSERT_WORDS,
            ((first + n, *(row.words or columns(row.role, row.text))) for n, row in enumerate(rows)),
        )
        self._touch(key, f"next_row = {place + len(rows)}")
        self.pending_rows += len(rows)
        self.pending_characters += sum(len(row.text) for row in rows)

    def merge_rows(self, key: int, rows: Sequence[Row], rewind: Optional[int]) -> None:
        """Add rows in the order of ``seq``; those stored from ``rewind`` on, or with a ``seq`` sent again, go.

        A row without text is not added; what stands at its ``seq`` goes all the same.
        """
        first = rows[0].seq if rows else None
        start = min((value for value in (first, rewind) if value is not None), default=None)
        if start is None:
            return
        kept: List[Row] = []
        gone: List[StoredRow] = []
        again = {row.seq for row in rows}
        rows = [row for row in rows if row.text]
        for stored in self.stored_rows(key, newest_first=True):
            if stored.seq < start:
                break
            gone.append(stored)
            if (rewind is None or stored.seq < rewind) and stored.seq not in again:
                kept.append(Row(stored.seq, stored.role, stored.timestamp, self.text_of(stored)))
        if gone:
            self.delete_rows(key, gone)
        kept.reverse()
        # Sorting is stable: the rows of one long message stay in their order.
        self.add_rows(key, sorted([*kept, *rows], key=lambda row: row.seq) if kept else rows)

    def stored_rows(self, key: int, newest_first: bool = False, page: int = 200) -> Iterator[StoredRow]:
        """The rows of a session in the order of their places, read page by page so that no statement stays open."""
        low, high = key << ROW_BITS, ((key + 1) << ROW_BITS) - 1
        order = "DESC" if newest_first else "ASC"
        while True:
            found = self.fetch(
                f"SELECT id, seq, role, timestamp, text FROM rows WHERE id BETWEEN ? AND ? ORDER BY id {order} LIMIT ?",
                (low, high, page),
            )
            for row in found:
                yield StoredRow(*row)
            if len(found) < page:
                return
            if newest_first:
                high = found[-1][0] - 1
            else:
                low = found[-1][0] + 1

    def delete_rows(self, key: int, rows: Sequence[StoredRow]) -> None:
        """Delete rows of a session and their words."""
        self.begin()
        # Ascending: FTS5 writes out all it holds whenever a smaller row id follows a greater one.
        rows = sorted(rows)
        self.executemany(_DELETE_WORDS, ((row.id, *columns(row.role, self.text_of(row))) for row in rows))
        self.executemany("DELETE FROM rows WHERE id = ?", ((row.id,) for row in rows))
        self._touch(key, "live = live")

    def text_of(self, row: StoredRow) -> str:
        """A stored row's text. Raises IndexDamaged."""
        try:
            return decompressed(row.text)
        except (ValueError, TypeError, zlib.error) as error:
            self._undo()
            raise translated(sqlite3.DatabaseError("a row's text is malformed")) from error

    def _touch(self, key: int, assignment: str) -> None:
        self.execute(
            f"UPDATE sessions SET {assignment}, changed = CASE live WHEN 1 THEN ? ELSE changed END WHERE id = ?",
            (self.generation + 1, key),
        )
        if self._of_session(key, "live"):
            self._changed = True

    def _of_session(self, key: int, column: str) -> int:
        row = self.first(f"SELECT {column} FROM sessions WHERE id = ?", (key,))
        assert row is not None
        return int(row[0])

    def replace_rows(self, key: int, rows: Sequence[Row]) -> bool:
        """Make a session's rows equal to ``rows`` with as few writes as it takes.

        False, and nothing done, when too many stored rows would have to go in one transaction.
        """
        same = 0
        differing: Optional[int] = None
        for stored in self.stored_rows(key):
            if same < len(rows):
                row = rows[same]
                if stored[1:4] == row[:3] and stored.text == compressed(row.text):
                    same += 1
                    continue
            differing = stored.id
            break
        if differing is not None:
            high = ((key + 1) << ROW_BITS) - 1
            found = self.fetch(
                "SELECT id, seq, role, timestamp, text FROM rows WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?",
                (differing, high, DELETE_AT_ONCE + 1),
            )
            if len(found) > DELETE_AT_ONCE:
                return False
            self.delete_rows(key, [StoredRow(*row) for row in found])
        self.add_rows(key, rows[same:])
        return True
