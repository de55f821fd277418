"""What an answer holds, forks and subagents, and what happens when the index is not there."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

import pytest

from relay.contract.requests import SearchRequest
from relay.contract.responses import parse_response
from relay.index.faults import IndexUnavailable
from relay.search import engine as engines
from relay.search.engine import Engine
from relay.search.hits import resume_command
from tests.search.corpus import HOUR, START, Library, Said, add_all, assistant, tool, user


def test_the_whole_answer(library: Library) -> None:
    library.add(
        user("hello"), Said("assistant", "the race is here", START + 5), id="abc", title="Find it",
        cwd="/gone", branch="main",
        updated_at=START, message_count=2, resume="claude --resume abc",
    )  # fmt: skip
    answer = library.search("race", debug=False)
    assert answer.pop("durationMs") >= 0
    (hit,) = answer.pop("hits")
    assert answer == {
        "kind": "results",
        "page": {"cursor": None, "hasMore": False},
        "generation": 1,
        "truncated": {"candidates": False, "snippets": 0, "query": False, "freshness": False},
    }
    assert hit.pop("score") >= 0
    assert hit == {
        "agent": "claude", "sessionId": "abc", "title": "Find it", "cwd": "/gone", "branch": "main",
        "updatedAt": "2026-03-01T00:00:00.000Z", "messageCount": 2,
        "source": {"presence": "present", "filePath": "/home/dev/.claude/projects/1-abc.jsonl"},
        "evidence": {"snippet": "the [[race]] is here", "role": "assistant", "timestamp": "2026-03-01T00:00:00.005Z"},
        "resumeCommand": "claude --resume abc",
    }  # fmt: skip


def test_answers_keep_the_contract(library: Library) -> None:
    library.add(user("race"), cwd=None, updated_at=10**17)
    library.add(Said("tool", "race", None))
    answer = library.search("race")
    assert parse_response(answer) == answer
    assert {hit["updatedAt"] for hit in answer["hits"]} > {None}


def test_the_folder_is_entered_when_it_exists(tmp_path: Path) -> None:
    folder = tmp_path / "it's here"
    folder.mkdir()
    assert resume_command("claude --resume x", str(folder)) == f"cd '{tmp_path}/it'\"'\"'s here' && claude --resume x"
    assert resume_command("claude --resume x", str(folder / "gone")) == "claude --resume x"
    assert resume_command("claude --resume x", None) == "claude --resume x"


def test_the_codex_home_is_told(library: Library) -> None:
    from relay.transcripts.registry import agents

    store = agents()["codex"].stores[0]
    library.add(user("race"), agent="codex", root=f"/opt/codex/{store.below}", store=store.name)
    assert library.search("race")["hits"][0]["source"]["codexHome"] == "/opt/codex"


def test_forks_fold_into_the_newest(library: Library) -> None:
    for number in range(3):
        library.add(user("race"), id=f"fork{number}", lineage="one", updated_at=START + number * HOUR)
    library.add(user("race"), id="alone")
    hits = library.search("race")["hits"]
    assert {hit["sessionId"]: hit.get("duplicateCount") for hit in hits} == {"fork2": 3, "alone": None}
    assert library.search("repo:project")["hits"][0].keys() >= {"duplicateCount"} or len(hits) == 2


def test_forks_of_two_agents_stay_apart(library: Library) -> None:
    library.add(user("race"), lineage="one")
    library.add(user("race"), lineage="one", agent="codex", root="/x")
    assert len(library.found("race")) == 2


def test_a_subagent_answers_as_its_parent(library: Library) -> None:
    library.add(user("start the search"), id="parent")
    library.add(tool("needle"), id="child", parent_id="parent")
    library.add(tool("thread"), id="grandchild", parent_id="child")
    library.add(tool("orphaned"), id="orphan", parent_id="gone")
    for query in ("needle", "thread", "search"):
        (hit,) = library.search(query)["hits"]
        assert hit["sessionId"] == "parent" and "duplicateCount" not in hit
        assert f"[[{query}]]" in hit["evidence"]["snippet"]
    assert library.found("orphaned") == ["orphan"]
    assert sorted(library.found("repo:project")) == ["orphan", "parent"]


def test_parents_in_a_circle_end(library: Library) -> None:
    library.add(user("needle"), id="a", parent_id="b")
    library.add(user("needle"), id="b", parent_id="a")
    assert library.found("needle")


def test_one_session_in_two_stores_is_one_and_the_outranked_copy_is_silent(library: Library) -> None:
    library.add(user("race"), id="same", rank=0, title="low", updated_at=START + HOUR)
    library.add(user("race"), id="same", rank=1, title="high", updated_at=START)
    library.add(user("undone since"), id="same", rank=0, title="lowest", updated_at=START)
    (hit,) = library.search("race")["hits"]
    assert hit["title"] == "high" and "duplicateCount" not in hit
    assert library.found("undone") == []
    assert library.found("repo:project") == ["same"]


def test_a_copy_answers_once_the_better_one_is_gone(library: Library) -> None:
    library.add(user("older words"), id="same", rank=0)
    new = library.add(user("newer words"), id="same", rank=1)
    assert library.found("older") == [] and library.found("newer") == ["same"]
    library.hide(new)
    assert library.found("older") == ["same"] and library.found("newer") == []


def test_what_the_person_wrote_ranks_above_tool_output(library: Library) -> None:
    library.add(tool("needle in the output"))
    library.add(assistant("needle in the reply"))
    library.add(user("needle in the prompt"))
    add_all(library, ["other"] * 10)
    assert library.found("needle") == ["s3", "s2", "s1"]


def test_a_session_answers_with_its_short_row_rather_than_a_long_one_of_more_words(library: Library) -> None:
    noise = " ".join(f"line{number}" for number in range(900))
    library.add(tool(f"race race race {noise} reattach reattach"), assistant("the reattach of a race"))
    library.add(assistant("so the reattach " + "and other words " * 20 + "of a race"))
    add_all(library, ["other"] * 10)
    hits = library.search("race reattach")["hits"]
    assert [hit["sessionId"] for hit in hits[:2]] == ["s1", "s2"]
    assert hits[0]["evidence"]["snippet"] == "the [[reattach]] of a [[race]]"


def test_equal_hits_come_newest_first(library: Library) -> None:
    add_all(library, ["needle"] * 3 + ["other"] * 9)
    assert library.found("needle") == ["s3", "s2", "s1"]


def test_no_index(tmp_path: Path) -> None:
    with pytest.raises(IndexUnavailable):
        Engine(str(tmp_path / "index.db"))


def test_a_foreign_or_broken_file(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(IndexUnavailable):
        Engine(str(path))
    path.unlink()
    sqlite3.connect(path).execute("CREATE TABLE x(y)").connection.close()
    with pytest.raises(IndexUnavailable):
        Engine(str(path))


def test_a_closed_engine_refuses(library: Library) -> None:
    engine = Engine(library.path)
    engine.close()
    engine.close()
    with pytest.raises(IndexUnavailable):
        engine.search(SearchRequest("x"))


def test_a_rebuilt_file_is_opened_anew(tmp_path: Path) -> None:
    first = Library(tmp_path)
    add_all(first, ["needle"])
    engine = Engine(first.path)
    assert engine.search(SearchRequest("needle"))["hits"]
    first.close()
    for name in os.listdir(tmp_path):
        os.unlink(tmp_path / name)
    with pytest.raises(IndexUnavailable):
        engine.search(SearchRequest("needle"))
    second = Library(tmp_path)
    add_all(second, ["thread"])
    assert not engine.search(SearchRequest("needle"))["hits"]
    assert engine.search(SearchRequest("thread"))["hits"]
    engine.close()
    second.close()


def test_searching_writes_nothing(library: Library) -> None:
    add_all(library, ["needle"])
    library.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = Path(library.path).read_bytes()
    library.search("needle")
    library.search("nedle")
    assert Path(library.path).read_bytes() == before
    assert os.path.getsize(library.path + "-wal") == 0


def test_an_index_that_never_stands_still_is_stale_at_last(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    add_all(library, ["needle"])
    ordered = engines._ordered

    def meanwhile(*arguments: object) -> object:
        add_all(library, ["needle"])
        return ordered(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(engines, "_ordered", meanwhile)
    answer = library.search("needle")
    assert answer == {"kind": "stale-cursor", "generation": 1 + engines.ATTEMPTS}


def test_one_write_meanwhile_is_waited_out(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    add_all(library, ["needle"])
    ordered, writes = engines._ordered, iter(("needle",))

    def meanwhile(*arguments: object) -> object:
        add_all(library, list(writes))
        return ordered(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(engines, "_ordered", meanwhile)
    assert library.found("needle") == ["s2", "s1"]


def test_threads_share_an_engine(library: Library) -> None:
    add_all(library, [f"needle{number} thread" for number in range(40)])
    wrong = []

    def ask(number: int) -> None:
        for place in range(number, 40, 8):
            if library.found(f"needle{place}") != [f"s{place + 1}"] or len(library.found("thread", limit=100)) != 40:
                wrong.append(place)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_degraded_roots_are_unverifiable(library: Library) -> None:
    library.add(user("needle"), resume="claude --resume x")
    library.writer.put_meta("degraded_roots", '["/home/dev/.claude/projects"]')
    library.writer.commit()
    (hit,) = library.search("needle")["hits"]
    assert hit["source"]["presence"] == "unverifiable" and "resumeCommand" not in hit
