"""A box for the installer's tests: a private sshd whose account has a Python in its PATH, reached as ``box``."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support import sshd

SYSTEM_PATH = "/usr/bin:/bin"
FOLDER = ".local/share/session-relay"


def python_folder(folder: Path, *names: str) -> Path:
    """A folder of commands, each of which is the Python that runs this test."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or ("python3",):
        script(folder / name, f'exec {sys.executable} "$@"')
    return folder


def script(path: Path, body: str) -> Path:
    """An executable sh script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@contextmanager
def box(folder: Path, monkeypatch: Any, **choices: Any) -> Iterator[sshd.Sshd]:
    """A running box; ``choices`` are those of ``Sshd``."""
    if "path" not in choices:
        choices["path"] = f"{python_folder(folder / 'bin')}:{SYSTEM_PATH}"
    with sshd.running(folder / "sshd", folder / "home", **choices) as server:
        monkeypatch.setenv("SESSION_RELAY_SSH_CONFIG", str(server.write_config()))
        yield server


def tree(home: Path) -> dict[str, str]:
    """Every path below a home with its kind and mode; what shells and Python keep for themselves is left out."""
    found = {}
    for parent, folders, files in os.walk(home):
        for name in folders + files:
            path = Path(parent, name)
            relative = str(path.relative_to(home))
            if not relative.startswith((".config/fish", ".local/share/fish", ".cache")):
                with suppress(FileNotFoundError):  # something is being removed at this moment
                    found[relative] = stat.filemode(path.lstat().st_mode)
    return found


def until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Wait for ``condition``; False when it does not come about."""
    import time

    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
