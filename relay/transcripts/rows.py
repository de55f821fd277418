"""The registry's rows: where each agent keeps its sessions, and what reads them (docs/adding-an-agent.md)."""

from __future__ import annotations

import itertools
import os
from typing import Optional, Sequence, Tuple

from relay.transcripts.document_rows import CURSOR_TRANSCRIPTS, DOCUMENT_AGENTS, GROK_BUILD
from relay.transcripts.globs import Claim, files_by, homes, store
from relay.transcripts.line_rows import LINE_AGENTS
from relay.transcripts.registry import DATABASE, WHOLE, Agent, Env


def _with_journals(glob: str) -> Tuple[Claim, ...]:
    """The claims of a database: itself and the files SQLite writes beside it, which stand for it."""
    wildcards = itertools.count()
    database = "".join(f"{{{next(wildcards)}}}" if character == "*" else character for character in glob)
    return (glob, (f"{glob}-wal", database), (f"{glob}-journal", database))


def _opencode_homes(env: Env) -> Sequence[Tuple[str, bool]]:
    """OpenCode's data folder, and where ``OPENCODE_DB`` says that its database is."""
    found = list(homes("$XDG_DATA_HOME/opencode")(env))
    named = env.variables.get("OPENCODE_DB", "")
    if os.path.isabs(named) and (os.path.dirname(named), True) not in found:
        found.append((os.path.dirname(named), False))
    return found


def _opencode_belongs(root: str, relative: str) -> Optional[str]:
    from relay.transcripts import opencode_tree

    return opencode_tree.belongs(root, relative)


def _crush_homes(env: Env) -> Sequence[Tuple[str, bool]]:
    from relay.transcripts import crush_projects

    return crush_projects.homes(env)


def _crush_lists(env: Env) -> Sequence[str]:
    from relay.transcripts import crush_projects

    return crush_projects.registries(env.home, env.variables)


OPENCODE = Agent(
    "opencode",
    "OpenCode",
    _opencode_homes,
    (
        store("opencode", "database", DATABASE, "", "opencode:OpenCodeDatabase", _with_journals("*.db"), rank=1),
        store(
            "opencode",
            "files",
            WHOLE,
            "storage",
            "opencode_tree:read",
            ("session/*/*.json",),
            files=files_by("opencode_tree:files"),
            belongs=_opencode_belongs,
        ),
    ),
)

GOOSE = Agent(
    "goose",
    "Goose",
    homes("$GOOSE_PATH_ROOT/data", "$XDG_DATA_HOME/goose", "~/.local/share/goose", "~/.goose"),
    (
        store("goose", "database", DATABASE, "sessions", "goose:GooseDatabase", _with_journals("sessions.db"), rank=1),
        store("goose", "files", WHOLE, "sessions", "goose:read_file", ("*.jsonl",)),
    ),
)

HERMES = Agent(
    "hermes",
    "Hermes",
    homes("$HERMES_HOME", "~/.hermes"),
    (
        store("hermes", "database", DATABASE, "", "hermes_database:HermesDatabase", _with_journals("state.db"), rank=2),
        store("hermes", "lines", WHOLE, "sessions", "hermes:read_lines", ("*.jsonl",), ("request_dump_*",), rank=1),
        store("hermes", "documents", WHOLE, "sessions", "hermes:read_document", ("session_*.json",)),
    ),
)

DEVIN = Agent(
    "devin",
    "Devin",
    homes(
        "$DEVIN_HOME",
        "$XDG_DATA_HOME/devin/cli",
        "~/.local/share/devin/cli",
        "darwin:~/Library/Application Support/devin/cli",
        "darwin:~/Library/Application Support/devin",
    ),
    (
        store("devin", "database", DATABASE, "", "devin:DevinDatabase", _with_journals("sessions.db"), rank=1),
        store("devin", "transcripts", WHOLE, "transcripts", "devin:read_document", ("*.json",)),
        store("devin", "logs", WHOLE, "agent_logs", "devin:read_document", ("*.json", "*/*.json")),
    ),
)

CRUSH = Agent(
    "crush",
    "Crush",
    _crush_homes,
    (
        store(
            "crush",
            "database",
            DATABASE,
            "",
            "crush:CrushDatabase",
            (*_with_journals("crush.db"), *_with_journals(".crush/crush.db")),
        ),
    ),
    _crush_lists,
)

#: A second product under Grok's name and in its home.
GROK_CLI = store("grok", "grok-cli", DATABASE, "", "grok_db:GrokDatabase", _with_journals("grok.db"))

#: Chats of the Cursor CLI, of which a transcript may be missing.
CURSOR_CHATS = store(
    "cursor", "chats", DATABASE, "chats", "cursor_store:CursorStore", _with_journals("*/*/store.db"), rank=-1
)

GROK = Agent("grok", "Grok", homes("$GROK_HOME", "~/.grok"), (GROK_BUILD, GROK_CLI))

CURSOR = Agent("cursor", "Cursor", homes("~/.cursor"), (*CURSOR_TRANSCRIPTS, CURSOR_CHATS))

AGENTS: Sequence[Agent] = (*LINE_AGENTS, *DOCUMENT_AGENTS, OPENCODE, GOOSE, HERMES, DEVIN, CRUSH, GROK, CURSOR)
