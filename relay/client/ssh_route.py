"""The way to a host's SSH port: straight, through a ProxyCommand, or through a chain of ProxyJump hops."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
from typing import Any

from relay.client.command import STDERR_KEPT
from relay.client.deadline import Deadline
from relay.client.faults import TimedOut, Unreachable
from relay.client.ssh_config import Settings

_PIECE = 1 << 16


class ConnectDeadline(Deadline):
    """The moment by which a connection must stand; every step on the way shares it."""

    def left_for(self, target: str) -> float:
        """Seconds that remain. Raises TimedOut when none do."""
        left = self.left()
        if left <= 0:
            raise TimedOut(f"{target} did not answer in time. Check the network or the VPN, or allow more time.")
        return left


def straight(settings: Settings, deadline: ConnectDeadline) -> socket.socket:
    """A TCP connection to whichever address of the host answers first in turn. Raises Unreachable or TimedOut."""
    family = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}.get(settings.address_family, socket.AF_UNSPEC)
    where = f"{settings.hostname} port {settings.port}"
    try:
        addresses = socket.getaddrinfo(settings.hostname, settings.port, family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unreachable(
            f"The name {settings.hostname} cannot be resolved ({getattr(error, 'strerror', None) or error}). "
            "Check the spelling, your ssh configuration, and the network or VPN."
        ) from error
    why = "no address"
    for kind, kind_of_socket, protocol, _, address in addresses:
        wait = min(deadline.left_for(settings.target), settings.connect_timeout or float("inf"))
        connection = socket.socket(kind, kind_of_socket, protocol)
        try:
            connection.settimeout(wait)
            if settings.bind_address:
                connection.bind((settings.bind_address, 0))
            connection.connect(address)
        except OSError as error:
            connection.close()
            why = error.strerror or "timed out"
            continue
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # unanswered keepalives then end the connection (ServerAliveCountMax)
            patience = settings.alive_interval * settings.alive_count * 1000
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience)
        connection.settimeout(None)
        return connection
    deadline.left_for(settings.target)
    raise Unreachable(f"No connection to {where}: {why}. Is the host up, and does sshd listen there?")


class ProxySocket:
    """A ProxyCommand's stdio as the socket paramiko wants; closing it ends the command and all it started."""

    def __init__(self, command: str) -> None:
        self._socket, far = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {command}"],
                stdin=far.fileno(),
                stdout=far.fileno(),
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            self._socket.close()
            raise Unreachable(
                f"The ProxyCommand cannot be started: {error.strerror}. Correct it in your ssh configuration."
            ) from error
        finally:
            far.close()
        self._said = b""
        threading.Thread(target=self._listen, name="relay-proxy-stderr", daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as pipe, contextlib.suppress(OSError, ValueError):
            while data := pipe.read1(_PIECE):  # type: ignore[attr-defined]
                self._said = (self._said + data)[-STDERR_KEPT:]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def fault(self, target: str, why: str) -> str:
        """The sentence for a command that led to no SSH server: how it ended, and its last words."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)
        code = self._process.poll()
        how = f"ended (exit code {code})" if code is not None else f"leads to no SSH server ({why})"
        lines = self._said.decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        said = f": {''.join(filter(str.isprintable, last))[:200]}" if last else ""
        return f"The ProxyCommand for {target} {how}{said}. Try it as it stands in `ssh -G {target}`."

    def close(self) -> None:
        """End the command; never raises."""
        self._socket.close()
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.3)
            return
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def through(hop: Any, settings: Settings, deadline: ConnectDeadline) -> Any:
    """A channel from ``hop`` (a logged-in paramiko Transport) to the host. Raises Unreachable."""
    import paramiko

    try:
        return hop.open_channel(
            "direct-tcpip",
            (settings.hostname, settings.port),
            ("127.0.0.1", 0),
            timeout=deadline.left_for(settings.target),
        )
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise Unreachable(
            f"The jump host reaches no {settings.hostname} port {settings.port}: {error}. "
            "Is the host up, and may the jump host forward (AllowTcpForwarding)?"
        ) from error
