"""A connection by the system's ssh, for what paramiko cannot do: hardware keys, GSSAPI, a running ControlMaster."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence

from relay.client import openssh_said, ssh_config
from relay.client.command import CommandStreams, run
from relay.client.faults import TimedOut, Unreachable
from relay.client.streams import Completed, Streams

#: The exit code with which ssh says that it, and not the command, failed.
SSH_FAILED = 255
#: A master of ours that nobody ends (we were killed) leaves by itself after this many idle seconds.
_LINGER = 60

_starting: dict[str, subprocess.Popen[bytes]] = {}
_open: set[OpensshConnection] = set()


def connect(target: str, *, timeout: float, interactive: bool, accept_new: bool) -> OpensshConnection:
    """Connect to ``target`` by ``ssh``, which asks its own questions when ``interactive``; otherwise it asks none.

    Raises what ``ssh.connect`` raises.
    """
    program = ssh_config.ssh_program()
    if program is None:
        raise Unreachable(
            'There is no `ssh` program here. Install OpenSSH, or take `transport = "openssh"` away from this host.'
        )
    command = [program, *ssh_config.config_arguments(), "-T", "-o", f"ConnectTimeout={max(1, int(timeout))}"]
    command += ["-o", f"BatchMode={'no' if interactive else 'yes'}", "-o", "ForwardAgent=no", "-o", "ForwardX11=no"]
    command += ["-o", "ClearAllForwardings=yes", "-o", "ServerAliveInterval=15", "-o", "PermitLocalCommand=no"]
    command += ["-o", "RemoteCommand=none"]  # a person's `tmux attach` would stand in the way of ours
    settings = ssh_config.read(target, timeout)
    strict = settings.unknown_keys
    ssh_config.refuse_circle(settings, timeout)  # ssh itself would start one ssh after another, without end
    command += ["-o", f"StrictHostKeyChecking={'accept-new' if accept_new or strict == 'add' else 'yes'}"]
    where = ssh_config.destination(target)
    if _succeeds(
        [*command, "-O", "check", *where]
    ):  # the person's own master, which may be past a second factor already
        return OpensshConnection(target, [*command], where, None)
    # ssh's socket paths end at about 100 bytes, which $TMPDIR alone can fill.
    folder = tempfile.mkdtemp(prefix="relay-", dir="/tmp" if os.path.isdir("/tmp") else None)
    master = [*command, "-S", os.path.join(folder, "m")]
    try:
        _start_master(
            [*master, "-M", "-f", "-N", "-v", "-o", f"ControlPersist={_LINGER}", *where],
            target,
            folder,
            timeout,
            interactive,
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return OpensshConnection(target, [*master, "-o", "ControlMaster=no"], where, folder)


def _start_master(command: Sequence[str], target: str, folder: str, timeout: float, interactive: bool) -> None:
    """Log in and leave ssh in the background holding the connection; its words decide which fault it was."""
    said = os.path.join(folder, "said")
    with open(said, "w+b") as file:
        # In the background it would keep a pipe open for ever, a file does not mind. Without a terminal of its own
        # no helper of it (a jump host's ssh) can ask anything either.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=file,
            env=_environment(interactive),
            start_new_session=not interactive,
        )
        _starting[folder] = process
        try:
            code = process.wait(None if interactive else timeout)
        except subprocess.TimeoutExpired:
            _end_group(process)
            raise TimedOut(
                f"{target} did not answer in time. Check the network or the VPN, or allow more time."
            ) from None
        except BaseException:
            process.kill()
            raise
        finally:
            _starting.pop(folder, None)
        if code:
            file.seek(0)
            raise openssh_said.fault(target, file.read(1 << 20).decode("utf-8", "replace"))


def _environment(interactive: bool) -> dict[str, str]:
    variables = {**os.environ, "LC_ALL": "C"}
    if not interactive:
        variables["SSH_ASKPASS_REQUIRE"] = "never"
    return variables


def _succeeds(command: Sequence[str]) -> bool:
    try:
        return (
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False).returncode
            == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


class OpensshConnection:
    """See ``Connection``. ``folder`` holds the control socket of a master that is ours, None for a person's own."""

    def __init__(self, target: str, command: list[str], where: list[str], folder: str | None) -> None:
        self.target = target
        self._command, self._where, self._folder = command, where, folder
        if folder is not None:
            _open.add(self)

    def run(self, command: str, input: bytes | Iterable[bytes] = b"", timeout: float = 30.0) -> Completed:
        """See ``Connection``; raises SessionRefused too."""
        words = (*self._command, *self._where, "--", command)
        try:
            ended = run(words, timeout, input, _environment(False))
        except TimedOut:
            raise TimedOut(
                f"{self.target} did not finish within {timeout:g} s. Try again, or allow more time."
            ) from None
        if ended.code == SSH_FAILED and (
            fault := openssh_said.fault_of_command(self.target, ended.stderr.decode("utf-8", "replace"))
        ):
            raise fault
        return ended

    def open(self, command: str) -> Streams:
        """See ``Connection``."""
        return CommandStreams((*self._command, *self._where, "--", command))

    def close(self) -> None:
        """See ``Connection``."""
        folder, self._folder = self._folder, None
        _open.discard(self)
        if folder is None:
            return
        _succeeds([*self._command, "-O", "exit", *self._where])
        until = time.monotonic() + 1
        while os.path.exists(os.path.join(folder, "m")) and time.monotonic() < until:
            time.sleep(0.02)
        shutil.rmtree(folder, ignore_errors=True)


def _end_all() -> None:
    """At the end of our own process: no ssh of ours outlives it, wherever another thread stands."""
    for folder, process in list(_starting.items()):
        _end_group(process)
        shutil.rmtree(folder, ignore_errors=True)
    for connection in list(_open):
        connection.close()


atexit.register(_end_all)
