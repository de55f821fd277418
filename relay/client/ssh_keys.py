"""The keys to offer a host, in ssh's order: agent keys the configuration names, other agent keys, key files."""

from __future__ import annotations

import base64
import binascii
import os
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from relay.client.ssh_config import Settings

#: Asks for a passphrase; None when there is nobody to ask.
Ask = Callable[[str], str]


class Candidate(NamedTuple):
    """A key to offer (``key`` is a paramiko PKey) and how to name it to a person."""

    label: str
    key: Any


def candidates(settings: Settings, ask: Ask | None, remarks: list[str]) -> Iterator[Candidate]:
    """The keys one by one; what could not be used is told in ``remarks``."""
    wanted = [public for public in map(public_key, settings.identity_files) if public]
    held = _agent_keys(settings.identity_agent, remarks)
    named = [key for key in held if key.blob in wanted]
    others = [] if settings.identities_only else [key for key in held if key.blob not in wanted]
    offered = set()
    for key in named + others:
        offered.add(key.blob)
        yield Candidate(f"{key.comment or 'a key'} (agent)", key)
    for path in settings.identity_files:
        if public_key(path) in offered:
            continue
        loaded = _load(path, settings, ask, remarks)
        if loaded is None:
            continue
        for certificate in (*settings.certificate_files, f"{path}-cert.pub"):
            if _certifies(loaded, certificate):
                yield Candidate(certificate, loaded)
                loaded.public_blob = None
        yield Candidate(path, loaded)


def _agent_keys(path: str | None, remarks: list[str]) -> list[Any]:
    if path is None:
        return []
    import paramiko
    from paramiko.agent import AgentSSH

    class SocketAgent(AgentSSH):  # paramiko's own Agent knows SSH_AUTH_SOCK alone
        def __init__(self, connection: socket.socket) -> None:
            super().__init__()
            self._connect(connection)

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(10)
    try:
        connection.connect(path)
        keys = SocketAgent(connection).get_keys()
        connection.settimeout(None)  # a signature may wait for a person (ssh-add -c)
        return list(keys)
    except (OSError, paramiko.SSHException):
        connection.close()
        remarks.append(f"no agent answers at {path}")
        return []


def _load(path: str, settings: Settings, ask: Ask | None, remarks: list[str]) -> Any:
    import paramiko

    if not os.path.isfile(path) or path.endswith(".pub"):
        return None
    kind = _kind(path)
    if kind.startswith("sk-"):
        remarks.append(f'{path} is a hardware key: use `transport = "openssh"` for this host')
        return None
    kinds = (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey)
    try:
        return _first(kinds, path, None)
    except paramiko.PasswordRequiredException:
        if ask is None:
            remarks.append(f"{path} has a passphrase: `ssh-add {path}` first")
            return None
    except (OSError, paramiko.SSHException, ValueError) as error:
        remarks.append(
            f"{path} cannot be read ({getattr(error, 'strerror', None) or 'not a key this program knows'})"
        )
        return None
    for _ in range(settings.prompts):
        answer = ask(f"Passphrase for {path}: ")
        if not answer:
            break
        try:
            return _first(kinds, path, answer)
        except (paramiko.SSHException, ValueError):
            continue
    remarks.append(f"{path} stayed locked")
    return None


def _first(kinds: tuple[Any, ...], path: str, password: str | None) -> Any:
    """The key by whichever class can read it; raises what the last one raised, or PasswordRequiredException at once."""
    import paramiko

    last: Exception = ValueError("no key")
    for kind in kinds:
        try:
            return kind.from_private_key_file(path, password)
        except paramiko.PasswordRequiredException:
            raise
        except (paramiko.SSHException, ValueError, IndexError, struct.error, UnicodeDecodeError) as error:
            last = error
    raise last if isinstance(last, (paramiko.SSHException, ValueError)) else ValueError("not a key")


def _certifies(key: Any, path: str) -> bool:
    """Whether ``path`` is a certificate of ``key``; then it is loaded into the key."""
    if not os.path.isfile(path):
        return False
    try:
        key.load_certificate(path)
        return True
    except Exception:  # noqa: BLE001 - a broken certificate makes paramiko's parsers raise almost anything
        key.public_blob = None
        return False


def public_key(path: str) -> bytes | None:
    """The public half of a key file without its passphrase: from ``.pub`` beside it or its own head, or None."""
    for candidate in (path, path + ".pub"):
        try:
            with open(candidate, "rb") as file:
                content = file.read(1 << 16)
        except OSError:
            continue
        fields = content.split()
        if len(fields) >= 2 and not content.startswith(b"-----"):
            try:
                return base64.b64decode(fields[1], validate=True)
            except (binascii.Error, ValueError):
                continue
        found = _from_openssh(content)
        if found:
            return found
    return None


def _kind(path: str) -> str:
    blob = public_key(path)
    return blob[4 : 4 + int.from_bytes(blob[:4], "big")].decode("ascii", "replace") if blob else ""


def _from_openssh(content: bytes) -> bytes | None:
    """The first public key in an ``openssh-key-v1`` file (PROTOCOL.key)."""
    head, tail = b"-----BEGIN OPENSSH PRIVATE KEY-----", b"-----END"
    if not content.startswith(head):
        return None
    try:
        data = base64.b64decode(b"".join(content[len(head) :].split(tail)[0].split()))
    except (binascii.Error, ValueError):
        return None
    magic = b"openssh-key-v1\0"
    if not data.startswith(magic):
        return None
    at = len(magic)

    def text() -> bytes:
        nonlocal at
        length = int.from_bytes(data[at : at + 4], "big")
        value = data[at + 4 : at + 4 + length]
        at += 4 + length
        return value

    for _ in ("cipher", "kdf", "kdf options"):
        text()
    at += 4  # the number of keys
    return text() or None
