"""A private sshd on a loopback port, for an account whose home, login shell and habits the caller chooses."""

from __future__ import annotations

import contextlib
import getpass
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/local/sbin")
AVAILABLE = SSHD is not None and shutil.which("ssh") is not None and shutil.which("ssh-keygen") is not None


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "", comment: str = "test") -> Path:
    """A new private key at ``path`` with its public half beside it."""
    size = ["-b", "2048"] if kind == "rsa" else []
    subprocess.run(
        ["ssh-keygen", "-q", "-t", kind, *size, "-N", passphrase, "-C", comment, "-f", str(path)], check=True
    )
    return path


def free_port() -> int:
    """A loopback port nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def own_namespaces() -> bool:
    """Whether a server of ours can have mounts and process ids of its own, which end with it (root, and allowed to)."""
    if os.getuid() != 0 or shutil.which("unshare") is None:
        return False
    return (
        subprocess.run(
            ["unshare", "-m", "-p", "-f", "--mount-proc", "true"], capture_output=True, check=False
        ).returncode
        == 0
    )


class Sshd:
    """A running server. ``folder`` holds its keys and files; ``home`` is what the account takes for its home.

    ``shell`` runs every command (``shell -c command``), with ``path`` as PATH when given and ``variables`` on top.
    ``forced_command`` is a script that runs instead of whatever is asked for. ``options`` are lines of sshd_config.
    ``mounts`` are commands of sh that run in the server's own mount namespace before it starts (root only).
    """

    def __init__(
        self,
        folder: Path,
        home: Path,
        *,
        shell: str = "/bin/sh",
        forced_command: str | None = None,
        path: str | None = None,
        variables: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        mounts: Sequence[str] = (),
        host_keys: Sequence[str] = ("ed25519",),
    ) -> None:
        assert SSHD is not None
        self.folder, self.home, self.user = folder, home, getpass.getuser()
        folder.mkdir(parents=True, exist_ok=True)
        home.mkdir(parents=True, exist_ok=True)
        self.key = folder / "client_key"
        if not self.key.exists():
            make_key(self.key)
        self.authorized_keys = folder / "authorized_keys"
        shutil.copy(f"{self.key}.pub", self.authorized_keys)
        self.known_hosts = folder / "known_hosts"
        self.host_keys = [folder / f"host_{kind}" for kind in host_keys]
        for key, kind in zip(self.host_keys, host_keys):
            if not key.exists():
                make_key(key, kind)
        self._write_account(shell, forced_command, path, variables or {})
        (folder / "empty").mkdir(exist_ok=True)
        for _ in range(5):
            self.port = free_port()
            self._start(options, mounts)
            try:
                if self._answers():
                    break
            except BaseException:  # whoever interrupts us has no server to stop yet
                self.stop()
                raise
            self.stop()
        else:
            raise RuntimeError("sshd does not start: " + self.log())
        self.trust()

    def _write_account(
        self, shell: str, forced_command: str | None, path: str | None, variables: Mapping[str, str]
    ) -> None:
        """The forced command that stands between the real account and the one we pretend: its home is never touched."""
        # bash reads .bashrc for a command over SSH only when it is the outermost shell.
        lines = ["#!/bin/sh", "unset SHLVL", f"export HOME={shlex.quote(str(self.home))}", 'cd "$HOME"']
        lines += [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
        lines += [f"export SHELL={shlex.quote(shell)}"]
        if path is not None:
            lines += [f"export PATH={shlex.quote(path)}"]
        if forced_command is not None:
            lines += [forced_command]
        else:
            lines += [f'exec {shlex.quote(shell)} -c "$SSH_ORIGINAL_COMMAND"']
        account = self.folder / "account"
        account.write_text("\n".join(lines) + "\n")
        account.chmod(0o755)

    def _start(self, options: Sequence[str], mounts: Sequence[str]) -> None:
        lines = [
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            f"AuthorizedKeysFile {self.authorized_keys}",
            "StrictModes no",
            "PidFile none",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin yes",
            f"SetEnv HOME={self.folder / 'empty'}",
            f"ForceCommand {self.folder / 'account'}",
            "LogLevel VERBOSE",
        ]
        lines = [*options, *(f"HostKey {key}" for key in self.host_keys), *lines]  # the first of a keyword counts
        config = self.folder / "sshd_config"
        config.write_text("\n".join(lines) + "\n")
        command = [str(SSHD), "-D", "-e", "-f", str(config)]
        if own_namespaces():
            before = ["mount -t tmpfs tmpfs /run", "mkdir -m 755 /run/sshd", *mounts, f"exec {shlex.join(command)}"]
            command = [
                "unshare",
                "-m",
                "-p",
                "-f",
                "--mount-proc",
                "--kill-child",
                "/bin/sh",
                "-ec",
                "\n".join(before),
            ]
        elif mounts:
            raise RuntimeError("mounts need root")
        elif os.getuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # sshd insists on it as root
        with open(self.folder / "sshd.log", "ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def _answers(self) -> bool:
        until = time.monotonic() + 15
        while time.monotonic() < until and self._process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                if connection.recv(4).startswith(b"SSH"):
                    return True
            time.sleep(0.02)
        return False

    def log(self) -> str:
        """What the server has logged so far."""
        return (self.folder / "sshd.log").read_text(errors="replace")

    def trust(self, name: str | None = None) -> None:
        """Write the server's keys into ``known_hosts`` (under ``name`` when given)."""
        name = name or f"[127.0.0.1]:{self.port}"
        keys = [Path(f"{key}.pub").read_text().split()[:2] for key in self.host_keys]
        self.known_hosts.write_text("".join(f"{name} {kind} {key}\n" for kind, key in keys))

    def config(self, alias: str = "box", *more: str) -> str:
        """The part of an ssh_config that reaches this server; lines of ``more`` come first, and the first counts."""
        lines = [
            f"Host {alias}",
            *more,
            "HostName 127.0.0.1",
            f"Port {self.port}",
            f"User {self.user}",
            f"IdentityFile {self.key}",
            "IdentitiesOnly yes",
            "IdentityAgent none",
            f"UserKnownHostsFile {self.known_hosts}",
            "GlobalKnownHostsFile /dev/null",
        ]
        return "\n    ".join(lines) + "\n"

    def write_config(self, *more: str) -> Path:
        """An ssh_config with the host ``box``; gives its path, for ``ssh -F`` and SESSION_RELAY_SSH_CONFIG."""
        path = self.folder / "ssh_config"
        path.write_text(self.config("box", *more))
        return path

    def cut(self) -> None:
        """Break every standing connection, and go on listening; what ran over one is left to notice."""
        for pid in _descendants(self._listener()):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().startswith("sshd"):
                    os.kill(pid, signal.SIGKILL)

    def _listener(self) -> int:
        """The process that listens: behind ``unshare`` it is the child."""
        children = _children(self._process.pid)
        own = Path(f"/proc/{self._process.pid}/comm")
        return (
            children[0] if children and own.exists() and own.read_text().strip() == "unshare" else self._process.pid
        )

    def stop(self) -> None:
        """End the server and everything that runs in its sessions."""
        frozen: set[int] = set()
        while found := {self._process.pid, *_descendants(self._process.pid)} - frozen:
            for pid in found:  # what is frozen starts nothing more
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGSTOP)
            frozen |= found
        for pid in frozen:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()


def _children(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
    pairs = [line.split() for line in listed.splitlines()]
    return [int(pair[0]) for pair in pairs if len(pair) == 2 and pair[1] == str(pid)]


def _descendants(pid: int) -> list[int]:
    found = []
    for child in _children(pid):
        found += [*_descendants(child), child]
    return found


@contextlib.contextmanager
def running(folder: Path, home: Path, **choices: object) -> Iterator[Sshd]:
    """A server for the length of a block; ``choices`` are those of ``Sshd``."""
    server = Sshd(folder, home, **choices)  # type: ignore[arg-type]
    try:
        yield server
    finally:
        server.stop()
