"""What the indexer says on stderr, which may leave the host."""

from __future__ import annotations

from pathlib import Path

from tests.indexer.conftest import Box, ask, until


def test_no_path_of_the_host_is_said(box: Box, tmp_path: Path) -> None:
    """Invariant 9 of the design: nothing that leaves the host over stdio reveals a host path."""
    Path(box.state).parent.mkdir(parents=True)
    Path(box.state).write_text("a file where the folder should be")
    process = box.process()
    until(lambda: ask(process, "status")["phase"] == "degraded")
    Path(box.state).unlink()
    box.say("a.jsonl", "one")
    until(lambda: ask(process, "status")["phase"] == "current")
    Path(box.path).write_text("no database")
    box.write("bad.jsonl", "no json\n")
    until(lambda: ask(process, "status")["filesFailed"] == 1)
    until(lambda: ask(process, "status")["phase"] == "current")
    _, errors = process.communicate(timeout=20)
    assert errors.startswith("relay: The state folder cannot be written")
    assert str(tmp_path) not in errors and "Traceback" not in errors
