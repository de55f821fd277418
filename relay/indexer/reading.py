"""Bringing one source up to date, by the way its store allows; a bad source costs that source alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from relay.index.faults import IndexFault
from relay.index.writer import Cursor, Writer
from relay.indexer import appending, changes, whole
from relay.indexer.changes import Fingerprint
from relay.indexer.listing import Breath, Interrupted, Lost
from relay.transcripts.registry import APPEND, DATABASE
from relay.transcripts.regular import is_regular
from relay.transcripts.types import Source, Unreadable

if TYPE_CHECKING:
    from relay.indexer.ahead import Early


def read(
    writer: Writer,
    source: Source,
    seen: Fingerprint,
    breathe: Breath,
    oldest: Optional[int] = None,
    early: Optional[Early] = None,
) -> bool:
    """Read what is new in a source; False when it must be looked at once more when its mtime has settled.

    What is written stands in the writer's open transaction; the caller commits. ``breathe`` is called where what was
    written so far may be committed. ``oldest`` (epoch ms) is where retention begins. A source that cannot be read keeps
    what it has and is marked as failed. Raises FileNotFoundError when it is gone, and the index's faults.
    """
    kind = source.store.kind
    cursor = _cursor(writer, source)
    try:
        if not is_regular(source.path):
            raise Unreadable("It is no regular file.")
        if kind == APPEND:
            appending.read(writer, source, cursor, breathe, oldest, early)
        elif kind == DATABASE:
            whole.read_database(writer, source, cursor, seen, breathe, oldest)
        else:
            whole.read_document(writer, source, cursor, seen, breathe, oldest)
    except (FileNotFoundError, IndexFault, Interrupted, Lost):
        raise
    except OSError as error:
        # A permission that is given later changes no mtime: without an identity the source stays due.
        _fail(writer, source, Fingerprint("", 0, 0), error.strerror or "The file cannot be read.")
    except Unreadable as error:
        _fail(writer, source, seen, error.reason)
    except (MemoryError, RecursionError):
        _fail(writer, source, seen, "The transcript is too large to be read.")
    except Exception as error:  # a reader met something its author did not foresee
        _fail(writer, source, seen, f"The transcript could not be understood ({type(error).__name__}).")
    return kind == APPEND or changes.settled(seen.mtime_ns)


def _cursor(writer: Writer, source: Source) -> Cursor:
    store = source.store
    known = writer.cursor(source.path)
    return known or Cursor(None, store.agent, store.name, source.root, source.path)


def _fail(writer: Writer, source: Source, seen: Fingerprint, reason: str) -> None:
    # Looked up anew: slices that were committed have moved the cursor.
    cursor = _cursor(writer, source)
    writer.put_cursor(cursor._replace(identity=seen.identity, size=seen.size, mtime_ns=seen.mtime_ns, failure=reason))
