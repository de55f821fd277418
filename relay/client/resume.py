"""The line that reopens a session on the host it ran on; the host itself builds the command, we only carry it here.

It is asked for with a command of its own, as the account's owner could type it, and never over the relay's methods.
"""

from __future__ import annotations

import json
import os.path
import shlex
from typing import Any, NamedTuple

from relay.client import launcher, ssh_config
from relay.client.command import run
from relay.client.faults import AgentMissing, ClientFault, ConnectionLost, ProtocolFault
from relay.client.host_ids import SSH
from relay.client.hosts_file import Host
from relay.client.protocol import is_missing
from relay.client.streams import Completed

#: Shells that take ``-lic``: with it, programs are found as they are in a terminal on that host.
_INTERACTIVE_SHELLS = ("bash", "zsh", "ksh", "mksh", "fish")
_NOT_FOUND, _OFF = 1, 3


class NoSuchSession(ClientFault):
    """The host has no such session, or one that cannot be reopened."""


class SearchOff(ClientFault):
    """Search is off on the host, or its index is not ready."""


class Resume(NamedTuple):
    """``command`` reopens the session on its host; ``line`` does so from here (the same for a runtime: inside it)."""

    command: str
    line: str


def ask(host: Host, agent: str | None, session_id: str, timeout: float, interactive: bool) -> Resume:
    """The command that ``host`` keeps for a session. ``timeout`` is in seconds. Raises ClientFault."""
    arguments = ["resume", "--json", *(["--agent", agent] if agent else []), "--", session_id]
    if host.id.kind == SSH:
        completed = _over_ssh(host, arguments, timeout, interactive)
    else:
        completed = _in_runtime(host, arguments, timeout)
    answer = _answer(host, completed)
    return Resume(answer["command"], _line(host, answer["command"], answer["shell"]))


def _over_ssh(host: Host, arguments: list[str], timeout: float, interactive: bool) -> Completed:
    from relay.client import ssh

    try:
        command = launcher.remote_command(*arguments)
    except ValueError as error:
        raise NoSuchSession(f"No session of {host.id.label} has such an id: {error}.") from error
    connection = ssh.connect(host.id.name, timeout=timeout, interactive=interactive, transport=host.transport)
    try:
        return connection.run(command, timeout=timeout)
    finally:
        connection.close()


def _in_runtime(host: Host, arguments: list[str], timeout: float) -> Completed:
    if not isinstance(host.command, tuple) or host.command[-1] != "serve":
        raise AgentMissing(
            f"The command of {host.id.label} does not end in `serve`, so it cannot be asked for anything else. "
            f"Run `relay resume` inside it."
        )
    return run((*host.command[:-1], *arguments), timeout)


def _answer(host: Host, completed: Completed) -> dict[str, Any]:
    """What the host's own ``relay resume --json`` said, found behind whatever a login shell printed before."""
    name, typed = host.id.label, shlex.quote(host.id.label)
    answer = next(filter(None, map(_read, reversed(completed.stdout.splitlines()))), None)
    if completed.code == 0 and answer:
        return answer
    if completed.code == _NOT_FOUND:
        raise NoSuchSession(f"{name} has no such session, or none that can be reopened from a command line.")
    if completed.code == _OFF:
        raise SearchOff(f"Search is off on {name}, or its index is not ready: see `relay status --host {typed}`.")
    if is_missing(completed.code, completed.stderr):
        raise AgentMissing(
            f"There is no agent on {name} that could say. Install it: `relay-installer install {typed}`."
        )
    if completed.code == 2:
        raise ProtocolFault(f"The agent on {name} is too old for this: `relay-installer upgrade {typed}`.")
    raise ConnectionLost(f"{name} gave no command (exit code {completed.code}). See `relay hosts test -v {typed}`.")


def _read(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not all(isinstance(value.get(part), str) for part in ("command", "shell")):
        return None
    return value


def _line(host: Host, command: str, shell: str) -> str:
    if host.id.kind != SSH:
        if not command.isprintable():
            raise ProtocolFault(f"{host.id.label} gave a command with control characters in it, which is not shown.")
        return command
    name = os.path.basename(shell)
    words = [name, "-lic", command] if name in _INTERACTIVE_SHELLS else ["/bin/sh", "-lc", command]
    if name == "fish" and "\\" in command:  # the command is written for sh, and fish reads a quoted backslash otherwise
        words = [name, "-lic", "exec /bin/sh -c $argv", command]
    try:
        remote = launcher.command_line(*words)
    except ValueError as error:
        raise ProtocolFault(f"{host.id.label} gave a command that cannot be written as a line: {error}.") from error
    return shlex.join(["ssh", "-t", *ssh_config.destination(host.id.name), f"exec {remote}"])
