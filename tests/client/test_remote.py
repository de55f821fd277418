"""Hosts behind real processes: answers checked, stripped and stamped; old and new agents; many broken ones at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from relay.client import fanout
from relay.client.faults import AgentMissing, ClientFault, ProtocolFault, RemoteError, TimedOut
from relay.client.host_ids import HostId
from relay.client.hosts_file import Host
from relay.client.remote import RemoteHost
from relay.contract.requests import SearchRequest
from relay.contract.responses import ABSENT_STATUS
from tests.client.fake_agent import hit, results, status

AGENT = str(Path(__file__).with_name("fake_agent.py"))
REQUEST = SearchRequest(query="word", limit=3)


def runtime(*behaviour, name="fake"):
    return RemoteHost(Host(HostId("runtime", name), command=(sys.executable, "-S", AGENT, *behaviour)))


def canned(*answers):
    """A host that gives these results (or errors), one a question, whatever is asked."""
    code = "import json, sys\nfor answer, line in zip(json.loads(sys.argv[1]), sys.stdin):\n"
    code += " print(json.dumps({'jsonrpc': '2.0', 'id': json.loads(line)['id'], **answer}), flush=True)"
    return RemoteHost(Host(HostId("runtime", "old"), command=(sys.executable, "-S", "-c", code, json.dumps(answers))))


def test_a_hit_is_stamped_and_stripped():
    with runtime("leaking") as host:
        (found,) = host.search(REQUEST)["hits"]
    assert found["executionHostId"] == "runtime:fake"
    assert found["source"] == {"presence": "present"}
    assert "resumeCommand" not in found and "extra" not in found


def test_a_status_names_no_folder():
    with runtime("well") as host:
        answer = host.status()
    assert answer["degradedRoots"] == [{"reason": "Source root could not be verified."}]
    assert "nodes" not in answer
    assert answer["filesIndexed"] == 5


def test_the_connection_serves_several_questions():
    with runtime("noisy") as host:
        first = host.search(REQUEST)
        second = host.search(SearchRequest(query="word", limit=3, cursor=first["page"]["cursor"]))
        assert host.status()["enabled"]
    assert [hit["sessionId"][-1] for hit in first["hits"] + second["hits"]] == list("012345")


@pytest.mark.parametrize(
    "behaviour, fault",
    [
        ("lying", ProtocolFault),
        ("too-many", ProtocolFault),
        ("failing", RemoteError),
        ("not-found", AgentMissing),
        ("silent", TimedOut),
        ("flooding", ProtocolFault),
        ("dying", ClientFault),
    ],
)
def test_what_is_no_answer_is_a_fault(behaviour, fault):
    with runtime(behaviour) as host, pytest.raises(fault) as raised:
        host.search(REQUEST, 2)
    assert "secret" not in str(raised.value)
    assert str(raised.value).endswith((".", "`"))


def test_a_refusal_is_a_value():
    with runtime("disabled") as host:
        assert host.search(REQUEST) == {"kind": "unavailable", "reason": "disabled"}


# The last two wire shapes: agents without the methods or one of them, without newer fields, and with fields to come.


def test_a_host_without_the_methods_has_no_service():
    with runtime("ancient") as host:
        assert host.search(REQUEST) == {"kind": "unavailable", "reason": "no-service"}
        assert host.status() == ABSENT_STATUS


def test_a_host_that_searches_but_knows_no_status():
    with runtime("no-status") as host:
        assert host.status() == ABSENT_STATUS
        assert host.search(REQUEST)["kind"] == "results"


OPTIONAL = ["executionHostId", "duplicateCount", "resumeCommand"]


@pytest.mark.parametrize("field", OPTIONAL)
def test_an_older_host_leaves_an_optional_field_out(field):
    whole = hit(1, executionHostId="local", duplicateCount=2, resumeCommand="claude")
    del whole[field]
    with canned({"result": results([whole])}) as host:
        (found,) = host.search(REQUEST)["hits"]
    assert found["executionHostId"] == "runtime:old"
    assert ("duplicateCount" in found) == (field != "duplicateCount")


@pytest.mark.parametrize(
    "field", ["sessionId", "title", "cwd", "updatedAt", "messageCount", "score", "source", "evidence"]
)
def test_a_field_that_must_be_there_is_missed(field):
    less = hit(1)
    del less[field]
    with canned({"result": results([less])}) as host, pytest.raises(ProtocolFault, match="up to date"):
        host.search(REQUEST)


def test_a_newer_host_adds_fields_everywhere():
    answer = results([hit(1, colour="red", source={"presence": "present", "mount": "/x"})])
    answer["evidence"] = answer["page"]["next"] = answer["truncated"]["hosts"] = 1
    with canned({"result": answer}, {"result": status(watchers=4)}) as host:
        found = host.search(REQUEST)
        assert set(host.status()) == set(ABSENT_STATUS)
    assert set(found) == {"kind", "hits", "page", "generation", "truncated", "durationMs"}
    assert set(found["page"]) == {"cursor", "hasMore"}
    assert set(found["truncated"]) == {"candidates", "snippets", "query", "freshness"}
    assert set(found["hits"][0]) == {*hit(1), "executionHostId"}


@pytest.mark.parametrize("cursor", ["\x1b[2J", "é", "a\nb"])
def test_a_cursor_that_steers_the_terminal_is_no_cursor(cursor):
    with canned({"result": results([hit(1)], cursor)}) as host, pytest.raises(ProtocolFault):
        host.search(REQUEST)


@pytest.mark.parametrize("expected", [{}, {"expectedGeneration": 4}])
def test_a_stale_cursor_with_and_without_what_was_expected(expected):
    stale = {"kind": "stale-cursor", "generation": 5, **expected}
    with canned({"result": {**stale, "incarnation": "x"}}) as host:
        assert host.search(REQUEST) == stale


def test_a_page_that_has_more_but_no_cursor_is_no_page():
    answer = results([hit(1)])
    answer["page"]["hasMore"] = True
    with canned({"result": answer}) as host, pytest.raises(ProtocolFault):
        host.search(REQUEST)


BROKEN = [
    "ancient",
    "lying",
    "flooding",
    "dying",
    "silent",
    "not-found",
    "failing",
    "chatty",
    "too-many",
    "stubborn",
    "deaf",
]


def test_broken_hosts_cost_the_others_nothing():
    hosts = [runtime(behaviour, name=behaviour) for behaviour in BROKEN]
    hosts += [runtime("well", name=f"well-{number}") for number in range(4)]
    merged = fanout.search(hosts, lambda host_id: TimedOut("gone"), SearchRequest(query="word", limit=100), timeout=4)
    for host in hosts:
        host.close()
    outcomes = {leg["executionHostId"][8:]: leg["outcome"] for leg in merged.response["hosts"]}
    assert outcomes.pop("ancient") == "unavailable"
    assert {name for name, outcome in outcomes.items() if outcome == "results"} == {
        f"well-{number}" for number in range(4)
    }
    assert set(outcomes.values()) == {"results", "unreachable"}
    answered = {hit["executionHostId"] for hit in merged.response["hits"]}
    assert answered >= {f"runtime:well-{number}" for number in range(4)}
    assert set(merged.faults) == {f"runtime:{name}" for name in BROKEN if name != "ancient"}


FLOOD = """if True:
    import resource, sys
    from relay.client import fanout
    from relay.client.host_ids import HostId
    from relay.client.hosts_file import Host
    from relay.client.remote import RemoteHost
    from relay.contract.requests import SearchRequest
    line = "head -c 1000000 /dev/zero | tr '\\\\0' x; sleep 60"
    hosts = [RemoteHost(Host(HostId("runtime", str(number)), command=line)) for number in range(64)]
    merged = fanout.search(hosts, ValueError, SearchRequest(query="word"), timeout=3)
    assert len(merged.faults) == 64, merged
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_sixty_four_floods_stay_within_memory():
    result = subprocess.run([sys.executable, "-c", FLOOD], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(result.stdout) * unit < 300 << 20
