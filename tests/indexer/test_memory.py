"""Bounded memory whatever the input: measured in a process of its own, on files that are mostly holes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.indexer.conftest import REPOSITORY, Box

MIB = 1 << 20
LIMIT = 150 * MIB

# ru_maxrss of a child begins with what its parent held when it was started; VmHWM does not.
PEAK = """
import re, resource, sys
from relay.indexer.full_pass import run_full_pass
from relay.transcripts import rows
from relay.transcripts.registry import Env
from tests.support.plain_agent import PLAIN
rows.AGENTS = (PLAIN,)
run_full_pass(sys.argv[1], Env(sys.argv[2]), None, lambda now: None)
try:
    print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read()).group(1)) * 1024)
except OSError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak(box: Box) -> int:
    """The most memory (bytes) that a full pass in a fresh process takes."""
    command = [sys.executable, "-c", PEAK, box.state, str(box.home)]
    return int(subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, text=True).stdout)


def hole(path: Path, before: bytes, size: int, behind: bytes) -> None:
    """A file with ``size`` NUL bytes in it that take no room on the disk."""
    with open(path, "ab") as file:
        file.write(before)
        file.truncate(file.tell() + size)
    with open(path, "ab") as file:
        file.write(behind)


@pytest.mark.parametrize("size", [60, 200], ids=["within the limit", "beyond the limit"])
def test_a_huge_line_takes_bounded_memory(box: Box, size: int) -> None:
    """Invariant 5 of the design: a cap on one line."""
    path = box.say("a.jsonl", "before")
    hole(path, b'{"say": "', size * MIB, b'"}\n{"say": "behind"}\n')
    assert peak(box) < LIMIT
    assert box.texts()[0] == "before" and box.texts()[-1] == "behind"
    assert (box.failure(path) is None) is (size < 64)


def test_a_huge_file_takes_bounded_memory(box: Box) -> None:
    """Invariant 5 of the design: buffered rows are bounded; the file is read in slices."""
    path = box.say("a.jsonl", "before")
    line = b'{"say": "' + b"some words of a message " * 300 + b'"}\n'
    with open(path, "ab") as file:
        for _ in range(10):
            file.write(line * 150)  # 10 MB of text
    for n in range(10):
        hole(path, b"", 60 * MIB, f'\n{{"say": "behind hole {n}"}}\n'.encode())  # 600 MB that hold nothing
    assert path.stat().st_size > 600_000_000
    assert peak(box) < LIMIT
    assert box.texts()[-1] == "behind hole 9"


def test_one_huge_message_takes_bounded_memory(box: Box) -> None:
    box.write("a.jsonl", b'{"say": "' + "word \U0001f600 ".encode() * 5_000_000 + b'"}\n', {"say": "behind"})
    assert peak(box) < LIMIT
    assert box.texts()[-1] == "behind"
