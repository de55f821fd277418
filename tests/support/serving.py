"""A real ``relay serve`` on pipes, spoken to by hand, and small transcripts for it to find."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

RELAY = (sys.executable, "-m", "relay")


def run(*arguments: str, input: Optional[bytes] = None) -> "subprocess.CompletedProcess[bytes]":
    """A relay command, to its end."""
    return subprocess.run([*RELAY, *arguments], input=input, capture_output=True, timeout=60, check=False)


def call(id: Any, method: str, params: Any = None) -> Dict[str, Any]:
    """A request."""
    return {"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})}


def search(id: Any, query: str, **params: Any) -> Dict[str, Any]:
    """A search request."""
    return call(id, "aiVault.searchSessions", {"query": query, **params})


def claude_session(home: Path, session_id: str, text: str, cwd: str = "/srv/app") -> Path:
    """Write a session of one exchange into ``home``; the path of its transcript."""
    path = home / ".claude" / "projects" / "-srv-app" / f"{session_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    common = {"sessionId": session_id, "cwd": cwd, "gitBranch": "main"}
    records = [
        {"type": "user", "uuid": f"{session_id}-a", "parentUuid": None, "message": {"role": "user", "content": text}},
        {
            "type": "assistant",
            "uuid": f"{session_id}-b",
            "parentUuid": f"{session_id}-a",
            "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": f"About {text}: done."}]},
        },
    ]
    with path.open("a") as file:
        for second, record in enumerate(records):
            stamp = f"2026-03-01T09:30:{second:02d}.000Z"
            file.write(json.dumps({**record, **common, "timestamp": stamp}) + "\n")
    return path


class Serving:
    """One agent process; a context manager that ends it."""

    def __init__(
        self, command: Sequence[str] = (*RELAY, "serve"), variables: Optional[Mapping[str, str]] = None
    ) -> None:
        self._command = command
        self._variables = {**os.environ, **(variables or {})}
        #: All that it wrote to stdout, and once it has ended to stderr.
        self.said = b""
        self.complained = b""
        self._rest = b""
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        pipe = subprocess.PIPE
        return subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=pipe, env=self._variables, bufsize=0)

    def start_again(self) -> None:
        """A second process, after the first has ended."""
        self._close()
        self.process = self._start()

    def __enter__(self) -> "Serving":
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._close()

    def _close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        while data:
            data = data[self.process.stdin.write(data) or 0 :]

    def send(self, *values: Any) -> None:
        self.send_bytes(b"".join(json.dumps(value).encode() + b"\n" for value in values))

    def flood(self, frame: bytes, most: int = 128 << 20) -> int:
        """Send a frame over and over, reading nothing, until the agent has taken none for a second; how many it was.

        The last one may be cut: a thread sends the rest of it as soon as that is taken.
        """
        assert self.process.stdin is not None
        fd = self.process.stdin.fileno()
        os.set_blocking(fd, False)
        sent = 0
        while select.select([], [fd], [], 1.0)[1]:
            place = sent % len(frame)
            sent += os.write(fd, frame[place:] + frame * 16)
            assert sent < most, "the agent takes whatever it is sent"
        os.set_blocking(fd, True)
        rest = frame[sent % len(frame) :] if sent % len(frame) else b""
        self.sender = threading.Thread(target=self.send_bytes, args=(rest,), daemon=True)
        self.sender.start()
        return -(-sent // len(frame))

    def receive(self, seconds: float = 30.0) -> Any:
        """The next frame."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + seconds
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.process.stdout], [], [], left)[0], "no frame in time"
            data = self.process.stdout.read(1 << 16)
            assert data, "the agent ended"
            self.said += data
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def ask(self, value: Any) -> Any:
        self.send(value)
        return self.receive()

    def until(self, value: Any, holds: Callable[[Any], bool], seconds: float = 30.0) -> Any:
        """Ask until the answer is as wanted."""
        deadline = time.monotonic() + seconds
        while True:
            answer = self.ask(value)
            if holds(answer):
                return answer
            assert time.monotonic() < deadline, answer
            time.sleep(0.02)

    def end(self) -> List[Any]:
        """Close the input; the frames that still come. The agent must end well."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.rest()

    def rest(self) -> List[Any]:
        """The frames of an agent that is ending."""
        assert self.process.stdout is not None
        data = self.process.stdout.read() or b""
        self.said += data
        lines = self._rest + data
        self._rest = b""
        assert not lines or lines.endswith(b"\n")
        assert self.process.wait(30) == 0
        assert self.process.stderr is not None
        self.complained += self.process.stderr.read() or b""
        return [json.loads(line) for line in lines.splitlines()]

    def memory(self) -> int:
        """Resident kilobytes."""
        try:
            listed = Path(f"/proc/{self.process.pid}/status").read_text()
            return int(listed.split("VmRSS:")[1].split()[0])
        except OSError:  # no Linux
            command = ["ps", "-o", "rss=", "-p", str(self.process.pid)]
            return int(subprocess.run(command, capture_output=True, check=True).stdout)
