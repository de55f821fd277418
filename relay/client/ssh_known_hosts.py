"""known_hosts as OpenSSH keeps it (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"): plain, hashed and marked lines."""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hashlib
import hmac
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

#: What a key is to us.
KNOWN, CHANGED, REVOKED, UNKNOWN, ONLY_AUTHORITY = "known", "changed", "revoked", "unknown", "only-authority"


class Entry(NamedTuple):
    """One line: its marker (``@revoked``, ``@cert-authority`` or empty), names, key type, key, and where it is."""

    marker: str
    names: str
    key_type: str
    key: bytes
    where: str


def entries(files: Iterable[str]) -> list[Entry]:
    """Every understandable line of ``files``; missing files and other lines are passed over, as ssh does."""
    found = []
    for path in files:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = file.readlines()
        except OSError:
            continue
        for number, line in enumerate(lines, 1):
            fields = line.split()
            marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
            if len(fields) < 3 or fields[0].startswith("#"):
                continue
            try:
                key = base64.b64decode(fields[2], validate=True)
            except (binascii.Error, ValueError):
                continue
            found.append(Entry(marker, fields[0], fields[1], key, f"{path}:{number}"))
    return found


def matching(all_entries: Iterable[Entry], name: str) -> list[Entry]:
    """The lines that speak of ``name`` (``box`` or ``[box]:port``)."""
    return [entry for entry in all_entries if _speaks_of(entry.names, name.lower())]


def _speaks_of(names: str, name: str) -> bool:
    if names.startswith("|1|"):
        try:
            _, _, salt, digest = names.split("|")
            return hmac.compare_digest(_hashed(base64.b64decode(salt), name), base64.b64decode(digest))
        except (binascii.Error, ValueError):
            return False
    found = False
    for pattern in names.lower().split(","):
        # ``[`` is literal in an OpenSSH pattern; only ``*`` and ``?`` are not.
        if fnmatch.fnmatchcase(name, pattern.lstrip("!").replace("[", "[[]")):
            if pattern.startswith("!"):
                return False
            found = True
    return found


def _hashed(salt: bytes, name: str) -> bytes:
    return hmac.new(salt, name.encode(), hashlib.sha1).digest()


def judge(lines: Sequence[Entry], key: bytes) -> str:
    """What ``key`` is, given the lines that speak of its host."""
    if any(line.marker == "@revoked" and line.key == key for line in lines):
        return REVOKED
    plain = [line for line in lines if not line.marker]
    if any(line.key == key for line in plain):
        return KNOWN
    if plain:  # another type of key for a known host too: whoever answers cannot show the one we know
        return CHANGED
    return ONLY_AUTHORITY if any(line.marker == "@cert-authority" for line in lines) else UNKNOWN


def fingerprint(key: bytes) -> str:
    """``SHA256:…`` as ssh and ssh-keygen print it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")


def remember(path: str, name: str, key_type: str, key: bytes, hashed: bool) -> None:
    """Append the key of ``name`` to a known_hosts file, made with its folder (0700) when missing. Raises OSError."""
    if hashed:
        salt = os.urandom(20)
        name = "|1|" + "|".join(base64.b64encode(part).decode() for part in (salt, _hashed(salt, name.lower())))
    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
    line = f"{name} {key_type} {base64.b64encode(key).decode()}\n".encode()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                line = b"\n" + line
        file.seek(0, os.SEEK_END)
        file.write(line)
