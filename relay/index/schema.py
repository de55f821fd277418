"""The index's tables. One SQLite file: what was read (sources), what it held (sessions, rows), its words (FTS5).

A row's id carries its session: ``session << ROW_BITS | place``, so a full-text match names its session without a join.
The FTS5 table is contentless: it holds words only, put there as ``relay.index.words`` spells them; the text itself
stands compressed in ``rows``. A session answers only while ``live`` is 1, so replacing or removing one is a single
update however many rows it has; its rows are drained later.
"""

from __future__ import annotations

from peewee import BlobField, IntegerField, Model, SqliteDatabase, TextField
from playhouse.sqlite_ext import FTS5Model, RowIDField, SearchField

#: Raised whenever a table or the spelling of words changes: an older or newer file is set aside and rebuilt.
SCHEMA_VERSION = 1

#: Low bits of a row id: the row's place within its session.
ROW_BITS = 28

#: FTS5 columns in order. ``pieces`` and ``tool_pieces`` hold the parts of identifiers and words with symbols.
WORD_COLUMNS = ("user", "assistant", "tool", "pieces", "tool_pieces")

database = SqliteDatabase(None)


class Base(Model):
    class Meta:
        database = database


class Meta(Base):
    """Named values.

    ``incarnation`` (made with the file) and ``generation``; ``pruned``: the greatest ``changed`` of a session that is
    no longer in its table (a reader that last looked before it must look at all sessions anew); ``rebuilding`` while
    this file takes the place of a damaged one; ``last_reconcile`` and ``last_sweep`` (epoch ms); ``cutoff`` (epoch ms)
    of the retention in force; ``ended_well``: 0 while a writer has the file open; ``named_roots``; ``mount:FOLDER``:
    the file system a root was last seen on.
    """

    name = TextField(primary_key=True)
    value = TextField()

    class Meta:
        table_name = "meta"
        without_rowid = True


class SourceFile(Base):
    """One transcript file, folder or database and how far it has been read."""

    agent = TextField()
    store = TextField()
    root = TextField()
    path = TextField(unique=True)
    #: Identity and change: device:inode, size and mtime (ns) as they were when read; a database's is of its -wal too.
    identity = TextField(default="")
    size = IntegerField(default=0)
    mtime_ns = IntegerField(default=0)
    #: Bytes consumed and the reader's state behind them (append stores only).
    offset = IntegerField(default=0)
    state = BlobField(null=True)
    #: Why it could not be read, or null.
    failure = TextField(null=True)
    #: Records of unknown type met so far.
    unknown = IntegerField(default=0)

    class Meta:
        table_name = "sources"


class SessionRow(Base):
    """One session of one source."""

    source = IntegerField(index=True)
    agent = TextField()
    session_id = TextField()
    title = TextField()
    cwd = TextField(null=True)
    branch = TextField(null=True)
    created_at = IntegerField(null=True)
    updated_at = IntegerField(null=True)
    message_count = IntegerField(default=0)
    resume = TextField(null=True)
    parent_id = TextField(null=True)
    lineage = TextField(null=True)
    #: The store's rank: of two sources with one session the higher answers.
    rank = IntegerField(default=0)
    #: A database's own key for "unchanged".
    change_key = TextField(default="")
    #: 1: answers searches. 0: replaced, removed or still being read; its rows wait to be drained.
    live = IntegerField(default=0)
    #: The place the next row takes.
    next_row = IntegerField(default=0)
    #: The generation that last changed this session (readers refresh by it).
    changed = IntegerField(default=0)

    class Meta:
        table_name = "sessions"
        indexes = ((("agent", "session_id"), False), (("changed",), False))


class TextRow(Base):
    """One searchable row: at most about 8,000 characters of one message."""

    #: session << ROW_BITS | place
    id = IntegerField(primary_key=True)
    #: The message's place in its session (a long message has several rows).
    seq = IntegerField()
    role = TextField()
    timestamp = IntegerField(null=True)
    #: zlib-compressed UTF-8.
    text = BlobField()

    class Meta:
        table_name = "rows"


class Words(FTS5Model):
    """The full-text index over the rows, by row id."""

    rowid = RowIDField()
    user = SearchField()
    assistant = SearchField()
    tool = SearchField()
    pieces = SearchField()
    tool_pieces = SearchField()

    class Meta:
        database = database
        table_name = "words"
        # words.columns has folded and split the text already, alike on every SQLite: the ascii tokenizer takes each
        # non-ASCII character as part of a word. Without column sizes bm25 costs a quarter (see docs/decisions).
        options = {"content": "", "tokenize": "ascii", "columnsize": 0}


TABLES = (Meta, SourceFile, SessionRow, TextRow, Words)
