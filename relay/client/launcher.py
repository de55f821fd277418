"""Where the agent starts on every box, and the one-line commands that start it whatever the login shell is."""

from __future__ import annotations

import re

#: The folder below the account's home that holds everything the installer puts on a box.
FOLDER = ".local/share/session-relay"
#: The launcher, one path for every box. Login shells (sh, csh, fish and their kin) all expand the tilde.
LAUNCHER = f"~/{FOLDER}/relay"

_PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+:,./=-]*\Z")
#: csh gives ``!`` a meaning inside single quotes, fish the backslash; nushell joins no quoted pieces to a word.
_QUOTABLE = re.compile(r"[^'\\!]*\Z")
_AS_IT_IS = re.compile(rb"[A-Za-z0-9 _@+:,./=&|;-]")


def remote_command(*arguments: str) -> str:
    """The command line that runs the agent on a box, for the login shell there.

    The launcher is read by ``/bin/sh`` and not executed itself, so that a home mounted ``noexec`` serves as well.
    """
    return command_line("/bin/sh", *arguments, before=LAUNCHER)


def command_line(program: str, *arguments: str, before: str = "") -> str:
    """The line that runs ``program`` with ``arguments``, printable and read the same by every login shell.

    ``before`` is put between the two as it stands. Raises ValueError for a zero byte, which no argument can hold.
    """
    first = [program, before] if before else [program]
    if all(map(_one_word, arguments)):
        return " ".join([*first, *(word if _PLAIN.match(word) else f"'{word}'" for word in arguments)])
    # One quoted word with nothing in it that any of them reads in its own way; /bin/sh makes the arguments of it.
    return f"/bin/sh -c 'exec {' '.join([*first, *map(_spelled_out, arguments)])}'"


def _one_word(argument: str) -> bool:
    return argument.isprintable() and bool(_QUOTABLE.match(argument))


def _spelled_out(argument: str) -> str:
    """An argument in the words of ``/bin/sh``, without a single quote."""
    if _PLAIN.match(argument):
        return argument
    if "\0" in argument:
        raise ValueError("a zero byte cannot be passed to a command")
    letters = (bytes((byte,)) for byte in argument.encode("utf-8", "surrogateescape"))
    text = "".join(byte.decode() if _AS_IT_IS.match(byte) else f"\\0{byte[0]:03o}" for byte in letters)
    return f'"$(printf %b "{text}")"'
