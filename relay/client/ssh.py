"""A connection to a host over SSH: by paramiko, or by the system's ssh where the host's entry says so."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

from relay.client import (
    ssh_auth,
    ssh_config,
    ssh_faults,
    ssh_known_hosts,
    ssh_route,
    ssh_streams,
)
from relay.client.faults import (
    Busy,
    ConnectionLost,
    HostKeyChanged,
    HostKeyUnknown,
    SessionRefused,
    Unreachable,
)
from relay.client.ssh_config import Settings
from relay.client.ssh_known_hosts import CHANGED, KNOWN, ONLY_AUTHORITY, REVOKED
from relay.client.streams import Completed, Connection, Streams


def connect(
    target: str, *, timeout: float, interactive: bool, accept_new: bool = False, transport: str | None = None
) -> Connection:
    """Connect to ``target``: whatever ``ssh`` takes (an alias of ssh_config, ``user@box``), or ``user@box:port``.

    ``timeout`` is in seconds and covers everything but a person's answers. ``interactive`` allows questions, and only
    when there is a terminal. ``accept_new`` adds an unknown host key; a changed one is never accepted. ``transport`` is
    one of ``hosts_file.TRANSPORTS``; None means paramiko.
    Raises Unreachable, HostKeyUnknown, HostKeyChanged, AuthenticationFailed or TimedOut.
    """
    if target.startswith("-"):
        raise Unreachable(f"{target!r} reads as an option of ssh, not as a host.")
    interactive = interactive and has_terminal()
    if transport == "openssh":
        from relay.client import openssh

        return openssh.connect(target, timeout=timeout, interactive=interactive, accept_new=accept_new)
    # Its threads report to a logger, which without a handler prints tracebacks between our own lines.
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    opened: list[Any] = []
    try:
        deadline = ssh_route.ConnectDeadline(timeout)
        settings = ssh_config.read(target, deadline.left_for(target))
        _reach(settings, deadline, interactive, accept_new, opened)
    except BaseException:
        _close_all(opened)
        raise
    return ParamikoConnection(target, opened)


def has_terminal() -> bool:
    """Whether there is a person to ask: stdin or stderr is a terminal, and so is ``/dev/tty``."""
    if not any(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        return False
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


class ParamikoConnection:
    """See ``Connection``. ``opened`` holds the sockets and transports of the way, the host's own transport last."""

    def __init__(self, target: str, opened: list[Any]) -> None:
        self.target = target
        self._opened = opened

    def run(self, command: str, input: bytes | Iterable[bytes] = b"", timeout: float = 30.0) -> Completed:
        """See ``Connection``; raises SessionRefused too."""
        return ssh_streams.run(self._start(command), input, timeout, self.target)

    def open(self, command: str) -> Streams:
        """See ``Connection``; raises SessionRefused too."""
        return ssh_streams.ChannelStreams(self._start(command))

    def close(self) -> None:
        """See ``Connection``."""
        _close_all(self._opened)

    def _start(self, command: str) -> Any:
        import paramiko

        try:
            channel = self._open_session()
            channel.exec_command(command)
        except paramiko.ChannelException as error:
            raise SessionRefused(ssh_faults.refused(self.target)) from error
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise ConnectionLost(
                f"The connection to {self.target} is gone ({error or 'closed'}). Try again."
            ) from error
        return channel

    def _open_session(self) -> Any:
        """A new session; one that has just ended may count for the host's MaxSessions a moment longer."""
        import paramiko

        for wait in (0.05, 0.1, 0.2, 0.4):
            try:
                return self._opened[-1].open_session(timeout=30)
            except paramiko.ChannelException:
                time.sleep(wait)
        return self._opened[-1].open_session(timeout=30)


def _close_all(opened: list[Any]) -> None:
    """Break every socket at once and let paramiko's threads wind up behind us, a tenth of a second each."""
    waiting = list(reversed(opened))
    opened.clear()
    for thing in waiting:
        with contextlib.suppress(Exception):
            getattr(thing, "sock", thing).shutdown(socket.SHUT_RDWR)

    def wind_up() -> None:
        for thing in waiting:
            with contextlib.suppress(Exception):
                thing.close()

    if waiting:
        threading.Thread(target=wind_up, name="relay-ssh-close", daemon=True).start()


