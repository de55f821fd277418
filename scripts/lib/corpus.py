"""Makes believable transcript trees for the benchmarks: any size, share of tool output, agents and seed.

The words follow Zipf's law, the way real text does, and tool output is made of log lines, paths, code and ids. The same
arguments always give the same bytes.
"""

from __future__ import annotations

import json
import random
import uuid
from pathlib import Path
from typing import Dict, Iterator, List, Sequence

SYLLABLES = (
    "ba be bo ca ce co da de di do fa fe fi ga ge go ha he in is ka ke la le li lo ma me mi mo na ne no pa pe pi po ra "
    "re ri ro sa se si so ta te ti to un ur va ve vi wa we ya ye za zo"
).split()
EXTENSIONS = ("py", "ts", "rs", "go", "md", "json", "toml", "c", "h", "tsx")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
START_MS = 1_760_000_000_000


class Words:
    """A vocabulary of invented words, the common ones far more common than the rare."""

    def __init__(self, random_source: random.Random, size: int = 40_000) -> None:
        self.random = random_source
        found: Dict[str, None] = {}
        while len(found) < size:
            found["".join(self.random.choices(SYLLABLES, k=self.random.choice((1, 2, 2, 3, 3, 4))))] = None
        self.words: List[str] = list(found)
        total, self.cumulative = 0.0, []
        for place in range(size):
            total += 1 / (place + 2)
            self.cumulative.append(total)

    def draw(self, count: int) -> List[str]:
        """``count`` words in random order."""
        return self.random.choices(self.words, cum_weights=self.cumulative, k=count)

    def sentence(self, low: int = 6, high: int = 22) -> str:
        """A sentence of ``low`` to ``high`` words."""
        return " ".join(self.draw(self.random.randint(low, high))).capitalize() + "."

    def path(self) -> str:
        """A relative path of a source file."""
        return "/".join(self.draw(self.random.randint(2, 4))) + "." + self.random.choice(EXTENSIONS)

    def identifier(self) -> str:
        """A camelCase or snake_case name."""
        parts = self.draw(self.random.randint(2, 3))
        if self.random.random() < 0.5:
            return parts[0] + "".join(part.capitalize() for part in parts[1:])
        return "_".join(parts)

    def output_line(self) -> str:
        """A line as tools print it."""
        kind = self.random.random()
        if kind < 0.3:
            stamp = f"2026-0{self.random.randint(1, 9)}-1{self.random.randint(0, 9)}T0{self.random.randint(0, 9)}:11:42"
            level = self.random.choice(LEVELS)
            return f"{stamp} {level} {self.identifier()}: {' '.join(self.draw(8))} id={self.random.getrandbits(32):08x}"
        if kind < 0.55:
            return f"{self.path()}:{self.random.randint(1, 2000)}: {' '.join(self.draw(6))}"
        if kind < 0.85:
            call = f"{self.identifier()}({', '.join(self.draw(2))})"
            return f"    {self.random.choice(('return', 'if', 'for', 'let', 'def'))} {call} = {self.identifier()}"
        return " ".join(self.draw(12))


