"""What can be wrong with the index, as exceptions whose messages say what happens next."""

from __future__ import annotations

import sqlite3


class IndexFault(Exception):
    """Base of the index's faults; the message carries no path."""


class IndexUnavailable(IndexFault):
    """The index cannot be read now. ``reason`` is the contract's word: ``not-ready`` or ``no-service``."""

    def __init__(self, message: str, reason: str = "not-ready") -> None:
        super().__init__(message)
        self.reason = reason


class IndexDamaged(IndexUnavailable):
    """The file is no database of ours any more; the writer sets it aside and builds a new one."""


class IndexForeign(IndexUnavailable):
    """The file is no index of this version; the writer sets it aside and builds a new one."""


class IndexUnwritable(IndexFault):
    """Nothing can be written now (disk full, read-only folder, I/O error); it is tried again by itself."""


class NotOwner(IndexFault):
    """Another process holds the writer's lock and did not let go in time."""


#: SQLite says these when the bytes of the file are wrong.
_DAMAGE = ("malformed", "not a database", "corrupt", "no such table", "no such column", "vtable constructor")
#: And these when the file cannot take what is written.
_UNWRITABLE = ("full", "readonly", "read-only", "disk i/o", "unable to open", "locked")


def is_damage(error: BaseException) -> bool:
    """Whether a sqlite3 error says that the database file itself is broken."""
    message = str(error).lower()
    return isinstance(error, sqlite3.DatabaseError) and any(sign in message for sign in _DAMAGE)


def translated(error: sqlite3.Error) -> IndexFault:
    """The fault a sqlite3 error stands for."""
    message = str(error).lower()
    if is_damage(error):
        return IndexDamaged("The index is damaged; it is set aside and rebuilt.")
    if "full" in message:
        return IndexUnwritable("The disk is full; indexing goes on when there is room.")
    if any(sign in message for sign in _UNWRITABLE):
        return IndexUnwritable("The index cannot be written; it is tried again.")
    return IndexUnwritable(f"The index cannot be written: {error}")
