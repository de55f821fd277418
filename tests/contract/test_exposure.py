"""What of an answer may cross the relay."""

from __future__ import annotations

import json
from typing import Any, Dict

from relay.contract.exposure import for_relay, status_for_relay
from relay.contract.responses import ABSENT_STATUS


def hit(**more: Any) -> Dict[str, Any]:
    return {
        "agent": "codex",
        "sessionId": "s1",
        "title": "Fix it",
        "cwd": "/srv/app",
        "branch": "main",
        "updatedAt": "2026-03-01T09:30:00.000Z",
        "messageCount": 2,
        "score": 1.5,
        "source": {"presence": "present", "filePath": "/home/SECRET/r.jsonl", "codexHome": "/home/SECRET"},
        "evidence": {"snippet": "[[fix]] it", "role": "user", "timestamp": None},
        **more,
    }


def results(*hits: Dict[str, Any]) -> Dict[str, Any]:
    return {"kind": "results", "hits": list(hits), "generation": 3, "durationMs": 1.0}


def test_a_hit_keeps_its_presence_and_loses_paths_and_the_resume_command() -> None:
    full = hit(resumeCommand="cd /home/SECRET && codex resume s1", duplicateCount=2, surprise="SECRET")
    answer = for_relay(results(full))
    assert "SECRET" not in json.dumps(answer)
    assert answer["hits"][0] == {
        **{name: value for name, value in hit().items() if name != "source"},
        "source": {"presence": "present"},
        "duplicateCount": 2,
    }
    assert (answer["generation"], answer["durationMs"]) == (3, 1.0)


def test_the_argument_stays_as_it_is() -> None:
    original = results(hit())
    for_relay(original)
    assert original == results(hit())


def test_applying_the_policy_twice_changes_nothing_more() -> None:
    once = for_relay(results(hit(executionHostId="ssh:box")))
    assert for_relay(once) == once


def test_answers_without_hits_pass() -> None:
    assert for_relay({"kind": "unavailable", "reason": "disabled"}) == {"kind": "unavailable", "reason": "disabled"}


def test_degraded_roots_keep_their_number_alone() -> None:
    status = {**ABSENT_STATUS, "degradedRoots": [{"root": "/SECRET", "reason": "EACCES /SECRET"}, {"reason": "SECRET"}]}
    answer = status_for_relay(status)
    assert answer["degradedRoots"] == [{"reason": "Source root could not be verified."}] * 2
    assert "SECRET" not in json.dumps(answer)
    assert status["degradedRoots"][0]["root"] == "/SECRET"
