"""Opening the index file: made when absent, set aside and made anew when damaged, foreign or of another version."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import uuid
from typing import Any, Iterator, List, Optional, Tuple
from urllib.parse import quote

from relay.index.faults import (
    IndexDamaged,
    IndexFault,
    IndexForeign,
    IndexUnavailable,
    IndexUnwritable,
    is_damage,
    translated,
)

FILE_NAME = "index.db"

#: "RELY", in the header of every index file.
APPLICATION_ID = 0x52454C59

#: Raised with every change of a table or of the spelling of words (same as schema.SCHEMA_VERSION, which a test holds;
#: kept here as well because reading must not import peewee).
SCHEMA_VERSION = 1

SIDE_FILES = ("-wal", "-shm", "-journal")
#: What a file that was set aside is called: a damaged one goes when the new index is whole, the other stays.
DAMAGED, FOREIGN = ".damaged", ".other-version"

#: Seconds a statement waits for another process's lock.
BUSY_TIMEOUT = 5.0


def database_path(state_folder: str) -> str:
    """Where the index of this state folder is, whether it exists or not."""
    return os.path.join(state_folder, FILE_NAME)


def fts5_available() -> bool:
    """Whether this Python's SQLite has FTS5; without it there is no index (``no-service``)."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE probe USING fts5(x)")
        except sqlite3.OperationalError:
            return False
    return True


def file_identity(path: str) -> Optional[Tuple[int, int]]:
    """Device and inode of the file, or None when it is gone: a connection held open outlives a replaced file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def reading_identity(path: str) -> Optional[Tuple[int, int, bool]]:
    """What a connection for reading is good for: this file, while its folder takes writes or does not (see below)."""
    identity = file_identity(path)
    return None if identity is None else (*identity, os.access(os.path.dirname(path), os.W_OK))


def open_for_reading(path: str) -> sqlite3.Connection:
    """A connection that can only read, for use by one thread at a time. Raises IndexUnavailable (IndexDamaged).

    On a read-only file system, where SQLite cannot make its shared memory, the file is opened as immutable: nobody
    else can write there either. Such a connection sees nothing of what is written once the folder takes writes again.
    """
    with _SWAP:
        identity = file_identity(path)
        connection = _open_for_reading(path)
        if file_identity(path) == identity:
            return connection
        connection.close()
    raise IndexUnavailable("The index was replaced; it is opened anew.")


def _open_for_reading(path: str) -> sqlite3.Connection:
    if not os.path.isfile(path):
        raise IndexUnavailable("There is no index yet.")
    # SQLite cannot tell its own process from no process: it would take the shared memory of the file that was there
    # before for left over, and cut it under the writer's feet, which ends the process (SIGBUS).
    if any(index.path == path and index.replaced() for index in list(_OPEN)):
        raise IndexUnavailable("The index was replaced; it is opened anew.")
    failure: Optional[Exception] = None
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        if "immutable" in mode and os.access(os.path.dirname(path), os.W_OK):
            break
        try:
            connection = sqlite3.connect(
                f"file:{quote(os.fsencode(path))}?{mode}",
                uri=True,
                timeout=BUSY_TIMEOUT,
                isolation_level=None,
                check_same_thread=False,
            )
        except sqlite3.Error as error:
            failure = error
            continue
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA trusted_schema = ON")
            _check(connection)
            return connection
        except sqlite3.Error as error:
            connection.close()
            failure = error
        except IndexFault:
            connection.close()
            raise
    if failure is not None and is_damage(failure):
        raise IndexDamaged("The index is damaged; it is being rebuilt.") from failure
    raise IndexUnavailable("The index cannot be opened now.") from failure


def _check(connection: sqlite3.Connection) -> str:
    """The file's incarnation. Raises IndexForeign, IndexDamaged."""
    application, version = header(connection)
    if application != APPLICATION_ID or version != SCHEMA_VERSION:
        raise IndexForeign("The index is of another version; it is being rebuilt.")
    row = connection.execute("SELECT value FROM meta WHERE name = 'incarnation'").fetchone()
    if row is None:
        raise IndexDamaged("The index has lost its identity; it is being rebuilt.")
    return str(row[0])


