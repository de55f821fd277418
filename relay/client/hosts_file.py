"""The hosts a person has named: ``hosts.json`` in the configuration folder."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from relay import paths
from relay.client.faults import HostsFileBroken, UnknownHost
from relay.client.host_ids import RUNTIME, SSH, HostId, parse

FILE_NAME = "hosts.json"
#: How an SSH host is reached: our own SSH client, or the system's ``ssh`` program.
TRANSPORTS = ("paramiko", "openssh")
_VERSION = 1
_SECTIONS = {SSH: "ssh", RUNTIME: "runtimes"}
_LARGEST = 4 << 20


@dataclass(frozen=True)
class Host:
    """A configured host.

    ``command`` (runtimes only) starts the agent: an argument list that is run as it is, or one line for ``/bin/sh``.
    ``transport`` (SSH only) is one of TRANSPORTS, None for the default. ``extra`` keeps fields a newer version wrote.
    """

    id: HostId
    command: tuple[str, ...] | str | None = None
    transport: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False)


def load(config_folder: str) -> list[Host]:
    """Every configured host, SSH hosts first, each kind in the order of the file; no file means no host.

    Raises HostsFileBroken.
    """
    return _hosts(_read(config_folder), config_folder)


def find(config_folder: str, text: str) -> Host:
    """The configured host that ``text`` names. Raises UnknownHost or HostsFileBroken."""
    host_id = parse(text)
    for host in load(config_folder):
        if host.id == host_id:
            return host
    name = shlex.quote(host_id.label)
    remedy = {
        SSH: f"Add it with `relay hosts add {name}` or `relay-installer install {name}`.",
        RUNTIME: f"Add it with `relay hosts add {name} -- COMMAND`.",
    }.get(host_id.kind, "This machine is always there: leave --host out.")
    raise UnknownHost(f"{host_id.label} is no configured host. {remedy}")


def add(config_folder: str, host: Host) -> bool:
    """Write ``host`` into the file; what the same id had and ``host`` leaves open stays. False when nothing changed.

    Raises HostsFileBroken when the file that is there cannot be understood, or is of another version, which is read
    but never rewritten; OSError when it cannot be written.
    """
    with _editing(config_folder) as document:
        section = document.setdefault(_SECTIONS[host.id.kind], {})
        entry: dict[str, Any] = {}
        if host.command:
            entry["command"] = host.command if isinstance(host.command, str) else list(host.command)
        if host.transport:
            entry["transport"] = host.transport
        before = section.get(host.id.name)
        section[host.id.name] = {**(before or {}), **host.extra, **entry}
        return before != section[host.id.name]


def remove(config_folder: str, host_id: HostId) -> bool:
    """Take a host out of the file; False when it was not there. Raises like ``add``."""
    with _editing(config_folder) as document:
        return document.get(_SECTIONS[host_id.kind], {}).pop(host_id.name, None) is not None


@contextlib.contextmanager
def _editing(config_folder: str) -> Iterator[dict[str, Any]]:
    """The file's content, written back when the block changed it; several programs may edit at once."""
    os.makedirs(config_folder, mode=0o700, exist_ok=True)
    lock = os.open(os.path.join(config_folder, FILE_NAME + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        document = _read(config_folder)
        _hosts(document, config_folder)  # what we do not understand we do not rewrite
        before = json.dumps(document)
        yield document
        document.setdefault("version", _VERSION)
        if json.dumps(document) != before:
            if document["version"] != _VERSION:
                raise HostsFileBroken(
                    f"{_shown(config_folder)} is of version {json.dumps(document['version'])[:20]}, which this program"
                    f" reads but does not rewrite (it writes {_VERSION}). Upgrade Session Relay on this machine, or"
                    " make the change in the file by hand."
                )
            paths.replace_config_file(config_folder, FILE_NAME, document)
    finally:
        os.close(lock)


def _read(config_folder: str) -> dict[str, Any]:
    path = os.path.join(config_folder, FILE_NAME)
    try:
        # A pipe in the file's place would keep us waiting; opened so, it is seen for what it is.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _broken(config_folder, "is not a regular file")
            content = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _broken(config_folder, f"cannot be read ({error.strerror})") from error
    if len(content) > _LARGEST:
        raise _broken(config_folder, "is larger than 4 MiB")
    try:
        document = json.loads(content)
    except json.JSONDecodeError as error:
        raise _broken(config_folder, f"is not JSON (line {error.lineno}: {error.msg})") from error
    except (ValueError, RecursionError) as error:
        raise _broken(config_folder, "is not JSON") from error
    if not isinstance(document, dict):
        raise _broken(config_folder, "is not a JSON object")
    return document


def _hosts(document: Mapping[str, Any], config_folder: str) -> list[Host]:
    found: list[Host] = []
    for kind, section in _SECTIONS.items():
        entries = document.get(section, {})
        if not isinstance(entries, dict):
            raise _broken(config_folder, f'has a "{section}" that is not an object')
        found.extend(_host(kind, name, entry, config_folder) for name, entry in entries.items())
    return found


def _host(kind: str, name: str, entry: Any, config_folder: str) -> Host:
    host_id = HostId(kind, name)
    where = f'"{_SECTIONS[kind]}", {name!r}'
    try:
        sound = parse(str(host_id)) == host_id
    except UnknownHost:
        sound = False
    if not sound:
        raise _broken(config_folder, f"names a host that cannot be one ({where})")
    if not isinstance(entry, dict):
        raise _broken(config_folder, f"has an entry that is not an object ({where})")
    extra = {key: value for key, value in entry.items() if key not in ("command", "transport")}
    command, transport = entry.get("command"), entry.get("transport")
    if kind == RUNTIME:
        return Host(host_id, command=_command(command, where, config_folder), extra=extra)
    if transport not in (None, *TRANSPORTS):
        raise _broken(config_folder, f"has a transport other than {' and '.join(TRANSPORTS)} ({where})")
    return Host(host_id, transport=transport, extra=extra)


def _command(value: Any, where: str, config_folder: str) -> tuple[str, ...] | str:
    if isinstance(value, str) and value.strip() and "\0" not in value:
        return value
    if isinstance(value, list) and all(isinstance(part, str) and "\0" not in part for part in value) and any(value[:1]):
        return tuple(value)
    raise _broken(config_folder, f"needs a command: a line, or a list of arguments ({where})")


def _broken(config_folder: str, what: str) -> HostsFileBroken:
    return HostsFileBroken(f"{_shown(config_folder)} {what}. Correct it, or move it away and add the hosts anew.")


def _shown(config_folder: str) -> str:
    path = os.path.join(config_folder, FILE_NAME)
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path.startswith(home + os.sep) else path
