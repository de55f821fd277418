"""A box to install on, and the way there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relay.client import ssh
from relay.client.streams import Connection
from tests.support import boxes, sshd

collect_ignore_glob = [] if sshd.AVAILABLE else ["test_*"]


@pytest.fixture(params=["paramiko", "openssh"])
def transport(request: pytest.FixtureRequest) -> str:
    """The way to reach a host, as hosts.json names it."""
    return str(request.param)


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sshd.Sshd]:
    """A running box with an empty home and a Python in its PATH."""
    with boxes.box(tmp_path, monkeypatch) as server:
        yield server


@pytest.fixture
def connect() -> Iterator[Callable[..., Connection]]:
    """Connects to ``box``; what was connected is closed at the end."""
    opened: list[Connection] = []

    def connect(transport: str = "paramiko") -> Connection:
        opened.append(ssh.connect("box", timeout=20, interactive=False, transport=transport))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()