def header(connection: sqlite3.Connection) -> Tuple[int, int]:
    """The application id and schema version in the file's header."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    return int(application), int(version)


#: The indexes that this process has open for writing.
_OPEN: List["OpenIndex"] = []

#: Held while the index is opened, and while its files change places: SQLite opens them by name one after the other, and
#: a connection that got the shared memory of another index takes that one's locks away when it is closed.
_SWAP = threading.RLock()


class OpenIndex:
    """The writer's handle: a peewee database and the sqlite3 connection under it, both of the thread that opened it."""

    def __init__(self, path: str, journal_mode: str) -> None:
        from peewee import SqliteDatabase

        self.path = path
        self.database = SqliteDatabase(
            path,
            pragmas=(
                # A new file's alone; texts of some thousand bytes leave less of a larger page empty.
                ("page_size", 8192),
                ("journal_mode", journal_mode),
                ("synchronous", "NORMAL"),
                ("cache_size", -16384),
                ("wal_autocheckpoint", 2000),
                ("journal_size_limit", 16 << 20),
                ("temp_store", "MEMORY"),
            ),
            timeout=BUSY_TIMEOUT,
            thread_safe=False,
            check_same_thread=False,
            cached_statements=256,
        )
        with _sqlite_errors():
            self.database.connect()
        self.connection: sqlite3.Connection = self.database.connection()
        self.journal_mode = str(self.connection.execute("PRAGMA journal_mode").fetchone()[0]).lower()
        self.identity = file_identity(path)
        self._side_files = self._side_files_now()
        self.incarnation = ""
        #: Whether this file takes the place of one that was set aside.
        self.rebuilt = False
        _OPEN.append(self)

    def replaced(self) -> bool:
        """Whether another file (or none) stands at the path now."""
        return file_identity(self.path) != self.identity

    def bereft(self) -> bool:
        """Whether the file has lost what belongs to it: what is written goes where no other connection looks."""
        return self._side_files != self._side_files_now()

    def note_side_files(self) -> None:
        """Remember the log and the shared memory as they are, now that SQLite has made them."""
        self._side_files = self._side_files_now()

    def _side_files_now(self) -> List[Optional[Tuple[int, int]]]:
        if self.journal_mode != "wal":
            return []
        return [file_identity(self.path + suffix) for suffix in ("-wal", "-shm")]

    def close(self) -> None:
        """Give the connection back; may be called twice.

        Of a file that was replaced the side files go first: they would be taken for those of the one that stands there.
        """
        if self in _OPEN:
            if self.replaced():
                for suffix, known in zip(("-wal", "-shm"), self._side_files):
                    if known is not None and file_identity(self.path + suffix) == known:
                        with contextlib.suppress(OSError):
                            os.remove(self.path + suffix)
            _OPEN.remove(self)
        with contextlib.suppress(sqlite3.Error):
            self.database.close()


@contextlib.contextmanager
def _sqlite_errors() -> Iterator[None]:
    """peewee raises its own copies of sqlite3's errors; here the originals are judged."""
    from peewee import PeeweeException

    try:
        yield
    except PeeweeException as error:
        original = error.__context__
        raise (original if isinstance(original, sqlite3.Error) else sqlite3.OperationalError(str(error))) from None


def open_for_writing(path: str, rebuilding: bool = False) -> OpenIndex:
    """Open or make the index; the caller holds the writer's lock.

    A file that is damaged or is no index of this version is set aside first. One that takes another's place, or is made
    with ``rebuilding``, says so from its first moment: no search takes it for whole. Raises IndexUnwritable.
    """
    try:
        _prepare_folder(os.path.dirname(path))
        with _SWAP:
            try:
                return _open(path, rebuilding)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                set_aside(path, DAMAGED)
            except IndexDamaged:
                set_aside(path, DAMAGED)
            except IndexForeign:
                set_aside(path, FOREIGN)
            index = _open(path, True)
        index.rebuilt = True
        return index
    except sqlite3.Error as error:
        raise translated(error) from error
    except OSError as error:
        raise IndexUnwritable(f"The state folder cannot be written: {error.strerror}.") from error


def _prepare_folder(folder: str) -> None:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.stat(folder).st_mode & 0o077:
        os.chmod(folder, 0o700)


