"""A program that owns a database: as a script it executes the SQL it is given, line by line, and answers with rows."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator


class Writer:
    """The other end of this script's pipes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def __call__(self, sql: str) -> Any:
        """The rows of a statement; an error's text as ``{"error": …}``. It never waits for a lock."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(sql) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def kill(self) -> None:
        """End it without a chance to clean up."""
        self._process.kill()
        self._process.wait()


@contextmanager
def writer(path: Path) -> Iterator[Writer]:
    """A process with an open connection to the database at ``path``."""
    process = subprocess.Popen(
        [sys.executable, __file__, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Writer(process)
    finally:
        process.kill()
        process.communicate()


if __name__ == "__main__":
    connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
    for line in sys.stdin:
        try:
            answer: Any = connection.execute(json.loads(line)).fetchall()
        except sqlite3.Error as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)
