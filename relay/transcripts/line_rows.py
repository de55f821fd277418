"""The registry's rows of the agents that keep their sessions as lines of JSON."""

from __future__ import annotations

from typing import Sequence

from relay.transcripts.globs import beside, homes, mark_by, store
from relay.transcripts.registry import APPEND, WHOLE, Agent

CLAUDE = Agent(
    "claude",
    "Claude Code",
    homes("$CLAUDE_CONFIG_DIR", "~/.claude"),
    (
        store(
            "claude",
            "projects",
            APPEND,
            "projects",
            "claude:ClaudeReader",
            ("*/*.jsonl", "*/*/subagents/**/agent-*.jsonl"),
        ),
    ),
)

CODEX = Agent(
    "codex",
    "Codex",
    homes("$CODEX_HOME", "~/.codex"),
    (
        store(
            "codex",
            "live",
            APPEND,
            "sessions",
            "codex:CodexReader",
            ("**/rollout-*.jsonl",),
            mark=mark_by("codex_names:mark"),
            rank=4,
        ),
        store(
            "codex",
            "compressed",
            WHOLE,
            "sessions",
            "codex_whole:read_compressed",
            ("**/rollout-*.jsonl.zst",),
            mark=mark_by("codex_names:mark"),
            rank=3,
        ),
        store("codex", "documents", WHOLE, "sessions", "codex_whole:read_document", ("**/rollout-*.json",), rank=2),
        store("codex", "archived", APPEND, "archived_sessions", "codex:CodexReader", ("**/rollout-*.jsonl",), rank=1),
        store(
            "codex",
            "archived-compressed",
            WHOLE,
            "archived_sessions",
            "codex_whole:read_compressed",
            ("**/rollout-*.jsonl.zst",),
        ),
    ),
)

COPILOT = Agent(
    "copilot",
    "GitHub Copilot",
    homes("$COPILOT_HOME", "~/.copilot"),
    (
        store(
            "copilot",
            "folders",
            APPEND,
            "session-state",
            "copilot:CopilotReader",
            ("*/events.jsonl", ("*/workspace.yaml", "{0}/events.jsonl")),
            files=beside("workspace.yaml"),
            rank=2,
        ),
        store("copilot", "files", APPEND, "session-state", "copilot:CopilotReader", ("*.jsonl",), rank=1),
        store("copilot", "documents", WHOLE, "session-state", "copilot:read_document", ("*.json",)),
        store("copilot", "history", WHOLE, "history-session-state", "copilot:read_document", ("*.json",)),
    ),
)

PI = Agent(
    "pi",
    "Pi",
    homes("$PI_CODING_AGENT_DIR", "~/.pi/agent"),
    (
        store("pi", "sessions", APPEND, "sessions", "pi:PiReader", ("*/*.jsonl",)),
        # The variable may also name the folder of sessions itself.
        store("pi", "folder", APPEND, "", "pi:PiReader", ("--*--/*.jsonl",)),
    ),
)

OMP = Agent(
    "omp",
    "OMP",
    homes("$OMP_CODING_AGENT_DIR", "~/.omp/agent"),
    (store("omp", "sessions", APPEND, "sessions", "omp:OmpReader", ("*/*.jsonl", "*/*/**/*.jsonl")),),
)

PRIME_AGENT = Agent(
    "prime-agent",
    "Prime Agent",
    homes("$PRIME_AGENT_DIR", "~/.prime-agent/agent", "~/.prime-agent"),
    (store("prime-agent", "sessions", APPEND, "sessions", "prime_agent:PrimeAgentReader", ("*.jsonl", "*/*.jsonl")),),
)

QWEN = Agent(
    "qwen",
    "Qwen Code",
    homes("$QWEN_RUNTIME_DIR", "$QWEN_HOME", "~/.qwen"),
    (
        store(
            "qwen",
            "chats",
            APPEND,
            "projects",
            "qwen:QwenReader",
            ("*/chats/<hex>.jsonl", "*/chats/*/<hex>.jsonl"),
            rank=1,
        ),
        store("qwen", "documents", WHOLE, "tmp", "qwen:read_document", ("*/chats/session-*.json",)),
    ),
)

DROID = Agent(
    "droid",
    "Droid",
    homes("~/.factory"),
    (
        store("droid", "sessions", APPEND, "sessions", "droid:DroidReader", ("*/*.jsonl", "*.jsonl"), rank=1),
        store("droid", "projects", APPEND, "projects", "droid:DroidReader", ("*/*.jsonl", "*.jsonl")),
    ),
)

OPENCLAW = Agent(
    "openclaw",
    "OpenClaw",
    homes("$OPENCLAW_STATE_DIR", "~/.openclaw", "~/.clawdbot", "~/.kimi_openclaw", "~/.qclaw"),
    (
        store("openclaw", "sessions", APPEND, "agents", "openclaw:OpenClawReader", ("*/sessions/*.jsonl",), rank=1),
        # What was deleted or reset answers only while no active file has the session.
        store(
            "openclaw",
            "archives",
            APPEND,
            "agents",
            "openclaw:OpenClawReader",
            ("*/sessions/*.jsonl.deleted.*", "*/sessions/*.jsonl.reset.*", "*/sessions/*.jsonl.full.bak"),
            ("*/sessions/*.lock",),
        ),
    ),
)

LINE_AGENTS: Sequence[Agent] = (CLAUDE, CODEX, COPILOT, PI, OMP, PRIME_AGENT, QWEN, DROID, OPENCLAW)
