"""Consent as a file: what is read back, what is not believed, and how it is written."""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relay import policy
from relay.policy import Policy


def test_without_a_file_nothing_may_be_read(tmp_path: Path) -> None:
    assert policy.read(str(tmp_path / "absent")) == Policy(enabled=False)
    assert policy.signature(str(tmp_path / "absent")) is None


@pytest.mark.parametrize(
    "written",
    [
        Policy(enabled=True),
        Policy(enabled=False, epoch="e"),
        Policy(True, 30, {"claude": ("/srv/a", "/srv/b"), "codex": ("/é",)}, "epoch", 12.5),
    ],
)
def test_what_is_written_is_read_back(tmp_path: Path, written: Policy) -> None:
    policy.write(str(tmp_path), written)
    assert policy.read(str(tmp_path)) == written


def test_the_file_is_private_and_alone(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "session-relay"
    policy.write(str(folder), Policy(enabled=True))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [(path.name, stat.S_IMODE(path.stat().st_mode)) for path in folder.iterdir()] == [("policy.json", 0o600)]


def test_a_folder_that_others_may_read_is_closed(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o755)
    policy.write(str(tmp_path), Policy())
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"true",
        b'{"enabled": 1}',
        b'{"enabled": "true"}',
        b'{"historyDays": 3}',
        b'{"enabled": true, "historyDays": 0}',
        b'{"enabled": true, "historyDays": true}',
        b'{"enabled": true, "historyDays": "30"}',
        b'{"enabled": true, "roots": []}',
        b'{"enabled": true, "roots": {"claude": "/srv"}}',
        b'{"enabled": true, "roots": {"claude": ["relative"]}}',
        b'{"enabled": true, "epoch": 3}',
        b'{"enabled": true, "clearingUntil": "now"}',
        b"[" * 100_000,
    ],
)
def test_a_broken_file_is_no_consent_and_is_said_without_a_path(tmp_path: Path, content: bytes, capfd: Any) -> None:
    (tmp_path / "policy.json").write_bytes(content)
    assert policy.read(str(tmp_path)) == Policy(enabled=False)
    said = capfd.readouterr().err
    assert "search is off" in said and str(tmp_path) not in said


def test_a_file_that_cannot_be_read_is_no_consent(tmp_path: Path, capfd: Any) -> None:
    (tmp_path / "policy.json").mkdir()
    assert policy.read(str(tmp_path)) == Policy(enabled=False)
    assert "search is off" in capfd.readouterr().err


def test_unknown_fields_of_a_later_version_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "policy.json").write_text(json.dumps({"enabled": True, "colour": "green"}))
    assert policy.read(str(tmp_path)) == Policy(enabled=True)


def test_every_write_changes_the_signature(tmp_path: Path) -> None:
    seen = set()
    for days in range(1, 6):
        policy.write(str(tmp_path), Policy(True, days))
        seen.add(policy.signature(str(tmp_path)))
    assert len(seen) == 5


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    policy.write(str(tmp_path), Policy(True, 1))
    done = threading.Event()

    def write() -> None:
        for number in range(200):
            policy.write(str(tmp_path), Policy(True, 1 + number % 2, {"claude": ("/x" * (number % 50 + 1),)}))
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        assert policy.read(str(tmp_path)).enabled
    writer.join()


def test_a_failed_write_leaves_the_old_policy(tmp_path: Path) -> None:
    policy.write(str(tmp_path), Policy(True, 5))
    with pytest.raises(TypeError):
        policy.write(str(tmp_path), replace(Policy(True, 6), epoch=object()))  # type: ignore[arg-type]
    assert policy.read(str(tmp_path)) == Policy(True, 5)
    assert [path.name for path in tmp_path.iterdir()] == ["policy.json"]


def test_a_clear_holds_for_a_bounded_time() -> None:
    assert Policy(clearing_until=time.time() + 10).clearing
    assert not Policy(clearing_until=time.time() - 1).clearing
    assert not Policy(clearing_until=time.time() + 86400).clearing
    assert not Policy().clearing
