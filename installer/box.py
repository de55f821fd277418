"""Running our scripts on a box whatever its login shell is and however much its start-up files print."""

from __future__ import annotations

import importlib.resources
import json
import queue
import secrets
import shlex
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from installer import faults
from relay.client import ssh
from relay.client.command import CommandStreams, run
from relay.client.faults import ConnectionLost, TimedOut
from relay.client.hosts_file import Host
from relay.client.streams import Completed, Connection, Streams

#: Every login shell (sh, csh, fish and their kin) passes this on as it stands. The script follows as the first line of
#: stdin, its line breaks written ``\n``; ``read`` takes it byte by byte and leaves what follows for the script to read.
_RUN_FIRST_LINE = """/bin/sh -c 'IFS= read -r s; eval "$(printf %b "$s")"'"""
#: Start-up files may cut PATH short, or put strange programs first in it; LC_ALL keeps messages in English.
_PREAMBLE = (
    "LC_ALL=C PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/homebrew/bin\nexport LC_ALL"
    " PATH\n"
)
_RUN_MODULES = (
    "import json,sys,types\n"
    "r=json.loads(sys.stdin.buffer.readline())\n"
    "for n,t in r['modules']:\n"
    " m=types.ModuleType(n)\n"
    " sys.modules[n]=m\n"
    " p,d,c=n.rpartition('.')\n"
    " setattr(sys.modules.setdefault(p,types.ModuleType(p)),c,m)\n"
    " exec(compile(t,n,'exec'),m.__dict__)\n"
    "sys.exit(m.main(r))"
)
_LINE_LIMIT = 1 << 20
#: The longest time without progress of a box that works: compiling and trying the agent on a slow one, in seconds.
SILENCE = 180.0


def open_box(host: Host, *, timeout: float, interactive: bool, accept_new: bool = False) -> Connection:
    """A connection to ``host`` (``local`` too). Raises a ClientFault."""
    if host.id.kind == "local":
        return LocalConnection()
    return ssh.connect(
        host.id.name, timeout=timeout, interactive=interactive, accept_new=accept_new, transport=host.transport
    )


class LocalConnection:
    """This machine as if it were a box. See ``Connection``."""

    def run(self, command: str, input: bytes | Iterable[bytes] = b"", timeout: float = 30.0) -> Completed:
        """See ``Connection``."""
        try:
            return run(command, timeout, input)
        except TimedOut:
            raise TimedOut(f"This machine did not finish within {timeout:g} s. Try again.") from None

    def open(self, command: str) -> Streams:
        """See ``Connection``."""
        return CommandStreams(command)

    def close(self) -> None:
        """Nothing is held."""


def text_of(name: str) -> str:
    """A script of ``installer/on_box``."""
    return importlib.resources.files("installer.on_box").joinpath(name).read_text(encoding="utf-8")


def _first_line(script: str) -> bytes:
    return (_PREAMBLE + script).replace("\\", "\\\\").replace("\n", "\\n").encode() + b"\n"


def run_script(connection: Connection, target: str, script: str, timeout: float) -> tuple[list[str], int]:
    """Run a POSIX sh script; gives the lines it printed, and how many bytes others printed before it.

    Raises NoShell when the account does not run what it is sent, or a ClientFault.
    """
    mark = secrets.token_hex(8)
    script = f"printf '\\n%s\\n' {mark}-begin\n{script}\nprintf '%s\\n' {mark}-end\n"
    ended = connection.run(_RUN_FIRST_LINE, _first_line(script), timeout)
    before, begun, rest = ended.stdout.partition(f"\n{mark}-begin\n".encode())
    body, finished, _ = rest.partition(f"{mark}-end\n".encode())
    if not begun:
        raise faults.NoShell(_no_shell(target, ended.stdout, ended.stderr))
    if not finished:
        raise ConnectionLost(f"{target} stopped in the middle of a script (exit code {ended.code}). Try again.")
    return body.decode("utf-8", "replace").splitlines(), len(before)


def _no_shell(target: str, out: bytes, err: bytes) -> str:
    said = (out.strip() or err.strip()).decode("utf-8", "replace").splitlines()
    printable = "".join(letter for letter in said[-1] if letter.isprintable())[:200] if said else ""
    answer = f" It answered: {printable!r}." if said else ""
    return (
        f"{target} lets you in but does not run the commands it is sent: a forced command, a restricted shell, or"
        f" start-up files that end the shell.{answer} Use a key without command= in authorized_keys, or an account"
        " with an ordinary shell."
    )


class Conversation:
    """A program of ``installer.on_box`` that runs on the box and talks with us in lines.

    Lines of others are dropped as they come, however many there are.
    """

    def __init__(
        self, connection: Connection, target: str, python: str, modules: Iterable[str], request: Mapping[str, Any]
    ) -> None:
        self.target, self._mark = target, secrets.token_hex(8)
        texts = [(f"installer.on_box.{name}", text_of(f"{name}.py")) for name in modules]
        line = json.dumps({**request, "mark": self._mark, "modules": texts}).encode() + b"\n"
        self._stalled = False
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._streams = connection.open(_RUN_FIRST_LINE)
        threading.Thread(target=self._read, name="relay-install-read", daemon=True).start()
        self.send(_first_line(f"exec {shlex.quote(python)} -I -c {shlex.quote(_RUN_MODULES)}") + line)

    def send(self, data: bytes) -> None:
        """Send bytes; a far side that is gone, or takes nothing for SILENCE, shows at the next ``receive``."""
        alarm = threading.Timer(SILENCE, self._give_up)
        alarm.daemon = True
        alarm.start()
        try:
            self._streams.writer.write(data)
            self._streams.writer.flush()
        except OSError:
            pass
        finally:
            alarm.cancel()

    def receive(self, timeout: float) -> dict[str, Any]:
        """The program's next line. Raises TimedOut, or StoppedHalfway when it has ended."""
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            raise self._silent("said", timeout) from None
        if line is None and self._stalled:
            raise self._silent("took", SILENCE)
        if line is None:
            raise faults.StoppedHalfway(self._ending())
        return dict(json.loads(line))

    def close(self) -> None:
        """End the program; it puts back what it has not finished."""
        self._streams.close()

    def _give_up(self) -> None:
        self._stalled = True
        self._streams.close()

    def _silent(self, did: str, seconds: float) -> TimedOut:
        return TimedOut(
            f"{self.target} {did} nothing for {seconds:g} s. Try again; what it has begun, it puts back. See what holds"
            " it up: a full or slow disk, or its login shell."
        )

    def _ending(self) -> str:
        self._streams.exit_code(2)
        said = self._streams.stderr_tail().decode("utf-8", "replace").strip().splitlines()
        last = "".join(letter for letter in said[-1] if letter.isprintable())[:300] if said else ""
        return (
            f"{self.target} stopped before it was done{': ' + last if last else ''}. What was there before goes on"
            " serving; try again."
        )

    def _read(self) -> None:
        rest, prefix = b"", self._mark.encode() + b" "
        try:
            while data := self._streams.reader.read1(1 << 15):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    if line.startswith(prefix):
                        self._lines.put(line[len(prefix) :])
                if len(rest) > _LINE_LIMIT:
                    break
        except (OSError, ValueError):
            pass
        self._lines.put(None)
