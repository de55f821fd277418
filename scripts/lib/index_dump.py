"""What an index answers from, by natural keys: two indexes of the same transcripts give the same dump."""

from __future__ import annotations

import sqlite3
import zlib
from typing import Any, Dict, List, Tuple

ROW_BITS = 28


def dump(path: str) -> Dict[str, Any]:
    """Visible sessions with their heads and rows, the postings of the full-text index, and the sources."""
    connection = sqlite3.connect(path)
    try:
        sources = dict(connection.execute("SELECT id, path FROM sources"))
        names: Dict[int, Tuple[str, str]] = {}
        sessions: Dict[Tuple[str, str], Tuple[Any, ...]] = {}
        for row in connection.execute(
            "SELECT id, source, agent, session_id, title, cwd, branch, created_at, updated_at, message_count, resume, "
            "parent_id, lineage, rank FROM sessions WHERE live = 1"
        ):
            names[row[0]] = (sources[row[1]], row[3])
            assert names[row[0]] not in sessions, f"two live sessions are one: {names[row[0]]}"
            sessions[names[row[0]]] = row[2:]
        rows: Dict[Tuple[str, str], List[Tuple[Any, ...]]] = {name: [] for name in sessions}
        places: Dict[int, Tuple[Any, ...]] = {}
        for key, seq, role, timestamp, blob in connection.execute(
            "SELECT id, seq, role, timestamp, text FROM rows ORDER BY id"
        ):
            name = names.get(key >> ROW_BITS)
            if name is not None:
                places[key] = (*name, len(rows[name]))
                rows[name].append((seq, role, timestamp, zlib.decompress(blob).decode()))
        connection.execute("CREATE VIRTUAL TABLE temp.postings USING fts5vocab(main, words, instance)")
        postings = sorted(
            (term, places[key], column, offset)
            for term, key, column, offset in connection.execute('SELECT term, doc, col, "offset" FROM temp.postings')
            if key >> ROW_BITS in names  # a word without its row is found below
        )
        known = set(sources.values())
        cursors = sorted(connection.execute("SELECT path, size, failure FROM sources"))
        return {"sessions": sessions, "rows": rows, "postings": postings, "sources": known, "cursors": cursors}
    finally:
        connection.close()


def faults(path: str) -> List[str]:
    """What SQLite and FTS5 themselves find wrong with an index; empty when nothing is."""
    connection = sqlite3.connect(path)
    try:
        found = [row[0] for row in connection.execute("PRAGMA integrity_check")]
        found = [] if found == ["ok"] else found
        try:
            connection.execute("INSERT INTO words(words) VALUES('integrity-check')")
        except sqlite3.DatabaseError as error:
            found.append(f"fts5: {error}")
        connection.rollback()
        lost = connection.execute(
            "SELECT count(*) FROM rows WHERE NOT EXISTS "
            f"(SELECT 1 FROM sessions WHERE sessions.id = rows.id >> {ROW_BITS})"
        ).fetchone()[0]
        if lost:
            found.append(f"{lost} rows of no session")
        return found
    finally:
        connection.close()


def differences(one: Dict[str, Any], other: Dict[str, Any]) -> List[str]:
    """Where two dumps differ, as short sentences."""
    found: List[str] = []
    for part in ("sessions", "rows"):
        for name in sorted(set(one[part]) | set(other[part])):
            here, there = one[part].get(name), other[part].get(name)
            if here != there:
                found.append(f"{part} of {name}: {str(here)[:200]} / {str(there)[:200]}")
    for part in ("postings", "cursors"):
        if one[part] != other[part]:
            only = [entry for entry in one[part] if entry not in other[part]][:3] if len(one[part]) < 50_000 else "many"
            found.append(f"{part}: {len(one[part])} / {len(other[part])}, for example {only}")
    return found
