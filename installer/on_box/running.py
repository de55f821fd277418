"""Removes what an install left behind, but never a version that a running agent still loads modules from."""

from __future__ import annotations

import os
import shutil
import subprocess

from installer.on_box import layout


def sweep(root, keep):
    """Remove leftovers of killed installs, and versions other than ``keep`` that nobody runs."""
    versions = os.path.join(root, layout.VERSIONS)
    for name in _names(root):
        if layout.is_incoming(name):
            remove(os.path.join(root, name))
    stale = [name for name in _names(versions) if layout.is_version(name) and name not in keep]
    commands = _commands() if stale else b""
    for name in stale:
        path = os.path.join(versions, name)
        if commands is not None and os.fsencode(path) not in commands:
            remove(path)


def remove(path):
    """Remove a file or a tree, wherever it can be."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        try:
            os.unlink(path)
        except OSError:
            pass


def _names(folder):
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _commands():
    """The command lines of all processes; None when they cannot be seen, and every version may be in use."""
    found = []
    for pid in _names("/proc"):
        if pid.isdigit():
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as file:
                    found.append(file.read())
            except OSError:
                continue
    if found:
        return b"\n".join(found)
    try:
        return subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
