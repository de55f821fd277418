"""What lies where on a box, and the launcher: one file that says which version runs and how."""

from __future__ import annotations

import hashlib
import json
import os
import re

#: Below the account's home; the desktop's half of this is relay.client.launcher.
FOLDER = ".local/share/session-relay"
LAUNCHER = "relay"
VERSIONS = "versions"
INCOMING = "incoming-"
MANIFEST = "manifest.json"
#: The digests of what was compiled on the box, which no manifest can know.
COMPILED = "compiled.json"
#: What is ours below our folder, beside the launcher; whatever else lies there is somebody else's and stays.
#: uninstall.sh has the same as globs.
_VERSION = re.compile(r"[^/]+-[0-9a-f]{12}(\.[0-9]+)?\Z")
_INCOMING = re.compile(INCOMING + r"[0-9a-f]{16}\Z")
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


def is_version(name):
    """Whether an entry of ``versions/`` is one of ours."""
    return bool(_VERSION.match(name))


def is_incoming(name):
    """Whether an entry of our folder is what an install is receiving, or left behind."""
    return bool(_INCOMING.match(name))


def in_the_way(root):
    """What stands where ours should and cannot be ours; None when nothing does."""
    path = root
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    if not os.path.isdir(path):
        return path
    versions, launcher = os.path.join(root, VERSIONS), os.path.join(root, LAUNCHER)
    if os.path.lexists(versions) and not os.path.isdir(versions):
        return versions
    return launcher if os.path.isdir(launcher) else None


def members(tree):
    """Names and digests as the manifest in ``tree`` has them; None when it cannot be read."""
    return _files(tree, MANIFEST)


def damaged(tree, members):
    """The first file of ``tree`` that is not as ``members`` (name to SHA-256) or the list of what was compiled says."""
    compiled = _files(tree, COMPILED)
    if compiled is None:
        return COMPILED
    for name, expected in list(members.items()) + list(compiled.items()):
        if digest(os.path.join(tree, *name.split("/"))) != expected:
            return name
    return None


def digest(path):
    """SHA-256 of a file, in hex; None when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None


def _files(tree, name):
    try:
        with open(os.path.join(tree, name), encoding="utf-8") as file:
            return dict(json.load(file)["files"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
