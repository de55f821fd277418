"""Runs a script of ours in the project's own environment, which is made first where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[1]
ENVIRONMENT = SCRIPTS.parent / ".venv"
PYTHON = str(ENVIRONMENT / "bin" / "python")


def enter() -> None:
    """Go on in the project's Python, with ``scripts/lib`` and the project importable; called before other imports."""
    if os.path.realpath(sys.prefix) != os.path.realpath(ENVIRONMENT):
        subprocess.run([str(SCRIPTS / "install")], check=True)
        os.execv(PYTHON, [PYTHON, *sys.argv])
    sys.path[:0] = [str(SCRIPTS / "lib"), str(SCRIPTS.parent)]
