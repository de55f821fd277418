"""A real agent process for the benchmarks and the demo: started, asked over its pipes, ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, Sequence


def environment(home: Path) -> Dict[str, str]:
    """The environment of an account whose home is ``home``: no folder of this account can be met."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(home)}


def run(home: Path, *arguments: str) -> str:
    """``relay`` with these arguments as that account; its stdout."""
    command = [sys.executable, "-m", "relay", *arguments]
    return subprocess.run(command, env=environment(home), check=True, stdout=subprocess.PIPE, text=True).stdout


def enable(home: Path) -> None:
    """Consent of that account."""
    run(home, "enable", "--json")


class Agent:
    """``relay serve`` (or another ``command``) over pipes; a context manager."""

    def __init__(self, home: Path, command: Sequence[str] = (sys.executable, "-m", "relay", "serve")) -> None:
        self.process = subprocess.Popen(
            command, env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.input, self.output = self.process.stdin, self.process.stdout
        self.buffered = b""
        self.last = 0

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *exc: object) -> None:
        self.input.close()
        self.process.wait()
        self.output.close()

    def call(self, method: str, **params: Any) -> Dict[str, Any]:
        """One request and its answer; an error answer raises."""
        self.last += 1
        request = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        self.input.write(json.dumps(request).encode() + b"\n")
        while b"\n" not in self.buffered:
            portion = os.read(self.output.fileno(), 1 << 20)
            if not portion:
                raise RuntimeError("the agent ended")
            self.buffered += portion
        line, _, self.buffered = self.buffered.partition(b"\n")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"]

    def search(self, query: str, **params: Any) -> Dict[str, Any]:
        """A search that has results; it is asked again while the index is not open or moves."""
        while True:
            answer = self.call("aiVault.searchSessions", query=query, **params)
            if answer["kind"] == "results":
                return answer
            time.sleep(0.005)

    def status(self) -> Dict[str, Any]:
        """The agent's own status."""
        return self.call("aiVault.searchStatus")

    def wait_until_current(self) -> None:
        """Returns when the first full sweep is through."""
        while self.status()["lastSweepCompletedAt"] is None or self.status()["phase"] == "indexing":
            time.sleep(0.1)

    def cpu_seconds(self) -> float:
        """Processor time used so far, all threads (Linux)."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss(self) -> int:
        """Resident memory in bytes (Linux)."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def tree_rss(process: int) -> int:
    """Resident memory in bytes of a process and those it has started (Linux); 0 when it is gone."""
    try:
        total = int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        for thread in os.listdir(f"/proc/{process}/task"):
            children = Path(f"/proc/{process}/task/{thread}/children").read_text()
            total += sum(tree_rss(int(child)) for child in children.split())
    except OSError:
        return 0
    return total
