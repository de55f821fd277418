"""A short run of scripts/crash-test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_index_is_whole_after_random_kills() -> None:
    """Invariant 2 of the design: after any kill the index has exactly the rows of a clean rebuild."""
    script = Path(__file__).resolve().parents[2] / "scripts" / "crash-test"
    command = [sys.executable, str(script), "--kills", "6", "--seconds", "20", "--check-every", "6", "--seed", "3"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout
