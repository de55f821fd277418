"""A small believable set of transcripts for a machine that has none."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

Turn = Tuple[str, str]

#: (agent, session id, cwd, branch, days ago, turns); a turn's kind is user, assistant, or the command of a tool.
SESSIONS: Sequence[Tuple[str, str, str, str, int, Sequence[Turn]]] = (
    ("claude", "5e0c1a52-7d0b-4c57-9a39-1b1f0f2a7c11", "/home/dev/terminal", "fix/reattach", 41, (
        ("user", "Sessions sometimes come back blank after a reconnect. Find out why."),
        ("rg -n reattach src/", "src/session/reattach.ts:88: if (!this.socket) return\n"
                                "src/session/reattach.ts:131: await this.replayScrollback()"),
        ("assistant", "It is a race: reattach() can run before the old socket has closed, so the scrollback is "
                      "replayed into a pane that is thrown away a moment later. A generation counter will fence it."),
        ("user", "Good. Add a test for the reattach race too."),
        ("npm test -- reattach", "PASS src/session/reattach.test.ts\n  ✓ ignores a stale generation (12 ms)"),
        ("assistant", "The reattach race is fixed and covered: a stale generation no longer replays."),
    )),
    ("codex", "0199a6c2-3b1e-7f40-8c1d-2f6d5a9e0b77", "/home/dev/billing", "main", 12, (
        ("user", "The invoice totals are off by one cent for some customers in Zürich."),
        ("pytest tests/test_rounding.py", "E   AssertionError: assert Decimal('10.05') == Decimal('10.04')"),
        ("assistant", "The total is rounded per line and then summed. Swiss rounding wants the sum rounded once, "
                      "to five centimes; I changed round_total() in rounding.py."),
    )),
    ("claude", "b7d1f3a0-22c4-4e0e-8f6a-90a3c2d51e45", "/home/dev/search", "feature/cjk", 5, (
        ("user", "検索で二文字の単語が見つからない。直してください。"),
        ("assistant", "The tokenizer takes a whole run of characters as one word. Split, 検索 and 単語 are found."),
    )),
    ("codex", "0199c1d4-6a52-7b90-9e3f-7c8b1d2e4f60", "/home/dev/deploy", "main", 1, (
        ("user", "Why is the deploy of v2.1.9 stuck at --wait?"),
        ("kubectl rollout status deploy/api", "error: deployment \"api\" exceeded its progress deadline"),
        ("assistant", "The readiness probe asks /healthz on port 8080, but v2.1.9 listens on 8081."),
    )),
)


def write(home: Path) -> int:
    """Writes the sessions below ``home`` as their agents would; returns how many there are."""
    for agent, session, cwd, branch, days, turns in SESSIONS:
        clock = datetime.now(timezone.utc) - timedelta(days=days)
        if agent == "claude":
            path = home / ".claude" / "projects" / cwd.replace("/", "-") / f"{session}.jsonl"
            records = _claude(session, cwd, branch, clock, turns)
        else:
            folder = home / ".codex" / "sessions" / clock.strftime("%Y/%m/%d")
            path = folder / f"rollout-{clock.strftime('%Y-%m-%dT%H-%M-%S')}-{session}.jsonl"
            records = _codex(session, cwd, branch, clock, turns)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return len(SESSIONS)


def _iso(clock: datetime) -> str:
    return clock.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _claude(session: str, cwd: str, branch: str, clock: datetime, turns: Sequence[Turn]) -> List[Dict[str, Any]]:
    records: List[Dict[str, Any]] = []
    for number, (kind, text) in enumerate(turns):
        parts: List[Tuple[str, Any]] = [(kind, text)]
        if kind not in ("user", "assistant"):
            call = f"toolu_{number}"
            use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": kind}}
            parts = [("assistant", [use]), ("user", [{"type": "tool_result", "tool_use_id": call, "content": text}])]
        for role, content in parts:
            records.append({
                "type": role, "uuid": f"{session[:8]}-{len(records)}", "sessionId": session,
                "cwd": cwd, "gitBranch": branch,
                "parentUuid": records[-1]["uuid"] if records else None,
                "timestamp": _iso(clock + timedelta(seconds=20 * len(records))),
                "message": {"role": role, "content": content},
            })
            if role == "assistant":
                blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
                records[-1]["message"] = {"id": f"msg_{number}", "role": role, "content": blocks}
    return records


def _codex(session: str, cwd: str, branch: str, clock: datetime, turns: Sequence[Turn]) -> List[Dict[str, Any]]:
    head = {"id": session, "timestamp": _iso(clock), "cwd": cwd, "source": "cli", "git": {"branch": branch}}
    records: List[Dict[str, Any]] = [{"timestamp": _iso(clock), "type": "session_meta", "payload": head}]
    for number, (kind, text) in enumerate(turns):
        payloads: List[Dict[str, Any]] = []
        if kind in ("user", "assistant"):
            content = {"type": "input_text" if kind == "user" else "output_text", "text": text}
            payloads.append({"type": "message", "role": kind, "content": [content]})
        else:
            call, arguments = f"call_{number}", json.dumps({"command": ["bash", "-lc", kind]})
            payloads.append({"type": "function_call", "name": "shell", "arguments": arguments, "call_id": call})
            payloads.append({"type": "function_call_output", "call_id": call, "output": text})
        for payload in payloads:
            stamp = _iso(clock + timedelta(seconds=20 * len(records)))
            records.append({"timestamp": stamp, "type": "response_item", "payload": payload})
    return records