def _reach(
    settings: Settings,
    deadline: ssh_route.ConnectDeadline,
    interactive: bool,
    accept_new: bool,
    opened: list[Any],
    depth: int = 0,
) -> Any:
    """Reach and enter one host, its hops first; everything opened on the way is appended to ``opened``."""
    if depth > ssh_config.MOST_HOPS:
        raise ssh_config.circle(settings.target)
    way: Any
    if settings.proxy_command:
        way = ssh_route.ProxySocket(settings.proxy_command)
    elif settings.proxy_jump:
        # The first hop is reached as its own configuration says, every further one through the hop before it.
        hop = _reach(
            ssh_config.read(settings.proxy_jump[0], deadline.left_for(settings.target)),
            deadline,
            interactive,
            accept_new,
            opened,
            depth + 1,
        )
        for name in settings.proxy_jump[1:]:
            further = ssh_config.read(name, deadline.left_for(settings.target))
            hop = _enter(
                further, ssh_route.through(hop, further, deadline), deadline, interactive, accept_new, opened
            )
        way = ssh_route.through(hop, settings, deadline)
    else:
        way = ssh_route.straight(settings, deadline)
    return _enter(settings, way, deadline, interactive, accept_new, opened)


def _enter(
    settings: Settings,
    way: Any,
    deadline: ssh_route.ConnectDeadline,
    interactive: bool,
    accept_new: bool,
    opened: list[Any],
) -> Any:
    """Exchange keys over ``way``, check the host's, log in; gives the transport."""
    import paramiko

    opened.append(way)
    lines = ssh_known_hosts.matching(
        ssh_known_hosts.entries(settings.user_known_hosts + settings.global_known_hosts), settings.known_as
    )
    try:
        transport = paramiko.Transport(way)
        opened.append(transport)
        _prefer_known(transport, lines)
        left = deadline.left_for(settings.target)
        transport.banner_timeout = transport.handshake_timeout = left
        transport.start_client(timeout=left)
    except (paramiko.SSHException, EOFError, OSError) as error:
        deadline.left_for(settings.target)
        if isinstance(way, ssh_route.ProxySocket):
            raise Busy(way.fault(settings.target, str(error) or "closed")) from error
        raise Busy(
            f"{settings.hostname} port {settings.port} answers, but no SSH connection comes about:"
            f" {str(error) or 'closed'}. Is it an SSH server, and not too busy (MaxStartups)?"
        ) from error
    deadline.left_for(settings.target)
    key = transport.get_remote_server_key()
    _check_key(settings, lines, key.get_name(), key.asbytes(), accept_new)
    transport.auth_timeout = ssh_auth.PATIENCE if interactive else deadline.left_for(settings.target)
    ssh_auth.log_in(transport, settings, interactive)
    transport.set_keepalive(settings.alive_interval)
    return transport


def _prefer_known(transport: Any, lines: list[ssh_known_hosts.Entry]) -> None:
    """Ask first for the type of key we know, or the host might show another, which looks like a forged one."""
    options = transport.get_security_options()
    known = {line.key_type for line in lines}
    if "ssh-rsa" in known:
        known |= {"rsa-sha2-512", "rsa-sha2-256"}
    options.key_types = tuple(sorted(options.key_types, key=lambda name: name not in known))


def _check_key(
    settings: Settings, lines: list[ssh_known_hosts.Entry], kind: str, key: bytes, accept_new: bool
) -> None:
    verdict = ssh_known_hosts.judge(lines, key)
    name, print_ = settings.known_as, f"{kind} {ssh_known_hosts.fingerprint(key)}"
    if verdict == KNOWN:
        return
    if verdict == REVOKED:
        raise HostKeyChanged(ssh_faults.revoked(name, print_))
    if verdict == CHANGED:
        raise HostKeyChanged(
            ssh_faults.changed(name, print_, ", ".join(line.where for line in lines if not line.marker))
        )
    if verdict == ONLY_AUTHORITY:
        raise HostKeyUnknown(
            f"{name} is vouched for by a certificate authority in your known_hosts, which this SSH client cannot"
            " check "
            f'({print_}). Set `transport = "openssh"` for this host.'
        )
    if not accept_new and settings.unknown_keys != "add":
        raise HostKeyUnknown(ssh_faults.unknown(name, settings.target, print_))
    if settings.user_known_hosts:
        path = settings.user_known_hosts[0]
        try:
            ssh_known_hosts.remember(path, name, kind, key, settings.hash_known_hosts)
        except OSError as error:
            raise HostKeyUnknown(
                f"The key of {name} ({print_}) cannot be added to {path}: {error.strerror}."
            ) from error
