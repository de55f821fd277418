"""What lies where on a box, and the launcher: one file that says which version runs and how."""

from __future__ import annotations

import hashlib
import os

#: Below the account's home; the desktop's half of this is relay.client.launcher.
FOLDER = ".local/share/session-relay"
LAUNCHER = "relay"
VERSIONS = "versions"
INCOMING = "incoming-"
#: Where the agent itself makes its folders, below the home.
FOR_THE_AGENT = (".config", ".local/state")

#: ``previous`` is the version that served before, kept until the next one replaces it.
_LAUNCHER = """#!/bin/sh
# The launcher of session-relay, written by relay-installer. Removed by `relay-installer uninstall`.
# agent: {agent}
# digest: {digest}
# python: {python}
# previous: {previous}
# made: {made}
folder={folder}
python={quoted_python}
if [ ! -x "$python" ]; then
    check='import sqlite3, sys; sys.exit(sys.version_info < (3, 9))'
    for name in python3 python3.13 python3.12 python3.11 python3.10 python3.9 /usr/bin/python3 /usr/local/bin/python3
    do
        found=$(command -v "$name") && "$found" -I -c "$check" 2>/dev/null && python=$found && break
    done
fi
if [ ! -x "$python" ]; then
    echo "session-relay: $python is gone. Run \\`relay-installer install\\` for this host again." >&2
    exit 69
fi
exec "$python" -I "$folder/{agent}" "$@"
"""


def folder():
    """The absolute path of our folder."""
    return os.path.join(os.path.expanduser("~"), *FOLDER.split("/"))


def quoted(text):
    """``text`` as one word of sh."""
    return "'" + text.replace("'", "'\\''") + "'"


def launcher_text(root, agent, digest, python, previous, made):
    """The launcher for the version in ``versions/<agent>``; ``made`` are folders that exist because of us."""
    return _LAUNCHER.format(
        agent=VERSIONS + "/" + agent,
        digest=digest,
        python=python,
        previous=previous or "none",
        made=" ".join(made) or "none",
        folder=quoted(root),
        quoted_python=quoted(python),
    )


def installed(root):
    """What the launcher says of itself: agent, digest, python, previous, made; an empty dict when there is none."""
    found = {}
    try:
        with open(os.path.join(root, LAUNCHER), encoding="utf-8", errors="replace") as file:
            for line in file:
                name, colon, value = line[2:].rstrip("\n").partition(": ")
                if line.startswith("# ") and colon and name in ("agent", "digest", "python", "previous", "made"):
                    found[name] = "" if value == "none" else value.replace(VERSIONS + "/", "", 1)
    except OSError:
        pass
    return found


def damaged(tree, members):
    """The first member of ``tree`` that is not as the manifest says, None when all are. Raises OSError."""
    for name, digest in members.items():
        with open(os.path.join(tree, *name.split("/")), "rb") as file:
            if hashlib.sha256(file.read()).hexdigest() != digest:
                return name
    return None
