"""The exposure policy of the relay transport: which parts of an answer may leave the host (or be believed of one)."""

from __future__ import annotations

from typing import Any, Dict, Mapping

DEGRADED_REASON = "Source root could not be verified."

#: What of a hit crosses the relay. ``resumeCommand`` is not among them, and ``source`` keeps its presence alone.
_HIT_FIELDS = (
    "executionHostId",
    "agent",
    "sessionId",
    "title",
    "cwd",
    "branch",
    "updatedAt",
    "messageCount",
    "score",
    "evidence",
    "duplicateCount",
)


def for_relay(response: Mapping[str, Any]) -> Dict[str, Any]:
    """A search response as the relay may carry it; a new dict, the argument stays as it is."""
    visible = dict(response)
    if "hits" in visible:
        visible["hits"] = [_hit(hit) for hit in visible["hits"]]
    return visible


def status_for_relay(status: Mapping[str, Any]) -> Dict[str, Any]:
    """A status as the relay may carry it: the list of degraded roots keeps its length and nothing else."""
    visible = dict(status)
    visible["degradedRoots"] = [{"reason": DEGRADED_REASON} for _ in status["degradedRoots"]]
    return visible


def _hit(hit: Mapping[str, Any]) -> Dict[str, Any]:
    visible = {name: hit[name] for name in _HIT_FIELDS if name in hit}
    visible["source"] = {"presence": hit["source"]["presence"]}
    return visible
