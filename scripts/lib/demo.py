"""Plays the main job: sets up a private box on loopback, installs the agent over SSH, indexes, searches, cleans up."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List, Optional, Sequence

import demo_sessions

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))

from relay.transcripts.registry import Env, agents, roots, walk  # noqa: E402
from tests.support import sshd  # noqa: E402

BIN = Path(sys.executable).parent
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def real_homes() -> List[Path]:
    """The agents' own folders on this machine in which there is at least one transcript."""
    env = Env(os.path.expanduser("~"), dict(os.environ), sys.platform)
    found = {Path(root.home) for root in roots(env) if next(walk(root), None) is not None}
    return sorted(found)


def lend(homes: Sequence[Path], box: Path) -> None:
    """Makes real transcripts visible in the box's home, by links: nothing is copied, nothing is ever written there."""
    below = Path(os.path.expanduser("~"))
    for home in homes:
        if below in home.parents and not (box / home.relative_to(below)).exists():
            link = box / home.relative_to(below)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(home, target_is_directory=True)


class Stage:
    """The desk (where commands are typed) and the box (where the agent runs), both in one temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.desk, self.box = folder / "desk", folder / "box"
        self.desk.mkdir()
        self.box.mkdir()
        self.server: Optional[sshd.Sshd] = None
        self.running: Optional[subprocess.Popen[bytes]] = None
        kept = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "NO_COLOR", "COLUMNS")
        self.variables: Dict[str, str] = {name: os.environ[name] for name in kept if name in os.environ}
        self.variables["HOME"] = str(self.desk)

    def open(self, folder: Path) -> str:
        """Starts the box's sshd where there is one; returns the host id to ask."""
        if sshd.AVAILABLE:
            self.server = sshd.Sshd(folder / "sshd", self.box)
            self.variables["SESSION_RELAY_SSH_CONFIG"] = str(self.server.write_config())
            return "ssh:box"
        return "runtime:box"

    def run(self, *words: str, shown: Optional[str] = None) -> None:
        """Shows a command as a person would type it and runs it; a command that fails ends the demo."""
        print(f"\n$ {shown or shlex.join(words)}", flush=True)
        self._follow([str(BIN / words[0]), *words[1:]], self.variables)

    def _follow(self, command: Sequence[str], variables: Optional[Dict[str, str]] = None) -> None:
        self.running = subprocess.Popen(command, env=variables)
        code = self.running.wait()
        self.running = None
        if code not in (0, 1):  # 1: nothing was found, which is an answer
            raise SystemExit(f"The command ended with {code}.")

    def on_box(self, *words: str) -> None:
        """Runs the agent's own command on the box, over SSH when there is a server."""
        if self.server is not None:
            from relay.client.launcher import remote_command

            command = ["ssh", "-q", "-F", self.variables["SESSION_RELAY_SSH_CONFIG"]]
            command += ["-t"] if sys.stderr.isatty() else []
            print(f"\n$ ssh box relay {shlex.join(words)}", flush=True)
            self._follow([*command, "box", remote_command(*words)])
        else:
            print(f"\nbox$ relay {shlex.join(words)}", flush=True)
            variables = {**self.variables, "HOME": str(self.box)}
            self._follow([str(BIN / "relay"), *words], variables)

    def close(self) -> None:
        """Ends the command that runs, and the box with all that runs on it."""
        if self.running is not None:
            self.running.terminate()
            self.running.wait()
        if self.server is not None:
            self.server.stop()


def play(query: Optional[str], folder: Path) -> None:
    """The whole demo, with everything it makes below ``folder``."""
    stage = Stage(folder)
    try:
        homes = real_homes()
        if homes:
            lend(homes, stage.box)
            names = ", ".join(sorted({agent.label for agent in agents().values() if _is_here(agent.name, homes)}))
            print(f"Using this machine's own transcripts ({names}). They are read where they are and never written.")
        else:
            count = demo_sessions.write(stage.box)
            print(f"No transcripts were found on this machine: {count} invented sessions stand in for them.")
        host = stage.open(folder)
        if stage.server is not None:
            print("A private sshd on a loopback port is the box; everything it holds is in a temporary folder.")
            stage.run("relay-installer", "install", host, "--enable")
        else:
            print("There is no sshd on this machine: the agent is asked over a plain pipe instead of SSH.")
            stage.on_box("enable")
            serve = ["env", f"HOME={stage.box}", str(BIN / "relay"), "serve"]
            stage.run("relay", "hosts", "add", host, "--", *serve)
        stage.on_box("index")
        if query is None:
            query = "path:/" if homes else "reattach race"
        words = ["--host", host, "--", query] if query.startswith("-") else [query, "--host", host]
        stage.run("relay", "search", *words)
        stage.run("relay", "status", "--host", host)
        if stage.server is not None:
            stage.run("relay-installer", "uninstall", host, "--purge")
    finally:
        _see_to_the_end()
        stage.close()


def _is_here(agent: str, homes: Sequence[Path]) -> bool:
    env = Env(os.path.expanduser("~"), dict(os.environ), sys.platform)
    return any(Path(home) in homes for home, _ in agents()[agent].homes(env))


def _end(number: int, frame: object) -> None:
    """Ends the demo as if it had come to its end: what it started is stopped and what it made is removed."""
    _see_to_the_end()
    raise SystemExit(128 + number)


def _see_to_the_end() -> None:
    """From here on nothing cuts the cleaning short, not even a second Ctrl-C."""
    for number in ENDINGS:
        signal.signal(number, signal.SIG_IGN)


def _remove(folder: str) -> None:
    """Removes the folder, also while an install that was interrupted is still putting back what it had begun."""
    until = time.monotonic() + 10
    while os.path.exists(folder):
        shutil.rmtree(folder, ignore_errors=time.monotonic() < until)
        time.sleep(0.05)


def main(arguments: Sequence[str]) -> None:
    if len(arguments) > 1 or arguments[:1] == ["--help"]:
        raise SystemExit('Usage: scripts/demo ["query"]')
    for number in ENDINGS:
        signal.signal(number, _end)
    folder = tempfile.mkdtemp(prefix="relay-demo-")
    try:
        play(arguments[0] if arguments else None, Path(folder))
    finally:
        _see_to_the_end()
        _remove(folder)
        print("\nThe demo's box, its index and its agent are gone again.")


if __name__ == "__main__":
    main(sys.argv[1:])