class Tree:
    """Writes sessions below a home until a size is reached."""

    def __init__(self, seed: int, tool_share: float) -> None:
        self.random = random.Random(seed)
        self.tool_share = tool_share
        self.words = Words(self.random)
        # Lines are drawn from a pool: making each afresh would take longer than indexing it.
        self.pool = [self.words.output_line() for _ in range(60_000)]

    def tool_output(self) -> str:
        """What one tool printed: some 4,000 characters, most of it from the pool, a few words found nowhere else."""
        lines = self.random.choices(self.pool, k=self.random.choice((3, 10, 30, 60, 120, 250)))
        lines.append(f"exit 0 {self.random.getrandbits(64):016x}")
        return "\n".join(lines)

    def turns(self, size: int) -> Iterator[Dict[str, str]]:
        """Turns of a session of about ``size`` bytes: a prompt, calls with their output, a reply."""
        written = 0
        while written < size:
            user = self.words.sentence()
            reply = " ".join(self.words.sentence() for _ in range(self.random.randint(2, 8)))
            yield {"kind": "user", "text": user}
            spoken = len(user) + len(reply)
            printed = 0
            while printed < spoken * self.tool_share / max(0.01, 1 - self.tool_share):
                output = self.tool_output() if self.tool_share else ""
                command = f"rg -n {self.words.identifier()} {self.words.path()}"
                yield {"kind": "tool", "command": command, "text": output}
                printed += len(output) or 1
            yield {"kind": "assistant", "text": reply}
            written += spoken + printed

    def claude(self, session: str, cwd: str, clock: int, size: int) -> Iterator[Dict[str, object]]:
        """The records of a Claude Code session."""
        parent = None
        common = {"sessionId": session, "cwd": cwd, "gitBranch": "main", "version": "2.1.0", "isSidechain": False}
        for number, turn in enumerate(self.turns(size)):
            for part in self.claude_parts(turn, number):
                clock += 1500
                own = str(uuid.UUID(int=self.random.getrandbits(128)))
                yield {**common, "uuid": own, "parentUuid": parent, "timestamp": iso(clock), **part}
                parent = own

    def claude_parts(self, turn: Dict[str, str], number: int) -> Iterator[Dict[str, object]]:
        """One turn as Claude Code's records."""
        if turn["kind"] == "user":
            yield {"type": "user", "message": {"role": "user", "content": turn["text"]}}
            return
        call = f"toolu_{number:06d}"
        block: Dict[str, object] = {"type": "text", "text": turn["text"]}
        if turn["kind"] == "tool":
            block = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": turn["command"]}}
        message = {"id": f"msg_{number:06d}", "role": "assistant", "model": "claude-x", "content": [block]}
        yield {"type": "assistant", "message": message}
        if turn["kind"] == "tool":
            result = {"type": "tool_result", "tool_use_id": call, "content": turn["text"]}
            message = {"role": "user", "content": [result]}
            yield {"type": "user", "toolUseResult": {"stdout": turn["text"], "stderr": ""}, "message": message}

    def codex(self, session: str, cwd: str, clock: int, size: int) -> Iterator[Dict[str, object]]:
        """The records of a Codex session."""
        meta = {"id": session, "timestamp": iso(clock), "cwd": cwd, "source": "cli", "git": {"branch": "main"}}
        yield {"timestamp": iso(clock), "type": "session_meta", "payload": meta}
        for number, turn in enumerate(self.turns(size)):
            clock += 1500
            for kind, payload in self.codex_parts(turn, number):
                yield {"timestamp": iso(clock), "type": kind, "payload": payload}

    def codex_parts(self, turn: Dict[str, str], number: int) -> Iterator[Sequence[object]]:
        """One turn as Codex's records."""
        if turn["kind"] == "tool":
            call = f"call_{number:06d}"
            arguments = json.dumps({"command": ["bash", "-lc", turn["command"]]})
            yield "response_item", {"type": "function_call", "name": "shell", "arguments": arguments, "call_id": call}
            output = json.dumps({"output": turn["text"], "metadata": {"exit_code": 0}})
            yield "response_item", {"type": "function_call_output", "call_id": call, "output": output}
            return
        text = {"type": "input_text" if turn["kind"] == "user" else "output_text", "text": turn["text"]}
        yield "response_item", {"type": "message", "role": turn["kind"], "content": [text]}
        name = "user_message" if turn["kind"] == "user" else "agent_message"
        yield "event_msg", {"type": name, "message": turn["text"]}


def iso(milliseconds: int) -> str:
    """Epoch milliseconds as the agents write times."""
    from datetime import datetime, timezone

    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def make(
    home: Path, size: int, *, tool_share: float = 0.9, agents: Sequence[str] = ("claude", "codex"), seed: int = 1,
    session_bytes: int = 700_000,
) -> int:
    """Writes transcripts of about ``size`` bytes below ``home``; returns the bytes written."""
    tree = Tree(seed, tool_share)
    written = number = 0
    while written < size:
        agent = agents[number % len(agents)]
        session = str(uuid.UUID(int=tree.random.getrandbits(128)))
        clock = START_MS + number * 600_000
        cwd = f"/home/dev/{tree.words.words[number % 40]}/{tree.words.words[number % 97]}"
        want = min(int(session_bytes * tree.random.lognormvariate(-0.5, 1)) + 500, size - written)
        if agent == "claude":
            path = home / ".claude" / "projects" / cwd.replace("/", "-") / f"{session}.jsonl"
            records = tree.claude(session, cwd, clock, want)
        else:
            day = iso(clock)
            folder = home / ".codex" / "sessions" / day[:4] / day[5:7] / day[8:10]
            path = folder / f"rollout-{day[:19].replace(':', '-')}-{session}.jsonl"
            records = tree.codex(session, cwd, clock, want)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            for record in records:
                written += file.write(json.dumps(record, separators=(",", ":"), ensure_ascii=False) + "\n")
        number += 1
    return written
