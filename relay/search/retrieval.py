"""Rows of the full-text index that match an expression and that this search may see; reads only."""

from __future__ import annotations

import sqlite3
import zlib
from typing import AbstractSet, Dict, Iterable, List, NamedTuple, Optional, Tuple

from relay.search.expressions import scoped
from relay.search.sessions import SessionTable

#: As in relay.index.schema, whose import would bring in peewee: a test holds them equal.
ROW_BITS = 28

#: bm25 weights of the columns user, assistant, tool, pieces, tool_pieces (docs/decisions/search-ranking.md).
WEIGHTS = (3.0, 2.0, 1.0, 0.5, 0.25)

#: Counting stops here: whoever has more postings is simply common.
COUNTED = 20_000

#: Above so many sessions a list in the statement costs more than asking Python for each row.
_LISTED = 2000


#: Of so many matching rows every one is told, so that a session may answer with another than the one of most words.
ALL_TOLD, RUNNERS_UP = 3000, 2

#: The bm25 score of a row (higher is better) and its id.
Match = Tuple[float, int]


class Matches(NamedTuple):
    """Each session's best match, and the next best ones of some; ``bm25`` knows no lengths, so these may be better."""

    best: Dict[int, Match]
    more: Dict[int, List[Match]]


def unpacked(packed: bytes) -> List[str]:
    """The text of a row, or nothing when its bytes are broken."""
    try:
        return [zlib.decompress(packed).decode("utf-8", "replace")]
    except zlib.error:
        return []


class Rows:
    """Looks into one scope, with the sessions of one table that the filters allow."""

    def __init__(
        self, connection: sqlite3.Connection, table: SessionTable, allowed: Optional[AbstractSet[int]], scope: str
    ) -> None:
        self._connection = connection
        self._scope = scope
        self._visible = table.live if allowed is None else allowed
        self._where = "" if allowed is None else self._narrowed(allowed)

    def _narrowed(self, allowed: AbstractSet[int]) -> str:
        if len(allowed) <= _LISTED:
            listed = sorted(allowed)
            bounds = ""
            if listed:
                bounds = f" AND rowid BETWEEN {listed[0] << ROW_BITS} AND {((listed[-1] + 1) << ROW_BITS) - 1}"
            return f"{bounds} AND rowid >> {ROW_BITS} IN ({','.join(map(str, listed))})"
        self._connection.create_function("relay_allowed", 1, lambda row: (row >> ROW_BITS) in allowed)
        return " AND relay_allowed(rowid)"

    def matches(self, expression: str) -> Matches:
        """What matches in each visible session, by the session's key."""
        weights = ", ".join(map(str, WEIGHTS))
        columns = f"rowid AS row, -bm25(words, {weights}) AS score"
        scored = f"SELECT {columns} FROM words WHERE words MATCH ?{self._where} LIMIT -1"
        matched, visible = scoped(expression, self._scope), self._visible
        count = self._count(expression, ALL_TOLD)
        if not count:
            return Matches({}, {})
        if count == ALL_TOLD:
            found = self._connection.execute(
                f"SELECT row >> {ROW_BITS}, max(score), row FROM ({scored}) GROUP BY row >> {ROW_BITS}", (matched,)
            )
            return Matches({match[0]: match[1:] for match in found.fetchall() if match[0] in visible}, {})
        told: Dict[int, List[Match]] = {}
        for row, score in self._connection.execute(scored, (matched,)).fetchall():
            if row >> ROW_BITS in visible:
                told.setdefault(row >> ROW_BITS, []).append((score, row))
        best = {session: max(rows) for session, rows in told.items()}
        more = {session: sorted(rows)[-1 - RUNNERS_UP : -1] for session, rows in told.items() if len(rows) > 1}
        return Matches(best, more)

    def lengths(self, rows: Iterable[int]) -> Dict[int, int]:
        """How long the rows' texts are, in compressed bytes."""
        found = self._connection.execute(f"SELECT id, length(text) FROM rows WHERE id IN ({','.join(map(str, rows))})")
        return dict(found.fetchall())

    def texts(self, rows: Iterable[int]) -> Dict[int, str]:
        """The rows' texts; a row that cannot be read is left out."""
        found = self._connection.execute(f"SELECT id, text FROM rows WHERE id IN ({','.join(map(str, rows))})")
        return {row: text for row, packed in found.fetchall() for text in unpacked(packed)}

    def postings(self, expression: str) -> int:
        """How many rows match, at most COUNTED, visible or not."""
        return self._count(expression, COUNTED)

    def _count(self, expression: str, most: int) -> int:
        found = self._connection.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT {most})",
            (scoped(expression, self._scope),),
        )
        return int(found.fetchone()[0])

    def visible(self, expression: str, enough: int) -> int:
        """How many visible rows match; counting stops at ``enough``."""
        count = 0
        found = self._connection.execute(
            f"SELECT rowid >> {ROW_BITS} FROM words WHERE words MATCH ?{self._where}",
            (scoped(expression, self._scope),),
        )
        try:
            for (session,) in found:
                if session in self._visible:
                    count += 1
                    if count >= enough:
                        break
        finally:
            found.close()
        return count
