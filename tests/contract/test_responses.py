"""Which answers of another process are believed, and what is stripped of them."""

from __future__ import annotations

import copy
from typing import Any, Dict, List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.contract.responses import (
    ABSENT_STATUS,
    InvalidPayload,
    malformed_cursor,
    parse_response,
    parse_status,
    stale_cursor,
    unavailable,
)

HIT: Dict[str, Any] = {
    "agent": "claude",
    "sessionId": "s1",
    "title": "Reattach race",
    "cwd": None,
    "branch": None,
    "updatedAt": "2026-03-01T09:30:00.000Z",
    "messageCount": 4,
    "score": 2.25,
    "source": {"presence": "present"},
    "evidence": {"snippet": "the [[reattach]] race", "role": "assistant", "timestamp": None},
}
RESULTS: Dict[str, Any] = {
    "kind": "results",
    "hits": [HIT],
    "page": {"cursor": "abc", "hasMore": True},
    "generation": 12,
    "truncated": {"candidates": False, "snippets": 0, "query": False, "freshness": False},
    "durationMs": 3.5,
}


def changed(value: Dict[str, Any], path: str, new: Any) -> Dict[str, Any]:
    """A deep copy with the value at a dotted path replaced; ``...`` removes it."""
    value = copy.deepcopy(value)
    *parents, last = [int(name) if name.isdigit() else name for name in path.split(".")]
    place: Any = value
    for name in parents:
        place = place[name]
    if new is ...:
        del place[last]
    else:
        place[last] = new
    return value


def faults(parse: Any, value: Any) -> List[str]:
    with pytest.raises(InvalidPayload) as caught:
        parse(value)
    return [issue["path"] for issue in caught.value.issues]


def test_results_pass_as_they_are() -> None:
    assert parse_response(RESULTS) == RESULTS


def test_every_optional_field_passes() -> None:
    full = changed(RESULTS, "hits.0.source", {"presence": "present", "filePath": "/a", "codexHome": "/b"})
    full["hits"][0].update(resumeCommand="codex resume s1", executionHostId="ssh:box", duplicateCount=3)
    full["debug"] = {
        "route": "typo+or",
        "repairedTerms": [{"from": "reatach", "to": "reattach"}],
        "plannerReport": {"route": "typo+or", "repairedTerms": ["reattach"], "scope": "all"},
    }
    assert parse_response(full) == full


@pytest.mark.parametrize(
    "path", ["extra", "hits.0.extra", "hits.0.source.extra", "hits.0.evidence.extra", "page.extra"]
)
def test_unknown_fields_are_stripped(path: str) -> None:
    assert parse_response(changed(RESULTS, path, "x")) == RESULTS


@pytest.mark.parametrize(
    "path",
    [
        "kind",
        "hits",
        "page",
        "page.cursor",
        "page.hasMore",
        "generation",
        "truncated",
        "truncated.snippets",
        "durationMs",
    ]
    + ["hits.0." + name for name in HIT]
    + ["hits.0.source.presence", "hits.0.evidence.snippet", "hits.0.evidence.role", "hits.0.evidence.timestamp"],
)
def test_a_missing_field_is_an_invalid_payload(path: str) -> None:
    assert path in faults(parse_response, changed(RESULTS, path, ...))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("kind", "surprise"),
        ("hits", {}),
        ("hits.0", "hit"),
        ("hits.0.agent", "clod"),
        ("hits.0.updatedAt", "yesterday"),
        ("hits.0.updatedAt", 5),
        ("hits.0.messageCount", -1),
        ("hits.0.messageCount", 1.5),
        ("hits.0.score", float("nan")),
        ("hits.0.source.presence", "gone"),
        ("hits.0.source.filePath", None),
        ("hits.0.evidence", []),
        ("hits.0.evidence.role", "boss"),
        ("hits.0.duplicateCount", 1),
        ("hits.0.executionHostId", 7),
        ("generation", "12"),
        ("truncated.snippets", True),
        ("truncated.query", 0),
        ("durationMs", float("inf")),
        ("debug", {"route": "guess", "plannerReport": {"route": "or", "scope": "all"}}),
    ],
)
def test_a_wrong_value_is_an_invalid_payload(path: str, value: Any) -> None:
    found = faults(parse_response, changed(RESULTS, path, value))
    assert any(issue.startswith(path) for issue in found)


@pytest.mark.parametrize("value", [None, [], "results", {}, {"kind": None}, {"kind": ["results"]}])
def test_what_is_no_response_at_all(value: Any) -> None:
    assert faults(parse_response, value)


def test_operator_only_matches_carry_no_evidence() -> None:
    answer = changed(RESULTS, "hits.0.evidence", None)
    assert parse_response(answer) == answer


@pytest.mark.parametrize(
    "answer",
    [
        {"kind": "stale-cursor", "generation": 4},
        {"kind": "stale-cursor", "generation": 4, "expectedGeneration": 3},
        {"kind": "malformed-cursor"},
        {"kind": "unavailable", "reason": "disabled"},
        {"kind": "unavailable", "reason": "not-ready"},
        {"kind": "unavailable", "reason": "no-service"},
    ],
)
def test_the_other_answers(answer: Dict[str, Any]) -> None:
    assert parse_response({**answer, "extra": 1}) == answer


def test_builders_give_what_the_parser_takes() -> None:
    for answer in (stale_cursor(4), stale_cursor(4, 3), malformed_cursor(), unavailable("disabled")):
        assert parse_response(answer) == answer


def test_an_unknown_reason_is_refused() -> None:
    assert faults(parse_response, {"kind": "unavailable", "reason": "tired"}) == ["reason"]


def test_a_status_passes_and_unknown_fields_are_stripped() -> None:
    status = {
        **ABSENT_STATUS,
        "enabled": True,
        "phase": "degraded",
        "filesIndexed": 7,
        "degradedRoots": [{"root": "/a", "reason": "permission denied"}, {"reason": "gone"}],
        "lastReconcileAt": 1772357400000,
    }
    assert parse_status({**status, "extra": 1}) == status
    assert parse_status(ABSENT_STATUS) == ABSENT_STATUS


@pytest.mark.parametrize("name", list(ABSENT_STATUS))
def test_a_status_misses_nothing(name: str) -> None:
    assert name in faults(parse_status, changed(ABSENT_STATUS, name, ...))


@pytest.mark.parametrize(
    ("name", "value"),
    [("enabled", 1), ("phase", "busy"), ("filesDue", -1), ("generation", None), ("lastReconcileAt", "now")],
)
def test_a_wrong_status_is_refused(name: str, value: Any) -> None:
    assert faults(parse_status, changed(ABSENT_STATUS, name, value)) == [name]


def test_a_degraded_root_says_why() -> None:
    assert faults(parse_status, {**ABSENT_STATUS, "degradedRoots": [{"root": "/a"}]}) == ["degradedRoots.0.reason"]


NAMES = st.sampled_from(["kind", "hits", "page", "generation", "truncated", "reason", "source", "debug"])
LEAVES = (
    st.none() | st.booleans() | st.floats() | st.integers() | st.sampled_from(["results", "unavailable"]) | st.text()
)
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner))


@given(JSON)
def test_any_value_is_an_answer_or_an_invalid_payload(value: Any) -> None:
    for parse in (parse_response, parse_status):
        try:
            assert isinstance(parse(value), dict)
        except InvalidPayload as invalid:
            assert invalid.issues
