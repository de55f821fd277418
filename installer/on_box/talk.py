"""The far end's half of the installer's conversation: JSON lines with a mark out, bytes and ``go`` lines in."""

from __future__ import annotations

import errno
import json
import os
import sys
from typing import Any

_FAULTS = {
    errno.ENOSPC: "no-space",
    errno.EDQUOT: "quota",
    errno.EROFS: "read-only",
    errno.EACCES: "not-writable",
    errno.EPERM: "not-writable",
    errno.EEXIST: "in-the-way",
    errno.ENOTDIR: "in-the-way",
    errno.EISDIR: "in-the-way",
}


class Abandoned(Exception):
    """The desktop went away, or says stop: put everything back and end."""


class Refused(Exception):
    """Something on the box stands in the way; ``kind`` names the fault, ``facts`` are what its message needs."""

    def __init__(self, kind, **facts):
        super().__init__(kind)
        self.kind, self.facts = kind, facts


def refused_by_system(error):
    """The Refused for an OSError."""
    path = error.filename2 or error.filename or ""
    return Refused(_FAULTS.get(error.errno, "io-error"), path=path, reason=error.strerror or str(error))


class Desktop:
    """The desktop at the other end of stdin and stdout. ``mark`` begins every line, which tells it from noise."""

    def __init__(self, mark):
        self._mark = mark
        self._input: Any = sys.stdin.buffer

    def say(self, **fields):
        """Send one line; a desktop that is gone shows at the next ``step``.

        It begins with a line break, for what a start-up file printed may have ended without one.
        """
        try:
            os.write(1, ("\n" + self._mark + " " + json.dumps(fields) + "\n").encode())
        except OSError:
            pass

    def step(self, name):
        """Tell that ``name`` is done and wait to be told to go on. Raises Abandoned."""
        self.say(step=name)
        if self._input.readline() != b"go\n":
            raise Abandoned(name)

    def read(self, size):
        """At most ``size`` bytes of what the desktop sends. Raises Abandoned at the end of its stream."""
        data = self._input.read1(size)
        if not data:
            raise Abandoned("upload")
        return data
