"""Both transports go through the same tests."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import sshd

collect_ignore_glob = [] if sshd.AVAILABLE else ["test_*"]


@pytest.fixture(params=["paramiko", "openssh"])
def transport(request: pytest.FixtureRequest) -> str:
    """The way to reach a host, as hosts.json names it."""
    return str(request.param)


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short path, for sockets."""
    folder = tempfile.mkdtemp(prefix="rt-", dir="/tmp")
    yield Path(folder)
    shutil.rmtree(folder)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sshd.Sshd]:
    """A running sshd that is known and lets us in, under the name ``box``."""
    with sshd.running(tmp_path / "sshd", tmp_path / "account") as running:
        monkeypatch.setenv("SESSION_RELAY_SSH_CONFIG", str(running.write_config()))
        yield running
