"""The answers on the wire: builders for the simple ones, and parsers that check and strip what another process sent."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from relay.contract.fields import (
    Fields,
    Issue,
    boolean,
    count,
    date_time,
    finite,
    one_of,
    or_null,
    text,
)
from relay.contract.requests import AGENT_NAMES, SCOPES

PRESENCES = ("present", "unverifiable", "missing")
ROLES = ("user", "assistant", "tool", "system", "unknown")
ROUTES = ("phrase", "and", "or", "typo+phrase", "typo+and", "typo+or")
PHASES = ("idle", "indexing", "current", "degraded", "closed")
KINDS = ("results", "stale-cursor", "malformed-cursor", "unavailable")
DISABLED, NOT_READY, NO_SERVICE = REASONS = ("disabled", "not-ready", "no-service")

#: The status of a host without a search service: a sentinel, not the claim of an empty index.
ABSENT_STATUS: Dict[str, Any] = {
    "enabled": False,
    "phase": "idle",
    "filesIndexed": 0,
    "filesDue": 0,
    "filesFailed": 0,
    "degradedRoots": [],
    "lastReconcileAt": None,
    "lastSweepCompletedAt": None,
    "generation": 0,
}


class InvalidPayload(ValueError):
    """An answer that breaks the contract; ``issues`` are ``{"path", "message"}`` and quote nothing of the answer."""

    def __init__(self, issues: List[Issue]) -> None:
        super().__init__("; ".join(f"{issue['path'] or 'result'} {issue['message']}" for issue in issues))
        self.issues = issues


def unavailable(reason: str) -> Dict[str, Any]:
    """No search here now; ``reason`` is one of ``REASONS``."""
    return {"kind": "unavailable", "reason": reason}


def malformed_cursor() -> Dict[str, Any]:
    """The cursor is no cursor of this query."""
    return {"kind": "malformed-cursor"}


def stale_cursor(generation: int, expected: Optional[int] = None) -> Dict[str, Any]:
    """The index moved: it is at ``generation`` now; ``expected`` is the one the cursor was made at, when known."""
    answer: Dict[str, Any] = {"kind": "stale-cursor", "generation": generation}
    if expected is not None:
        answer["expectedGeneration"] = expected
    return answer


def parse_response(value: Any) -> Dict[str, Any]:
    """A checked search response of one host, without unknown fields. Raises InvalidPayload."""
    issues: List[Issue] = []
    fields = Fields(value, "", issues)
    answer: Dict[str, Any] = {"kind": fields.take("kind", one_of(*KINDS))}
    if answer["kind"] == "results":
        answer.update(_results(fields))
    elif answer["kind"] == "stale-cursor":
        answer["generation"] = fields.take("generation", count)
        _optional(answer, fields, "expectedGeneration", count)
    elif answer["kind"] == "unavailable":
        answer["reason"] = fields.take("reason", one_of(*REASONS))
    return _checked(answer, issues)


def parse_status(value: Any) -> Dict[str, Any]:
    """A checked status of one host, without unknown fields. Raises InvalidPayload."""
    issues: List[Issue] = []
    fields = Fields(value, "", issues)
    status = {"enabled": fields.take("enabled", boolean), "phase": fields.take("phase", one_of(*PHASES))}
    for name in ("filesIndexed", "filesDue", "filesFailed", "generation"):
        status[name] = fields.take(name, count)
    for name in ("lastReconcileAt", "lastSweepCompletedAt"):
        status[name] = fields.take(name, or_null(finite))
    status["degradedRoots"] = []
    for root in fields.children("degradedRoots"):
        degraded = {"reason": root.take("reason", text)}
        _optional(degraded, root, "root", text)
        status["degradedRoots"].append(degraded)
    return _checked({name: status[name] for name in ABSENT_STATUS}, issues)


def _results(fields: Fields) -> Dict[str, Any]:
    page, truncated = fields.child("page"), fields.child("truncated")
    answer: Dict[str, Any] = {
        "hits": [_hit(hit) for hit in fields.children("hits")],
        "page": {"cursor": page.take("cursor", or_null(text)), "hasMore": page.take("hasMore", boolean)},
        "generation": fields.take("generation", count),
        "truncated": {
            "candidates": truncated.take("candidates", boolean),
            "snippets": truncated.take("snippets", count),
            "query": truncated.take("query", boolean),
            "freshness": truncated.take("freshness", boolean),
        },
        "durationMs": fields.take("durationMs", finite),
    }
    if fields.has("debug"):
        debug = fields.child("debug")
        report = debug.child("plannerReport")
        answer["debug"] = _route(debug)
        answer["debug"]["plannerReport"] = {**_route(report), "scope": report.take("scope", one_of(*SCOPES))}
    return answer


def _hit(fields: Fields) -> Dict[str, Any]:
    source = fields.child("source")
    hit: Dict[str, Any] = {
        "agent": fields.take("agent", one_of(*AGENT_NAMES)),
        "sessionId": fields.take("sessionId", text),
        "title": fields.take("title", text),
        "cwd": fields.take("cwd", or_null(text)),
        "branch": fields.take("branch", or_null(text)),
        "updatedAt": fields.take("updatedAt", or_null(date_time)),
        "messageCount": fields.take("messageCount", count),
        "score": fields.take("score", finite),
        "source": {"presence": source.take("presence", one_of(*PRESENCES))},
        "evidence": _evidence(fields),
    }
    for name in ("filePath", "codexHome"):
        _optional(hit["source"], source, name, text)
    for name in ("resumeCommand", "executionHostId"):
        _optional(hit, fields, name, text)
    _optional(hit, fields, "duplicateCount", _several)
    return hit


def _evidence(fields: Fields) -> Optional[Dict[str, Any]]:
    if fields.take("evidence", _object_or_null) is None:
        return None
    evidence = fields.child("evidence")
    return {
        "snippet": evidence.take("snippet", text),
        "role": evidence.take("role", one_of(*ROLES)),
        "timestamp": evidence.take("timestamp", or_null(date_time)),
    }


def _route(fields: Fields) -> Dict[str, Any]:
    answer: Dict[str, Any] = {"route": fields.take("route", one_of(*ROUTES))}
    _optional(answer, fields, "repairedTerms", _repaired_terms)
    return answer


def _optional(answer: Dict[str, Any], fields: Fields, name: str, check: Any) -> None:
    """Copy a field that may be absent; one that is there must be right."""
    if fields.has(name):
        answer[name] = fields.take(name, check)


def _repaired_terms(value: Any) -> Optional[str]:
    """The contract leaves the items open: words, or ``{"from": word, "to": word}`` objects."""
    good = isinstance(value, list) and all(_word_or_words(item) for item in value)
    return None if good else "must be a list of words or of objects of words"


def _word_or_words(value: Any) -> bool:
    return isinstance(value, str) or isinstance(value, dict) and all(isinstance(word, str) for word in value.values())


def _several(value: Any) -> Optional[str]:
    return None if count(value) is None and value > 1 else "must be a whole number above 1"


def _object_or_null(value: Any) -> Optional[str]:
    return None if value is None or isinstance(value, dict) else "must be an object or null"


def _checked(answer: Dict[str, Any], issues: List[Issue]) -> Dict[str, Any]:
    if issues:
        raise InvalidPayload(issues)
    return answer
