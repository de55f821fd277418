"""The examples of docs/protocol.md work as printed."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any, List, Tuple

from tests.support.serving import claude_session, run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocol.md"

#: What is another number on another day.
VARYING = re.compile(r'("(?:score|durationMs|generation)":)[0-9.]+')


def examples() -> List[List[Tuple[str, str]]]:
    """The console blocks of the page, each a list of commands with what they print."""
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE) for block in blocks]


def test_the_examples_work_as_printed(home: Path, tmp_path: Path, monkeypatch: Any) -> None:
    relay = tmp_path / "relay"
    relay.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m relay "$@"\n')
    relay.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    without_consent, with_consent, consent = examples()
    for command, printed in [*without_consent, *consent]:
        assert printed_by(command) == printed
    claude_session(home, "5e0c1a52", "the reattach race")
    run("enable")
    run("index")
    for command, printed in with_consent:
        assert steady(printed_by(command)) == steady(printed)


def printed_by(command: str) -> str:
    return subprocess.run(["sh", "-c", command], capture_output=True, timeout=60, check=True).stdout.decode()


def steady(text: str) -> Any:
    text = VARYING.sub(r"\g<1>0", text)
    try:
        return json.loads(text)
    except ValueError:
        return text
