"""Reading a SQLite database that another program owns: nothing of it is written, locked for long, or left behind."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import time
from types import TracebackType
from typing import Any, Dict, FrozenSet, Iterator, List, Optional, Sequence, Tuple, Type
from urllib.parse import quote

from relay.paths import state_folder
from relay.transcripts.regular import opener
from relay.transcripts.types import Source, Unreadable

#: Seconds a statement waits for a lock, and an open for a writer to finish.
WAIT = 2.0
#: A file changed less than this many seconds ago may change again under the same modification time.
FRESH = 0.05
#: Bytes of a database that are copied when it can be read in no other way.
COPY_LIMIT = 1 << 30
#: Characters of one value; a longer one is not read (see ``capped``).
CELL_LIMIT = 32 << 20

#: How many of a session's last rows may still be growing.
GROWING = 4

_COPY_PREFIX = "foreign-"
_GONE = (0, 0, 0)
_BUSY = "The database is in use by its program; it is tried again at its next change."
_DAMAGED = "The database is damaged."
#: What sqlite3 raises; the second when a damaged schema is quoted in an error's message.
_ERRORS = (sqlite3.Error, UnicodeDecodeError)
_REASONS = (
    ("not a database", "The file is not a SQLite database."),
    ("encrypted", "The file is not a SQLite database."),
    ("malformed", _DAMAGED),
    ("locked", _BUSY),
    ("busy", _BUSY),
    ("no such", "The database has a schema this version does not know."),
    ("unable to open", "The database cannot be opened."),
    ("unsupported file format", "The database was written by a newer SQLite."),
    ("disk i/o", "The database cannot be read from its disk."),
    ("readonly", _BUSY),
)


class ForeignDatabase:
    """A read-only connection to ``path``; a context manager.

    While its program has the database open in WAL mode (``-wal`` and ``-shm`` stand beside it) the newest rows are read
    through them, with ``readonly_shm`` so that not even the shared memory is touched. While nobody has, a plain
    read-only open would create both files, so the database is opened as immutable and every answer is thrown away if
    the file changed meanwhile. Where neither works (a ``-wal`` without ``-shm``, a hot journal, a lock that stays), a
    private copy is read.

    Every statement is fetched before it is answered, so no read transaction outlives its statement.
    """

    def __init__(self, path: str, wait: float = WAIT) -> None:
        self._path = os.path.realpath(path)  # beside which SQLite keeps its files, wherever a link to it is
        self._wait = wait
        self._connection: Optional[sqlite3.Connection] = None
        self._copy: Optional[str] = None
        #: The stamp under which an immutable connection's answers hold; None: SQLite itself watches for changes.
        self._holds_for: Optional[Tuple[Tuple[int, int, int], ...]] = None
        self._columns: Dict[str, FrozenSet[str]] = {}

    def __enter__(self) -> "ForeignDatabase":
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Give everything back; may be called twice."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._copy is not None:
            shutil.rmtree(self._copy, ignore_errors=True)
            self._copy = None

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> List[Tuple[Any, ...]]:
        """All rows of one statement. Raises ``Unreadable``."""
        deadline = time.monotonic() + self._wait
        while True:
            assert self._connection is not None
            failure: Optional[Exception] = None
            found: List[Tuple[Any, ...]] = []
            try:
                found = self._connection.execute(sql, parameters).fetchall()
            except _ERRORS as error:
                failure = error
            if self._holds_for is not None and self._stamp() != self._holds_for:
                if time.monotonic() > deadline:
                    raise Unreadable(_BUSY)
                self.close()
                self._open()
                continue
            if failure is not None:
                raise Unreadable(_reason(failure)) from failure
            return found

    def columns(self, table: str) -> FrozenSet[str]:
        """The names of a table's columns in lower case; empty when there is no such table."""
        if table not in self._columns:
            self._columns[table] = frozenset(text(row[1]).lower() for row in self.rows(f'PRAGMA table_info("{table}")'))
        return self._columns[table]

    def indexed(self, table: str, column: str) -> bool:
        """Whether an index begins with this column."""
        for row in self.rows(f'PRAGMA index_list("{table}")'):
            first = self.rows(f'PRAGMA index_info("{text(row[1])}")')
            if first and text(first[0][2]).lower() == column:
                return True
        return False

    def is_empty(self) -> bool:
        """Whether there is no table at all: a database its program has only just made."""
        return not self.rows("SELECT 1 FROM sqlite_master LIMIT 1")

    def _open(self) -> None:
        deadline = time.monotonic() + self._wait
        while True:
            stamp = self._stamp()
            if stamp[0] == _GONE:
                raise Unreadable("The database is gone.")
            if stamp[0][1] == 0 and not any(size for _, size, _ in stamp[1:]):
                # Nothing says that its sessions are gone: it may be in the middle of being copied here.
                raise Unreadable("The database file is empty.")
            if not os.access(self._path, os.R_OK):
                raise Unreadable("This account may not read the database.")
            wal, shm, journal = (part != _GONE for part in stamp[1:])
            if wal or shm:
                if not self._connect("mode=ro&readonly_shm=1"):
                    self._open_copy()
                return
            age = time.time() - stamp[0][2] / 1e9
            if not journal and not 0 <= age < FRESH:
                self._holds_for = stamp
                if not self._connect("mode=ro&immutable=1"):
                    raise Unreadable("The database cannot be opened.")
                # SQLite fills up a last page that is not all there with zeros.
                assert self._connection is not None
                if stamp[0][1] % self._connection.execute("PRAGMA page_size").fetchone()[0]:
                    raise Unreadable("The database is cut short.")
                return
            if time.monotonic() > deadline:  # written to all the time, or a journal that stays
                if journal or not self._connect("mode=ro"):
                    self._open_copy()
                return
            time.sleep(FRESH / 2)

    def _connect(self, parameters: str, path: Optional[str] = None) -> bool:
        """Open and try the schema; False when this way of opening does not work here."""
        if "immutable" not in parameters:
            self._holds_for = None
        uri = f"file:{quote(os.fsencode(path or self._path))}?{parameters}"
        connection = None
        try:
            connection = sqlite3.connect(
                uri, uri=True, timeout=self._wait, isolation_level=None, check_same_thread=False
            )
            connection.text_factory = _decode
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        except _ERRORS as error:
            if connection is not None:
                connection.close()
            message = str(error).lower()
            if "unable to open" in message or "locked" in message or "readonly" in message:
                return False
            raise Unreadable(_reason(error)) from error
        self._connection = connection
        return True

    def _open_copy(self) -> None:
        """Read a private copy: the database with its ``-wal`` or hot journal, which SQLite recovers there."""
        parent = state_folder()
        os.makedirs(parent, mode=0o700, exist_ok=True)
        _remove_left_copies(parent)
        self._copy = tempfile.mkdtemp(prefix=f"{_COPY_PREFIX}{os.getpid()}-", dir=parent)
        copy = os.path.join(self._copy, "copy.db")
        try:
            for _ in range(5):
                stamp = self._stamp()
                if sum(part[1] for part in stamp) > COPY_LIMIT:
                    raise Unreadable("The database is locked or half written, and too big to read from a copy.")
                for suffix in ("", "-wal", "-journal"):
                    if os.path.exists(self._path + suffix):
                        shutil.copyfile(self._path + suffix, copy + suffix)
                    elif os.path.exists(copy + suffix):
                        os.remove(copy + suffix)
                if self._stamp() == stamp:
                    break
            else:
                raise Unreadable(_BUSY)
            if not self._connect("mode=rw", copy):
                raise Unreadable("The database cannot be opened, nor a copy of it.")
        except OSError as error:
            self.close()
            raise Unreadable(f"The database cannot be opened, and copying it failed: {error.strerror}.") from error
        except Unreadable:
            self.close()
            raise

    def _stamp(self) -> Tuple[Tuple[int, int, int], ...]:
        """Inode, size and modification time (ns) of the database, its ``-wal``, ``-shm`` and (hot) ``-journal``."""
        found = []
        for suffix in ("", "-wal", "-shm", "-journal"):
            try:
                status = os.stat(self._path + suffix)
                cold = suffix == "-journal" and not _is_hot(self._path + suffix)
            except OSError:
                found.append(_GONE)
                continue
            found.append(_GONE if cold else (status.st_ino, status.st_size, status.st_mtime_ns))
        return tuple(found)