def _open(path: str, rebuilding: bool) -> OpenIndex:
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise IndexForeign("A pipe or a device stands in the index's place; it is set aside.")
    # SQLite gives its side files the mode of the database, so the database must be private from its first byte.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600))
    if os.stat(path).st_mode & 0o077:
        os.chmod(path, 0o600)
    if _is_foreign(path):
        raise IndexForeign("The index is of another version; it is being rebuilt.")
    index = _connect(path)
    try:
        application, version = header(index.connection)
        if (application, version) == (0, 0) and _is_blank(index.connection):
            _create(index, rebuilding)
        index.incarnation = _check(index.connection)
        # The header alone can be whole over a missing table.
        for table in ("sources", "sessions", "rows"):
            index.connection.execute(f"SELECT id FROM {table} LIMIT 1").fetchone()
        index.connection.execute("SELECT rowid FROM words WHERE words MATCH 'a' LIMIT 1").fetchone()
    except BaseException:
        index.close()
        raise
    return index


def _is_foreign(path: str) -> bool:
    """Whether another program's or version's database stands there: it is set aside as it is, not changed to our ways.

    Changing its journal would also wait for whoever looks at it. What cannot be told here is met when it is opened.
    """
    try:
        with contextlib.closing(sqlite3.connect(f"file:{quote(os.fsencode(path))}?mode=ro", uri=True)) as connection:
            return header(connection) != (APPLICATION_ID, SCHEMA_VERSION) and not _is_blank(connection)
    except sqlite3.Error:
        return False


def _connect(path: str) -> OpenIndex:
    """With a write-ahead log where that works, with a rollback journal where it does not (no shared memory)."""
    try:
        return _tried(OpenIndex(path, "wal"))
    except sqlite3.OperationalError as error:
        if is_damage(error) or "full" in str(error).lower():
            raise
        _leave_wal(path)
        return _tried(OpenIndex(path, "delete"))


def _tried(index: OpenIndex) -> OpenIndex:
    """The index, once the write lock was had: only then SQLite needs its shared memory to be writable."""
    try:
        index.connection.execute("BEGIN IMMEDIATE")
        index.connection.execute("ROLLBACK")
        index.note_side_files()
    except BaseException:
        index.close()
        raise
    return index


def _leave_wal(path: str) -> None:
    """Take a file out of WAL mode without shared memory: an exclusive connection keeps the WAL's index on its heap."""
    with contextlib.closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = DELETE")


def _is_blank(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0


def _create(index: OpenIndex, rebuilding: bool) -> None:
    """All tables and the new identity in one transaction: a kill leaves a blank file or a whole one."""
    from relay.index.schema import TABLES, Meta
    from relay.index.words import BALLAST

    with _sqlite_errors(), index.database.transaction("IMMEDIATE"):
        for table in TABLES:
            schema: Any = table
            type(schema._schema)(table, index.database).create_all()
        values = [("incarnation", uuid.uuid4().hex), ("generation", "0"), ("pruned", "0")]
        values += [("rebuilding", "1")] if rebuilding else []
        Meta.insert_many(values, fields=[Meta.name, Meta.value]).execute(index.database)
        index.connection.execute("INSERT INTO words(rowid, user) VALUES(0, ?)", (BALLAST,))
        index.database.pragma("application_id", APPLICATION_ID, permanent=False)
        index.database.pragma("user_version", SCHEMA_VERSION, permanent=False)


def set_aside(path: str, suffix: str) -> None:
    """Rename the index and its side files out of the way; what was set aside before under this suffix is dropped."""
    with _SWAP:
        for name in _with_side_files(path):
            target = path + suffix + name[len(path) :]
            with contextlib.suppress(FileNotFoundError):
                os.replace(name, target)


def remove_damaged(path: str) -> None:
    """Drop what was set aside as damaged, once the new index holds everything again."""
    for name in _with_side_files(path + DAMAGED):
        with contextlib.suppress(OSError):
            os.remove(name)


def remove(path: str) -> None:
    """Remove the index, its side files and everything that was set aside. Raises OSError."""
    for base in (path, path + DAMAGED, path + FOREIGN):
        for name in _with_side_files(base):
            with contextlib.suppress(FileNotFoundError):
                os.remove(name)


def _with_side_files(path: str) -> Iterator[str]:
    # The database goes last: a -wal without its database is ignored, a database without its -wal has lost rows.
    for suffix in SIDE_FILES:
        yield path + suffix
    yield path
