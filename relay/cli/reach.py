"""From the text of ``--host`` to what can be asked, and from what went wrong there to an exit code."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from relay import paths
from relay.cli.options import NO_ANSWER, USAGE
from relay.diagnostics import describe

if TYPE_CHECKING:
    from relay.client.fanout import Askable
    from relay.client.faults import ClientFault


class HostFault(click.ClickException):
    """A host could not be asked; shown as one sentence, with its exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@contextlib.contextmanager
def faults(codes: Mapping[type[ClientFault], int] | None = None) -> Iterator[None]:
    """Turns a client's fault inside the block into one for the person at the terminal.

    ``codes`` are the exit codes of kinds of faults that do not mean that the host gave no answer.
    """
    from relay.client.faults import ClientFault, HostsFileBroken, UnknownHost

    try:
        yield
    except ClientFault as fault:
        known: dict[type[ClientFault], int] = {UnknownHost: USAGE, HostsFileBroken: USAGE, **(codes or {})}
        code = next((code for kind, code in known.items() if isinstance(fault, kind)), NO_ANSWER)
        raise HostFault(str(fault), code) from fault


@contextlib.contextmanager
def own_faults() -> Iterator[None]:
    """Turns whatever goes wrong in our own index inside the block into a sentence for the person at the terminal."""
    try:
        yield
    except Exception as error:
        message = f"This machine's index could not answer ({describe(error)}). Try again; see `relay status`."
        raise HostFault(message, NO_ANSWER) from error


def need_client() -> None:
    """Refuse what only the desktop's installation can do; the agent on a box does not have the client."""
    if importlib.util.find_spec("relay.client") is None:
        raise HostFault("The agent on a box answers for itself only. Ask other hosts from the desktop.", USAGE)


def one(text: str) -> Askable:
    """The configured host that ``text`` names. Raises HostFault."""
    need_client()
    from relay.client import hosts_file
    from relay.client.remote import RemoteHost

    with faults():
        return RemoteHost(hosts_file.find(paths.config_folder(), text), interactive=True)


def everyone() -> list[Askable]:
    """This machine, then every configured host; none of them asks for a password. Raises HostFault."""
    need_client()
    from relay.cli.local import LocalHost
    from relay.client import hosts_file
    from relay.client.remote import RemoteHost

    with faults():
        return [LocalHost(), *(RemoteHost(host) for host in hosts_file.load(paths.config_folder()))]
