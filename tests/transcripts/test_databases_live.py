"""Foreign databases through every layer: written to by their program while this agent follows, without a restart."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from relay import paths
from relay.contract.requests import SearchRequest
from relay.index import opening
from relay.indexer.indexer import Indexer
from relay.search.engine import Engine
from relay.transcripts.registry import Env
from tests.support.foreign_writer import writer
from tests.support.transcript_sources import database
from tests.transcripts import test_hermes as hermes
from tests.transcripts import test_opencode as opencode
from tests.transcripts.test_opencode import T, session


class Following:
    """An indexer that runs, and searches in what it keeps current."""

    def __init__(self, home: Path) -> None:
        self.indexer = Indexer(paths.state_folder(), Env(str(home)), None)
        self.indexer.start()

    def current(self) -> None:
        assert self.indexer.reconcile(60)

    def hits(self, query: str) -> List[Dict[str, Any]]:
        """What a search finds that waited for the index to be current."""
        self.current()
        engine = Engine(self.indexer.database_path)
        try:
            found: List[Dict[str, Any]] = engine.search(SearchRequest(query))["hits"]
            return found
        finally:
            engine.close()

    def written(self) -> Dict[str, Tuple[int, int]]:
        """By session: its key in the index and the generation that last changed it."""
        with contextlib.closing(opening.open_for_reading(self.indexer.database_path)) as connection:
            rows: List[Tuple[str, int, int]] = connection.execute(
                "SELECT session_id, id, changed FROM sessions WHERE live = 1"
            ).fetchall()
        return {session_id: (key, changed) for session_id, key, changed in rows}


@pytest.fixture
def following(home: Path) -> Iterator[Following]:
    found = Following(home)
    yield found
    found.indexer.close(5)


def said(number: int, text: str, of: str = "ses_1") -> List[str]:
    """The statements by which OpenCode stores a prompt."""
    info = json.dumps({"role": "user", "time": {"created": T + number}})
    data = json.dumps({"type": "text", "text": text})
    return [
        f"INSERT INTO message VALUES ('msg_{number}', '{of}', {T + number}, {T + number}, '{info}')",
        f"INSERT INTO part VALUES ('prt_{number}', 'msg_{number}', '{of}', {T + number}, {T + number}, '{data}')",
    ]


def test_what_a_program_commits_is_found_while_it_runs(home: Path, following: Following) -> None:
    path = opencode.store(home, ("session", [session("ses_1", "One"), session("ses_2", "Two")]))
    with writer(path) as program:
        for statement in said(1, "albatross") + said(2, "pelican", "ses_2"):
            assert program(statement) == []
        assert [hit["sessionId"] for hit in following.hits("albatross")] == ["ses_1"]
        before = following.written()

        # A reply that grows in place, in a transaction that is still open: not yet, then at once.
        program("BEGIN IMMEDIATE")
        grown = json.dumps({"type": "text", "text": "albatross and cormorant"})
        program(f"UPDATE part SET data = '{grown}', time_updated = {T + 50} WHERE id = 'prt_1'")
        assert following.hits("cormorant") == []
        assert program("COMMIT") == []
        assert [hit["sessionId"] for hit in following.hits("cormorant")] == ["ses_1"]
        after = following.written()
        assert after["ses_2"] == before["ses_2"] and after["ses_1"] != before["ses_1"]

        # A checkpoint moves everything into the main file; nothing is lost and nothing read anew.
        assert program("PRAGMA wal_checkpoint(TRUNCATE)") == [[0, 0, 0]]
        assert [hit["sessionId"] for hit in following.hits("cormorant")] == ["ses_1"]
        assert following.written() == after

        # Undone messages and deleted sessions stop answering.
        program("""UPDATE session SET revert = '{"messageID": "msg_1"}' WHERE id = 'ses_1'""")
        program("DELETE FROM session WHERE id = 'ses_2'")
        assert following.hits("cormorant") == [] and following.hits("pelican") == []


def test_one_session_in_two_stores_is_one_hit_and_the_database_answers(home: Path, following: Following) -> None:
    opencode.tree(home, opencode.TREE)
    assert [hit["title"] for hit in following.hits("from the tree")] == ["Old store"]
    path = opencode.store(home, ("session", [session("ses_1", "Migrated")]))
    for statement in said(1, "from the tree and the database"):
        database(path, statement)
    (hit,) = following.hits("from the tree")
    assert (hit["title"], hit.get("duplicateCount", 1)) == ("Migrated", 1)


def test_a_chain_of_compressions_and_its_copies_are_one_hit(home: Path, following: Following) -> None:
    path = hermes.store(
        home,
        [hermes.session("s1", ended=hermes.T + 9, reason="compression"), hermes.session("s2", "s1", at=hermes.T + 9)],
        [hermes.message("s1", "user", "the old walrus"), hermes.message("s2", "user", "the new walrus")],
    )
    hermes.write(home, "s1.jsonl", json.dumps({"role": "user", "content": "the old walrus"}))
    for query in ("old walrus", "new walrus", "walrus"):
        (hit,) = following.hits(query)
        assert (hit["sessionId"], hit["title"], hit["messageCount"]) == ("s2", "the old walrus", 2)
        assert hit["source"]["presence"] == "present" and hit["resumeCommand"].endswith("hermes --resume s2")
    database(path, f"UPDATE sessions SET end_reason = 'compression', ended_at = {hermes.T + 20} WHERE id = 's2'")
    later = hermes.session("s3", "s2", "Walrus talk", at=hermes.T + 20)
    database(path, "", ("sessions", [later]), ("messages", [hermes.message("s3", "user", "a third walrus")]))
    for query in ("old walrus", "new walrus", "third walrus"):
        (hit,) = following.hits(query)
        assert (hit["sessionId"], hit["title"], hit["messageCount"]) == ("s3", "Walrus talk", 3)


def test_a_database_that_breaks_keeps_what_was_read_and_says_why(home: Path, following: Following) -> None:
    path = opencode.store(home, ("session", [session("ses_1", "Kept")]))
    for statement in said(1, "kingfisher"):
        database(path, statement)
    assert len(following.hits("kingfisher")) == 1
    whole = path.read_bytes()
    path.write_bytes(whole[:-2048])
    assert len(following.hits("kingfisher")) == 1
    assert following.indexer.status()["filesFailed"] == 1
    path.write_bytes(whole)
    assert len(following.hits("kingfisher")) == 1
    assert following.indexer.status()["filesFailed"] == 0


def test_nothing_of_a_live_database_is_touched(home: Path, following: Following) -> None:
    path = opencode.store(home, ("session", [session("ses_1", "One")]))
    with writer(path) as program:
        for statement in said(1, "heron"):
            program(statement)
        before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.parent.iterdir()}
        assert len(following.hits("heron")) == 1
        after = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.parent.iterdir()}
    assert sorted(before) == ["opencode.db", "opencode.db-shm", "opencode.db-wal"]
    assert before == after
