"""Where the agent starts on every box, and the one-line commands that start it whatever the login shell is."""

from __future__ import annotations

import re

#: The folder below the account's home that holds everything the installer puts on a box.
FOLDER = ".local/share/session-relay"
#: The launcher, one path for every box. Login shells (sh, csh, fish and their kin) all expand the tilde.
LAUNCHER = f"~/{FOLDER}/relay"

_PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+:,./=-]*\Z")
#: No login shell gives these a meaning inside single quotes, but for csh and ``!``, fish and ``\\``.
_QUOTABLE = re.compile(r"[^'\\!\x00-\x1f\x7f]*\Z")


def remote_command(*arguments: str) -> str:
    """The command line that runs the agent on a box, for the login shell there.

    The launcher is read by ``/bin/sh`` and not executed itself, so that a home mounted ``noexec`` serves as well.
    Raises ValueError for an argument that cannot be written the same way for every login shell.
    """
    return " ".join(["/bin/sh", LAUNCHER, *map(quoted, arguments)])


def quoted(argument: str) -> str:
    """One argument as every login shell reads it back. Raises ValueError when there is no such writing."""
    if _PLAIN.match(argument):
        return argument
    if not _QUOTABLE.match(argument):
        raise ValueError(
            "a quote, a backslash, an exclamation mark or a line break cannot be passed to every login shell"
        )
    return f"'{argument}'"