class SqliteReader:
    """What every database reader has in common: the open database, and a schema that is what it should be.

    Subclasses name their ``program`` and, by table, the ``needed`` columns; they add ``sessions`` and ``read``.
    """

    program = ""
    needed: Dict[str, Tuple[str, ...]] = {}

    def __init__(self, source: Source) -> None:
        self.source = source
        self.database = ForeignDatabase(source.path)
        #: False for a database its program has only just made: it holds no sessions yet.
        self.filled = False

    def __enter__(self) -> Any:
        try:
            self.database.__enter__()
            self.filled = not self.database.is_empty()
            if self.filled:
                self._check()
        except BaseException:
            self.database.close()
            raise
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.database.close()

    def _check(self) -> None:
        for table, columns in self.needed.items():
            found = self.database.columns(table)
            if not found:
                raise Unreadable(f"The database has no table {table}: not a format of {self.program} known here.")
            missing = [column for column in columns if column not in found]
            if missing:
                raise Unreadable(
                    f"The table {table} has no column {missing[0]}: not a format of {self.program} known here."
                )

    def choose(self, table: str, *columns: str) -> str:
        """The columns as an SQL list, NULL for each this version of the table does not have."""
        found = self.database.columns(table)
        return ", ".join(f'"{column}"' if column in found else "NULL" for column in columns)

    def one(self, table: str, key: str, value: str, *columns: str) -> Optional[Tuple[Any, ...]]:
        """The columns of the row whose ``key`` is ``value``, or None."""
        found = self.database.rows(f'SELECT {self.choose(table, *columns)} FROM "{table}" WHERE "{key}" = ?', (value,))
        return found[0] if found else None

    def each(self, table: str, key: str, value: str, order: str, *columns: str) -> Iterator[Tuple[Any, ...]]:
        """The rows whose ``key`` is ``value`` in ``order`` (SQL), one in memory at a time; a long value is NULL."""
        found = self.database.columns(table)
        wanted = ", ".join(capped(column) if column in found else "NULL" for column in columns)
        for (row,) in self.database.rows(f'SELECT rowid FROM "{table}" WHERE "{key}" = ? ORDER BY {order}', (value,)):
            yield from self.database.rows(f'SELECT {wanted} FROM "{table}" WHERE rowid = ?', (row,))

    def keyed(
        self, heads: Sequence[str], table: str, growing: str, *largest: str
    ) -> Iterator[Tuple[str, Tuple[Any, ...], str]]:
        """Each row of ``sessions``: its id, its columns ``heads``, and a change key.

        The key is of those columns, of how many rows ``table`` has for the session, of the largest values of the
        columns there, and of how long its last rows' column ``growing`` is: a reply grows in place, and times may be
        whole seconds.
        """
        if not self.filled:
            return
        tallies = self.tallies(table, *largest)
        last = f'SELECT length("{growing}") FROM "{table}" WHERE session_id = ? ORDER BY rowid DESC LIMIT {GROWING}'
        for name, *head in self.database.rows(f"SELECT {self.choose('sessions', 'id', *heads)} FROM sessions"):
            session_id = text(name)
            if session_id:
                key = repr((head, tallies.get(session_id), self.database.rows(last, (session_id,))))
                yield session_id, tuple(head), key

    def parents(self, table: str, column: str) -> Dict[str, str]:
        """By session id: the session that started it, for those that name one."""
        if column not in self.database.columns(table):
            return {}
        rows = self.database.rows(f'SELECT id, "{column}" FROM "{table}" WHERE "{column}" IS NOT NULL')
        return {text(child): text(parent) for child, parent in rows}

    def tallies(self, table: str, *columns: str) -> Dict[str, Tuple[Any, ...]]:
        """By session id: how many rows the table has for it, and the largest value of each column there is."""
        found = self.database.columns(table)
        if "session_id" not in found:
            return {}
        largest = "".join(f', max("{column}")' for column in columns if column in found)
        sql = f'SELECT session_id, count(*){largest} FROM "{table}" GROUP BY session_id'
        return {text(row[0]): row[1:] for row in self.database.rows(sql)}


