"""Deletions are believed only when they are proven; what cannot be looked at stays."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Iterator

import pytest

from relay.indexer import roots
from tests.indexer.conftest import Box, root_only, until


@pytest.fixture
def mounted(box: Box) -> Iterator[Path]:
    """The line store's root as a file system of its own."""
    shutil.rmtree(box.lines)
    box.lines.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(box.lines)], check=True)
    yield box.lines
    subprocess.run(["umount", str(box.lines)], check=False, stderr=subprocess.DEVNULL)


def test_a_removed_root_is_proven_when_its_file_system_is_there(box: Box) -> None:
    """Invariant 7 of the design: only a proven deletion removes rows."""
    box.say("a.jsonl", "one")
    box.index()
    shutil.rmtree(box.lines)
    box.index()
    assert box.texts() == []


@root_only()
def test_an_unmounted_root_is_degraded_and_its_rows_stay(box: Box, mounted: Path) -> None:
    """Invariant 7 of the design: an unmounted root is degraded, its rows stay."""
    box.say("a.jsonl", "one")
    indexer = box.current()
    assert box.texts() == ["one"]
    subprocess.run(["umount", str(mounted)], check=True)
    until(lambda: indexer.status()["phase"] == "degraded", indexer.status)
    status = indexer.status()
    assert status["degradedRoots"] == [{"root": str(mounted), "reason": "The file system it was on is not mounted."}]
    assert box.texts() == ["one"]
    indexer.close()
    box.index()
    assert box.texts() == ["one"]


@root_only()
def test_a_remounted_root_recovers_by_itself(box: Box, mounted: Path, tmp_path: Path) -> None:
    box.say("a.jsonl", "one")
    indexer = box.current()
    aside = tmp_path / "aside"
    aside.mkdir()
    subprocess.run(["mount", "--move", str(mounted), str(aside)], check=False, stderr=subprocess.DEVNULL)
    if os.path.exists(mounted / "a.jsonl"):  # mounts of a shared tree cannot be moved: bind and unmount instead
        subprocess.run(["mount", "--bind", str(mounted), str(aside)], check=True)
        subprocess.run(["umount", str(mounted)], check=True)
    try:
        until(lambda: indexer.status()["phase"] == "degraded", indexer.status)
        subprocess.run(["mount", "--bind", str(aside), str(mounted)], check=True)
        until(lambda: indexer.status()["phase"] == "current", indexer.status)
        box.say("a.jsonl", "two")
        until(lambda: box.texts() == ["one", "two"], box.texts)
    finally:
        indexer.close()
        subprocess.run(["umount", str(mounted)], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["umount", str(aside)], check=False, stderr=subprocess.DEVNULL)


def test_a_root_that_links_nowhere_is_degraded(box: Box, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.rmtree(box.lines)
    elsewhere.mkdir()
    box.lines.symlink_to(elsewhere)
    box.say("a.jsonl", "one")
    box.index()
    elsewhere.rename(tmp_path / "gone")
    box.index()
    assert box.texts() == ["one"]


def test_a_missing_agent_is_nothing_to_complain_of(box: Box) -> None:
    shutil.rmtree(box.lines)
    assert box.current().status()["degradedRoots"] == []


def test_a_folder_that_cannot_be_read_keeps_everything(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    box.say("p/a.jsonl", "one")
    box.say("q/b.jsonl", "two")
    box.index()
    real = os.scandir

    def scandir(path: str) -> object:  # root may read everything: the error is the kernel's, the cause is ours
        if str(path).endswith("/p"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scandir)
        (box.lines / "q" / "b.jsonl").unlink()
        box.index()
        assert box.texts() == ["one", "two"]
    box.index()
    assert box.texts() == ["one"]


def test_a_mount_has_a_name_of_its_own() -> None:
    assert roots.mount_of("/") == roots.mount_of("/definitely/not/there")
    assert roots.mount_of("/proc") != roots.mount_of("/")
    assert roots.file_system("/proc") == "local"


def test_a_folder_a_person_no_longer_names_is_forgotten(box: Box, tmp_path: Path) -> None:
    from relay.indexer.full_pass import run_full_pass
    from relay.transcripts.registry import Env

    other = tmp_path / "other"
    (other / "lines").mkdir(parents=True)
    (other / "lines" / "o.jsonl").write_text('{"say": "elsewhere"}\n')
    box.say("a.jsonl", "one")
    named = Env(str(box.home), extra_homes={"claude": (str(other),)})
    run_full_pass(box.state, named, None, lambda now: None)
    assert box.texts() == ["one", "elsewhere"]
    box.index()
    assert box.texts() == ["one"]
