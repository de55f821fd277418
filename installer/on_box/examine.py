"""What ``relay-installer check`` asks of a box that has a Python; it writes one file and removes it again."""

from __future__ import annotations

import fcntl
import os
import tempfile

from installer.on_box import layout
from installer.on_box.talk import Desktop, refused_by_system

_NETWORK = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "fuse.sshfs",
    "afs",
    "ceph",
    "lustre",
    "glusterfs",
    "fuse.glusterfs",
    "9p",
    "gpfs",
    "beegfs",
)


def main(request):
    """Say what was found; the exit code is 0."""
    desktop = Desktop(request["mark"])
    os.umask(0o077)
    root = layout.folder()
    place = root
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    found = {
        "write": _write(place, request["needed"]) or _inodes(place, request["files"]),
        "folders": _folders(),
        "network": _network(place),
        "tmp": _write("/tmp", 1 << 16),
        "selinux": _read("/sys/fs/selinux/enforce") == "1",
        "watches": _number("/proc/sys/fs/inotify/max_user_watches"),
        "instances": _number("/proc/sys/fs/inotify/max_user_instances"),
        "in_the_way": layout.in_the_way(root),
        "installed": layout.installed(root),
        "damaged": None,
    }
    agent = found["installed"].get("agent")
    if agent:
        found["damaged"] = _damage(os.path.join(root, layout.VERSIONS, agent))
    desktop.say(done=found)
    return 0


def _write(folder, size):
    """None when ``size`` bytes can be written, and locked, in ``folder``; else what the system said."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            for _ in range(max(1, size >> 16)):
                file.write(bytes(1 << 16))
            file.flush()
            os.fsync(file.fileno())
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return {"kind": "no-locks", "path": folder}
    except OSError as error:
        refused = refused_by_system(error)
        return {"kind": refused.kind, "path": folder, "reason": refused.facts["reason"]}
    return None


def _inodes(folder, files):
    """None when ``files`` more files can be made in ``folder``, or that cannot be told; else as ``_write``."""
    system = os.statvfs(folder)
    if not system.f_files or system.f_favail >= files:  # btrfs and its kin count none
        return None
    return {"kind": "no-inodes", "path": folder, "free": system.f_favail, "needed": files}


def _folders():
    """Where the agent cannot keep its policy or its index: variable (XDG_…), folder, what the system said."""
    found = []
    for variable, default in zip(("XDG_CONFIG_HOME", "XDG_STATE_HOME"), layout.FOR_THE_AGENT):
        base = os.environ.get(variable, "")
        if not os.path.isabs(base):  # the XDG specification: a relative value is ignored
            base = os.path.join(os.path.expanduser("~"), *default.split("/"))
        folder = os.path.join(base, "session-relay")
        place = folder
        while not os.path.lexists(place):
            place = os.path.dirname(place)
        said = _write(place, 1 << 16) if os.path.isdir(place) else {"reason": "Not a directory"}
        if said:
            found.append({"variable": variable, "path": place, "reason": said.get("reason", "No locks")})
    return found


def _network(path):
    """The type of the network file system ``path`` lies on; None for a local one, or where that cannot be told."""
    best, kind = "", None
    for line in (_read("/proc/self/mounts") or "").splitlines():
        fields = line.split()
        if len(fields) > 2:
            point = fields[1].replace("\\040", " ")
            if (os.path.realpath(path) + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best):
                best, kind = point, fields[2]
    return kind if kind in _NETWORK else None


def _damage(tree):
    members = layout.members(tree)
    return layout.MANIFEST if members is None else layout.damaged(tree, members)


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None


def _number(path):
    text = _read(path) or ""
    return int(text) if text.isdigit() else None
