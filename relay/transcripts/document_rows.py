"""The registry's rows of the agents that keep their sessions as documents, folders or replayed logs."""

from __future__ import annotations

from typing import Sequence

from relay.transcripts.globs import beside, files_by, homes, mark_by, store, together
from relay.transcripts.registry import APPEND, WHOLE, Agent, Store

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
            mark=mark_by("gemini:registered_folder"),
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
            mark=mark_by("kimi:registered_folder"),
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
            mark=mark_by("kimi:registered_folder"),
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
            mark=mark_by("kimi_code:registered_folder"),
            rank=1,
        ),
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
            files=files_by("cline:files"),
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

#: Grok Build; the other product of that name keeps a database.
GROK_BUILD = store(
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
)

#: Transcripts of the Cursor CLI; its chats are databases.
CURSOR_TRANSCRIPTS: Sequence[Store] = (
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
        files=files_by("cursor:files"),
        rank=2,
    ),
    store(
        "cursor",
        "texts",
        WHOLE,
        "projects",
        "cursor:read_text",
        ("*/agent-transcripts/*.txt", "*/agent-transcripts/*/*.txt"),
        files=files_by("cursor:files"),
        rank=1,
    ),
)

DOCUMENT_AGENTS: Sequence[Agent] = (GEMINI, KIMI, CLINE, ROVO, AMP, ANTIGRAVITY)