def capped(column: str) -> str:
    """An SQL expression: the column's value, or NULL when it is too long to be read into memory."""
    return f'CASE WHEN length("{column}") <= {CELL_LIMIT} THEN "{column}" END'


def text(value: object) -> str:
    """A column's value as text whatever its storage class; the empty string for NULL."""
    if value is None:
        return ""
    return _decode(value) if isinstance(value, bytes) else str(value)


def parsed(value: object) -> Any:
    """The JSON in a column (text or bytes), or None when there is none or it is broken."""
    if not isinstance(value, (str, bytes)):
        return None
    try:
        return json.loads(text(value))
    except (ValueError, RecursionError):
        return None


def topmost(parents: Dict[str, str], session_id: str) -> Optional[str]:
    """The session a subagent's chain of parents begins with, as far as they are known; None without a parent."""
    seen = {session_id}
    current = parents.get(session_id)
    while current:
        above = parents.get(current)
        if not above or above in seen:
            break
        seen.add(current)
        current = above
    return current or None


def _is_hot(journal: str) -> bool:
    """Whether a rollback journal is in use: one that is kept after a commit is empty, or begins with zeros."""
    with open(journal, "rb", opener=opener) as file:
        return file.read(1) not in (b"", b"\0")


def _decode(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return _DAMAGED
    message = str(error).lower()
    for part, reason in _REASONS:
        if part in message:
            return reason
    return "The database cannot be read."


def _remove_left_copies(parent: str) -> None:
    """Remove the copies of processes that were killed."""
    for name in os.listdir(parent):
        owner = name[len(_COPY_PREFIX) :].partition("-")[0]
        if not name.startswith(_COPY_PREFIX) or not owner.isdigit():
            continue
        try:
            os.kill(int(owner), 0)
        except ProcessLookupError:
            shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
        except OSError:
            continue
