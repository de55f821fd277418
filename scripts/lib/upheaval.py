"""Transcripts in constant change: sessions of three agents are begun, continued, torn, replaced, deleted."""

from __future__ import annotations

import json
import os
import random
import shutil
import uuid
from pathlib import Path
from typing import Any, Callable, Dict, List

from corpus import START_MS, Tree, iso

#: Files that live at once, about; beyond them deletions are chosen more often.
LIVING = 60


class Upheaval:
    """Changes transcripts below ``home``, one random change a call; the same seed gives the same changes."""

    def __init__(self, home: Path, seed: int) -> None:
        self.home = home
        self.random = random.Random(seed)
        self.tree = Tree(seed, 0.7)
        self.lines: List[Path] = []
        self.documents: List[Path] = []
        #: Files whose last line is half written ▶ the other half.
        self.torn: Dict[Path, bytes] = {}
        self.changes = 0

    def change(self) -> None:
        """One change."""
        crowded = len(self.lines) + len(self.documents) > LIVING
        choices: List[Callable[[], None]] = [self.begin, self.begin_document]
        if self.lines:
            choices += [self.append] * 8 + [self.tear] * 3 + [self.rewrite, self.replace, self.rename, self.truncate]
            choices += [self.delete] * (8 if crowded else 1)
        if self.documents:
            choices += [self.rewrite_document] * 3 + [self.delete_document] * (2 if crowded else 1)
        if self.lines and self.random.random() < 0.01:
            choices = [self.delete_folder]
        self.random.choice(choices)()
        self.changes += 1

    def settle(self) -> None:
        """Finish the lines that are torn."""
        for path, rest in list(self.torn.items()):
            self._append(path, rest)
        self.torn.clear()

    # Line files

    def begin(self) -> None:
        session = str(uuid.UUID(int=self.random.getrandbits(128)))
        if self.random.random() < 0.5:
            path = self.home / ".claude" / "projects" / f"-w-{self.random.randrange(6)}" / f"{session}.jsonl"
        else:
            folder = self.home / ".codex" / "sessions" / "2026" / "01" / f"{self.random.randrange(1, 9):02}"
            path = folder / f"rollout-2026-01-01T00-00-00-{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self._records(path))
        self.lines.append(path)

    def append(self) -> None:
        path = self.random.choice(self.lines)
        rest = self.torn.pop(path, b"")
        self._append(path, rest + self._records(path))

    def tear(self) -> None:
        path = self.random.choice(self.lines)
        rest = self.torn.pop(path, b"")
        records = rest + self._records(path)
        cut = self.random.randrange(len(records))
        self._append(path, records[:cut])
        self.torn[path] = records[cut:]

    def rewrite(self) -> None:
        path = self.random.choice(self.lines)
        self.torn.pop(path, None)
        path.write_bytes(self._records(path))

    def replace(self) -> None:
        path = self.random.choice(self.lines)
        self.torn.pop(path, None)
        other = path.with_suffix(".tmp")
        other.write_bytes(self._records(path))
        os.replace(other, path)

    def rename(self) -> None:
        path = self.random.choice(self.lines)
        session = str(uuid.UUID(int=self.random.getrandbits(128)))
        name = f"{session}.jsonl" if ".claude" in path.parts else f"rollout-2026-01-01T00-00-00-{session}.jsonl"
        other = path.with_name(name)
        path.rename(other)
        self.lines[self.lines.index(path)] = other
        if path in self.torn:
            self.torn[other] = self.torn.pop(path)

    def truncate(self) -> None:
        path = self.random.choice(self.lines)
        self.torn.pop(path, None)
        kept = path.read_bytes().split(b"\n")
        path.write_bytes(b"".join(line + b"\n" for line in kept[: self.random.randrange(len(kept))]))

    def delete(self) -> None:
        path = self.lines.pop(self.random.randrange(len(self.lines)))
        self.torn.pop(path, None)
        path.unlink()

    def delete_folder(self) -> None:
        folder = self.random.choice(self.lines).parent
        shutil.rmtree(folder)
        self.lines = [path for path in self.lines if path.parent != folder]
        self.torn = {path: rest for path, rest in self.torn.items() if path.parent != folder}

    def _append(self, path: Path, data: bytes) -> None:
        with open(path, "ab") as file:
            file.write(data)

    def _records(self, path: Path) -> bytes:
        size = int(self.random.lognormvariate(8, 1.2)) + 200
        clock = START_MS + self.changes * 60_000
        session = path.stem[-36:]
        make = self.tree.claude if ".claude" in path.parts else self.tree.codex
        return b"".join(json.dumps(record).encode() + b"\n" for record in make(session, "/w", clock, size))

    # Documents

    def begin_document(self) -> None:
        name = f"session-{self.random.getrandbits(40):010x}.json"
        path = self.home / ".gemini" / "tmp" / f"{self.random.randrange(3):064x}" / "chats" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self._write_document(path, [])
        self.documents.append(path)

    def rewrite_document(self) -> None:
        path = self.random.choice(self.documents)
        messages = json.loads(path.read_bytes())["messages"]
        if self.random.random() < 0.2:
            del messages[self.random.randrange(len(messages)) :]
        self._write_document(path, messages)

    def delete_document(self) -> None:
        self.documents.pop(self.random.randrange(len(self.documents))).unlink()

    def _write_document(self, path: Path, messages: List[Dict[str, Any]]) -> None:
        when = iso(START_MS + self.changes * 60_000)
        for kind in ("user", "gemini"):
            text = " ".join(self.tree.words.draw(self.random.randrange(3, 60)))
            number = f"{self.random.getrandbits(64):016x}"
            messages.append({"id": number, "timestamp": when, "type": kind, "content": text})
        whole = {"sessionId": path.stem, "startTime": iso(START_MS), "lastUpdated": when, "messages": messages}
        path.write_text(json.dumps(whole))
