"""The hosts a command line names, and what is known of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from relay import paths
from relay.client import hosts_file
from relay.client.faults import UnknownHost
from relay.client.host_ids import LOCAL, RUNTIME, SSH, HostId, parse
from relay.client.hosts_file import Host


def host(text: str, transport: str | None = None) -> Host:
    """The host that ``ssh:box``, ``box`` or ``local`` names, as hosts.json has it, with ``transport`` when given.

    Raises UnknownHost or HostsFileBroken.
    """
    kind = text.partition(":")[0]
    host_id = parse(text) if text == LOCAL or kind in (SSH, RUNTIME) else parse(f"{SSH}:{text}")
    if host_id.kind == RUNTIME:
        raise UnknownHost(
            f"{text} is a command, not a place to install to. Install inside it with `relay-installer install local`,"
            " or put the file of `relay-installer bundle` there and let the command run it."
        )
    known = next((known for known in hosts_file.load(paths.config_folder()) if known.id == host_id), Host(host_id))
    return replace(known, transport=transport) if transport else known


def hosts(names: Sequence[str], every: bool) -> list[Host]:
    """The named hosts, or with ``every`` all SSH hosts of hosts.json. Raises UnknownHost or HostsFileBroken."""
    if every:
        return [known for known in hosts_file.load(paths.config_folder()) if known.id.kind == SSH]
    return list({found.id: found for found in map(host, names)}.values())


def remember(added: Host) -> bool:
    """Write an SSH host into hosts.json; False when it stood there just so. Raises HostsFileBroken or OSError."""
    return added.id.kind == SSH and hosts_file.add(paths.config_folder(), added)


def forget(host_id: HostId) -> bool:
    """Take an SSH host out of hosts.json; False when it was not there. Raises HostsFileBroken or OSError."""
    if host_id.kind != SSH or not os.path.exists(os.path.join(paths.config_folder(), hosts_file.FILE_NAME)):
        return False
    return hosts_file.remove(paths.config_folder(), host_id)


def target(of: Host) -> str:
    """What messages call the host: what a person types after ``ssh``."""
    return of.id.name or LOCAL
