"""Holds the import rule: cli, service, then indexer and search, then index, then contract and transcripts; never back.

Prints each import that breaks it and exits 1. docs/architecture.md draws the same picture.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Iterator, List, Tuple

PROJECT = Path(__file__).resolve().parents[2]

GROUND = {"relay", "relay.paths"}
TYPES = {"relay.contract", "relay.transcripts"}
AGENT = GROUND | TYPES | {"relay.policy", "relay.rpc", "relay.service", "relay.index", "relay.indexer", "relay.search"}

#: What the modules of each room may import of ours (themselves aside). A room is the longest matching prefix.
ALLOWED = {
    "relay": GROUND,
    "relay.paths": GROUND,
    "relay.contract": GROUND,
    "relay.transcripts": GROUND,
    "relay.rpc": GROUND,
    "relay.policy": GROUND,
    "relay.index": GROUND | TYPES,
    "relay.indexer": GROUND | {"relay.index", "relay.transcripts"},
    "relay.search": GROUND | TYPES | {"relay.index"},
    "relay.service": AGENT - {"relay.rpc"},
    "relay.client": GROUND | {"relay.contract", "relay.rpc", "relay.service"},
    "relay.cli": AGENT | {"relay.client"},
    "relay.__main__": GROUND | {"relay.cli"},
    "installer": GROUND | {"relay.client", "relay.contract", "relay.policy", "relay.cli"},
}


def room_of(module: str) -> str:
    """The room a dotted module name lies in."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        if name in ALLOWED:
            return name
    return ""


def imports(path: Path) -> Iterator[Tuple[int, str]]:
    """Every import in a file, also those inside functions: (line, dotted name)."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def broken() -> List[str]:
    """A line for each import that the rule forbids."""
    found = []
    for top in ("relay", "installer"):
        for path in sorted((PROJECT / top).rglob("*.py")):
            relative = path.relative_to(PROJECT)
            module = ".".join(relative.with_suffix("").parts)
            room = room_of(module)
            for line, name in imports(path):
                target = room_of(name)
                if target and target != room and target not in ALLOWED[room]:
                    found.append(f"{relative}:{line}: {room} must not import {name}")
    return found


if __name__ == "__main__":
    lines = broken()
    print("\n".join(lines) or "Imports run one way.")
    sys.exit(1 if lines else 0)
