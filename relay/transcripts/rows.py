"""The registry's rows: where each agent keeps its sessions, and what reads them (docs/adding-an-agent.md)."""

from __future__ import annotations

import importlib
import itertools
import os
from typing import Callable, Sequence, Tuple

from relay.transcripts.globs import Claim, beside, homes, store, together
from relay.transcripts.line_rows import LINE_AGENTS
from relay.transcripts.registry import APPEND, DATABASE, WHOLE, Agent, Env
from relay.transcripts.types import Source


def _files(function: str) -> Callable[[Source], Sequence[str]]:
    """A store's ``files``: the function at ``module:attribute``, imported when it is first asked."""
    module, _, attribute = function.partition(":")

    def files(source: Source) -> Sequence[str]:
        found: Sequence[str] = getattr(importlib.import_module(f"relay.transcripts.{module}"), attribute)(source)
        return found

    return files


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


def _crush_homes(env: Env) -> Sequence[Tuple[str, bool]]:
    from relay.transcripts import crush_projects

    return crush_projects.homes(env)


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
            files=_files("opencode_tree:files"),
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
)

#: A second product under Grok's name and in its home.
GROK_CLI = store("grok", "grok-cli", DATABASE, "", "grok_db:GrokDatabase", _with_journals("grok.db"))

#: Chats of the Cursor CLI, of which a transcript may be missing.
CURSOR_CHATS = store(
    "cursor", "chats", DATABASE, "chats", "cursor_store:CursorStore", _with_journals("*/*/store.db"), rank=-1
)

GEMINI = Agent(
    "gemini",
    "Gemini CLI",
    homes("$GEMINI_CLI_HOME/.gemini", "~/.gemini"),
    (
        store(
            "gemini",
            "chats",
            WHOLE,
            "tmp",
            "gemini:read",
            ("*/chats/session-*.jsonl", "*/chats/session-*.json", "*/chats/*/*.jsonl"),
        ),
    ),
)

KIMI = Agent(
    "kimi",
    "Kimi",
    together(homes("$KIMI_SHARE_DIR", "~/.kimi"), homes("$KIMI_CODE_HOME", "~/.kimi-code")),
    (
        store(
            "kimi",
            "logs",
            APPEND,
            "sessions",
            "kimi:WireReader",
            ("*/*/wire.jsonl", "*/*/subagents/*/wire.jsonl", ("*/<uuid>/state.json", "{0}/{1}/wire.jsonl")),
            files=beside("state.json", "metadata.json"),
            rank=1,
        ),
        store(
            "kimi",
            "contexts",
            WHOLE,
            "sessions",
            "kimi:read_context",
            ("*/*/context.jsonl", "*/*.jsonl"),
            files=beside("state.json", "metadata.json", "wire.jsonl"),
        ),
        store(
            "kimi",
            "code",
            APPEND,
            "sessions",
            "kimi_code:WireReader",
            (
                "*/session_*/agents/*/wire.jsonl",
                "*/conv-*/agents/*/wire.jsonl",
                ("*/session_*/state.json", "{0}/session_{1}/agents/main/wire.jsonl"),
            ),
            files=beside("../../state.json"),
            rank=1,
        ),
    ),
)

GROK = Agent(
    "grok",
    "Grok",
    homes("$GROK_HOME", "~/.grok"),
    (
        store(
            "grok",
            "build",
            WHOLE,
            "sessions",
            "grok:read",
            (
                "*/*/summary.json",
                ("*/*/chat_history.jsonl", "{0}/{1}/summary.json"),
                ("*/*/updates.jsonl", "{0}/{1}/summary.json"),
            ),
            files=beside("chat_history.jsonl", "updates.jsonl"),
            rank=1,
        ),
        GROK_CLI,
    ),
)

CURSOR = Agent(
    "cursor",
    "Cursor",
    homes("~/.cursor"),
    (
        store(
            "cursor",
            "transcripts",
            APPEND,
            "projects",
            "cursor:JsonlReader",
            (
                "*/agent-transcripts/*.jsonl",
                "*/agent-transcripts/*/*.jsonl",
                "*/agent-transcripts/*/subagents/*.jsonl",
            ),
            rank=2,
        ),
        store(
            "cursor",
            "texts",
            WHOLE,
            "projects",
            "cursor:read_text",
            ("*/agent-transcripts/*.txt", "*/agent-transcripts/*/*.txt"),
            rank=1,
        ),
        CURSOR_CHATS,
    ),
)

#: Where editors keep the storage of their extensions, and which extensions keep tasks there.
_EDITORS = (
    *(f"~/.config/{name}/User" for name in ("Code", "Code - Insiders", "VSCodium", "Cursor")),
    *(
        f"darwin:~/Library/Application Support/{name}/User"
        for name in ("Code", "Code - Insiders", "VSCodium", "Cursor")
    ),
    *(f"~/{name}/data/User" for name in (".vscode-server", ".vscode-server-insiders", ".cursor-server")),
)
_TASK_EXTENSIONS = ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline", "kilocode.kilo-code")

CLINE = Agent(
    "cline",
    "Cline",
    together(
        homes("$CLINE_SESSION_DATA_DIR"),
        homes("$CLINE_DATA_DIR", "$CLINE_DIR/data", "~/.cline/data"),
        homes(*(f"{user}/globalStorage/{extension}" for user in _EDITORS for extension in _TASK_EXTENSIONS)),
    ),
    (
        store(
            "cline",
            "tasks-and-sessions",
            WHOLE,
            "",
            "cline:read",
            (
                "tasks/*/ui_messages.json",
                "tasks/*/claude_messages.json",
                "tasks/*/api_conversation_history.json",
                ("tasks/*/history_item.json", "tasks/{0}/ui_messages.json"),
                "sessions/*/*.messages.json",
                "*/*.messages.json",
            ),
            ("cache", "settings", "checkpoints", "state"),
            files=_files("cline:files"),
        ),
    ),
)

ROVO = Agent(
    "rovo",
    "Rovo Dev",
    homes("~/.rovodev"),
    (
        store(
            "rovo",
            "sessions",
            WHOLE,
            "sessions",
            "rovo:read",
            ("*/session_context.json", ("*/metadata.json", "{0}/session_context.json")),
            files=beside("metadata.json"),
        ),
    ),
)

AMP = Agent(
    "amp",
    "Amp",
    homes("$XDG_DATA_HOME/amp"),
    (store("amp", "threads", WHOLE, "threads", "amp:read", ("T-*.json",)),),
)

#: Folders of Antigravity that are large and hold no conversation.
_ANTIGRAVITY_BULK = (
    "antigravity*/bin",
    "antigravity*/browser_recordings",
    "antigravity*/code_tracker",
    "antigravity*/playground",
    "antigravity*/scratch",
)

ANTIGRAVITY = Agent(
    "antigravity",
    "Antigravity",
    homes("~/.gemini"),
    (
        store(
            "antigravity",
            "conversations",
            WHOLE,
            "",
            "antigravity:read",
            (
                "antigravity*/**/transcript*.jsonl",
                "antigravity*/conversations/*.jsonl",
                "antigravity*/conversations/*.json",
                "antigravity*/exports/*.json",
            ),
            _ANTIGRAVITY_BULK,
        ),
    ),
)

AGENTS: Sequence[Agent] = (*LINE_AGENTS, OPENCODE,
    GOOSE,
    HERMES,
    DEVIN,
    CRUSH,
    GEMINI,
    KIMI,
    GROK,
    CURSOR,
    CLINE,
    ROVO,
    AMP,
    ANTIGRAVITY,
)
