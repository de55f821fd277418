"""Agents whose files tell by their names neither their session nor their place, followed by events alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from relay import paths
from relay.contract.requests import SearchRequest
from relay.indexer.indexer import Indexer
from relay.search.engine import Engine
from relay.transcripts.registry import Env, changed_by
from tests.indexer.conftest import until
from tests.support.transcript_sources import agent_roots
from tests.transcripts import test_crush as crush
from tests.transcripts.test_opencode import TREE, T, tree


@pytest.fixture
def indexer(home: Path) -> Iterator[Indexer]:
    """An indexer that is current with an empty home."""
    found = Indexer(paths.state_folder(), Env(str(home)), None)
    found.start()
    until(lambda: found.status()["phase"] == "current", found.status)
    yield found
    found.close(5)


def hits(indexer: Indexer, words: str) -> List[str]:
    """The sessions that a search finds now, without a pass before it."""
    engine = Engine(indexer.database_path)
    try:
        found: List[Dict[str, Any]] = engine.search(SearchRequest(words))["hits"]
        return [hit["sessionId"] for hit in found]
    finally:
        engine.close()


def project(home: Path, name: str, words: str) -> Dict[str, str]:
    """A project of Crush with one session, as its registry names it."""
    folder = home / "code" / name
    said = crush.message(f"{name}-1", name, "user", crush.words(words))
    crush.store(folder / ".crush", [crush.session(name)], [said])
    return {"path": str(folder), "data_dir": str(folder / ".crush")}


def test_a_project_registered_while_the_agent_runs_is_read_and_watched(home: Path, indexer: Indexer) -> None:
    first = project(home, "first", "albatross")
    crush.register(home, first)
    until(lambda: hits(indexer, "albatross") == ["first"])
    crush.register(home, first, project(home, "second", "pelican"))
    until(lambda: hits(indexer, "pelican") == ["second"])


def test_freshness_waits_for_a_project_registered_just_now(home: Path, indexer: Indexer) -> None:
    crush.register(home, project(home, "late", "cormorant"))
    assert indexer.reconcile(60)
    assert hits(indexer, "cormorant") == ["late"]


def test_a_project_taken_from_the_registry_keeps_answering(home: Path, indexer: Indexer) -> None:
    crush.register(home, project(home, "kept", "heron"))
    until(lambda: hits(indexer, "heron") == ["kept"])
    crush.register(home)
    assert indexer.reconcile(60)
    assert hits(indexer, "heron") == ["kept"]


def test_every_file_of_a_tree_changes_its_session(home: Path, indexer: Indexer) -> None:
    tree(home, {"session/p1/ses_1.json": TREE["session/p1/ses_1.json"]})
    assert indexer.reconcile(60)
    message = {"id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": T + 1}}
    tree(home, {"message/ses_1/msg_1.json": message})
    part = {"id": "prt_1", "messageID": "msg_1", "sessionID": "ses_1", "type": "text", "text": "albatross"}
    tree(home, {"part/msg_1/prt_1.json": part})
    until(lambda: hits(indexer, "albatross") == ["ses_1"])
    # A part grows in place: neither its folder nor the message shows that.
    tree(home, {"part/msg_1/prt_1.json": {**part, "text": "albatross and pelican"}})
    until(lambda: hits(indexer, "pelican") == ["ses_1"])


@pytest.mark.parametrize(
    "changed, session",
    [
        ("message/ses_1/msg_1.json", "session/p1/ses_1.json"),
        ("message/ses_1", "session/p1/ses_1.json"),
        ("part/msg_1/prt_1.json", "session/p1/ses_1.json"),
        ("part/msg_1/prt_gone.json", "session/p1/ses_1.json"),
        ("part/msg_1", "session/p1/ses_1.json"),
        ("part/ses_1/msg_9/prt_1.json", "session/p1/ses_1.json"),
        ("session/p1/ses_1.json", "session/p1/ses_1.json"),
        ("part/msg_of_nobody/prt_1.json", None),
        ("message/ses_of_nobody/msg_1.json", None),
        ("session_diff/ses_1.json", None),
        ("part", None),
    ],
)
def test_the_session_of_a_path_in_the_tree(home: Path, changed: str, session: "str | None") -> None:
    tree(home, TREE)
    (root,) = [root for root in agent_roots("opencode", home) if root.store.name == "files"]
    source = changed_by(root, f"{root.path}/{changed}")
    assert (None if source is None else source.path) == (None if session is None else f"{root.path}/{session}")
