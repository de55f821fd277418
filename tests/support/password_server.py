"""An SSH server that wants passwords, answers or keys, one after the other; a command is answered by its own text."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from pathlib import Path

import paramiko


class _Account(paramiko.ServerInterface):
    def __init__(self, methods: Sequence[str], password: str) -> None:
        self.methods, self.password = methods, password
        self.passed: list[str] = []
        self.command = b""
        self.started = threading.Event()

    def get_allowed_auths(self, username: str) -> str:
        return ",".join(self.methods[len(self.passed) : len(self.passed) + 1])

    def _judge(self, method: str, right: bool) -> int:
        if not right:
            return paramiko.AUTH_FAILED
        if method not in self.passed:  # a key is asked about before it is used
            self.passed.append(method)
        return (
            paramiko.AUTH_SUCCESSFUL if len(self.passed) == len(self.methods) else paramiko.AUTH_PARTIALLY_SUCCESSFUL
        )

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return self._judge("publickey", "publickey" in self.methods)

    def check_auth_password(self, username: str, password: str) -> int:
        return self._judge("password", password == self.password and "password" in self.methods)

    def check_auth_interactive(self, username: str, submethods: str) -> int | paramiko.InteractiveQuery:
        if "keyboard-interactive" not in self.methods:
            return paramiko.AUTH_FAILED
        return paramiko.InteractiveQuery("", "", ("Token: ", False), ("Colour: ", True))

    def check_auth_interactive_response(self, responses: Sequence[str]) -> int:
        return self._judge("keyboard-interactive", list(responses) == [self.password, "green"])

    def check_channel_request(self, kind: str, channel_id: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self.command = command
        self.started.set()
        return True


class PasswordServer:
    """Listens on ``port`` of the loopback address; ``methods`` must all be passed, in their order."""

    def __init__(self, folder: Path, methods: Sequence[str], password: str = "open sesame") -> None:
        self._key = paramiko.ECDSAKey.generate()
        self._methods, self._password = methods, password
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.known_hosts = folder / "known_hosts"
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {self._key.get_name()} {self._key.get_base64()}\n")
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        transport = paramiko.Transport(connection)
        transport.add_server_key(self._key)
        account = _Account(self._methods, self._password)
        try:
            transport.start_server(server=account)
        except (EOFError, paramiko.SSHException):  # a client that left early
            return
        channel = transport.accept(30)
        if channel is not None and account.started.wait(30):
            channel.sendall(account.command)
            channel.send_exit_status(0)
            channel.close()

    def stop(self) -> None:
        """Close the port; connections that stand end with their clients."""
        self._listener.close()
