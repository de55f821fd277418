"""Which search parameters are taken, what they become, and what is said of the others."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.contract.requests import (
    AGENT_NAMES,
    InvalidParams,
    SearchRequest,
    parse_search,
    resolve_limit,
    search_params,
)


def issues(params: Any) -> List[Dict[str, str]]:
    with pytest.raises(InvalidParams) as caught:
        parse_search(params)
    return caught.value.issues


def paths(params: Any) -> List[str]:
    return [issue["path"] for issue in issues(params)]


def test_a_query_alone_gets_every_default() -> None:
    assert parse_search({"query": "reattach race"}) == SearchRequest(
        query="reattach race",
        scope="all",
        freshness="indexed",
        limit=20,
        cursor=None,
        agents=(),
        scope_paths=(),
        since=None,
        sort="relevance",
        debug=False,
    )


def test_every_field_is_taken() -> None:
    request = parse_search(
        {
            "query": "q",
            "scope": "conversation",
            "freshness": "wait-until-current",
            "limit": 7,
            "cursor": "abc",
            "filters": {
                "agents": ["claude", "codex"],
                "scopePaths": ["/srv/app"],
                "since": "2026-03-01T09:30:00Z",
                "sort": "newest",
            },
            "debug": True,
        }
    )
    assert request == SearchRequest(
        query="q",
        scope="conversation",
        freshness="wait-until-current",
        limit=7,
        cursor="abc",
        agents=("claude", "codex"),
        scope_paths=("/srv/app",),
        since=1772357400000,
        sort="newest",
        debug=True,
    )


def test_unknown_fields_and_the_old_tier_and_refresh_are_ignored() -> None:
    params = {"query": "q", "tier": "deep", "refresh": True, "locality": "local", "filters": {"unknown": 1}}
    assert parse_search(params) == SearchRequest("q")


@pytest.mark.parametrize("params", [None, [], "q", 5, True])
def test_params_that_are_no_object_are_one_issue_without_a_path(params: Any) -> None:
    assert issues(params) == [{"path": "", "message": "must be an object"}]


def test_a_missing_query_is_named() -> None:
    assert issues({}) == [{"path": "query", "message": "is required"}]


def test_all_faults_are_told_at_once() -> None:
    found = paths(
        {
            "query": 1,
            "scope": "every",
            "freshness": None,
            "limit": "5",
            "cursor": 1,
            "filters": {"agents": ["claude", "clod"], "scopePaths": ["/a", ""], "since": "yesterday", "sort": "oldest"},
            "debug": "yes",
        }
    )
    assert sorted(found) == sorted(
        ["query", "scope", "freshness", "limit", "cursor", "debug"]
        + ["filters.agents.1", "filters.scopePaths.1", "filters.since", "filters.sort"]
    )


def test_an_issue_never_quotes_the_value() -> None:
    for issue in issues({"query": ["/home/SECRET"], "filters": {"agents": ["SECRET"], "since": "SECRET"}}):
        assert "SECRET" not in issue["message"] + issue["path"]


@pytest.mark.parametrize("filters", [None, [], "claude"])
def test_filters_are_an_object(filters: Any) -> None:
    assert paths({"query": "q", "filters": filters}) == ["filters"]


@pytest.mark.parametrize("field", ["scope", "freshness", "limit", "cursor", "debug"])
def test_null_is_no_value(field: str) -> None:
    assert paths({"query": "q", field: None}) == [field]


@pytest.mark.parametrize(
    ("limit", "resolved"),
    [
        (1, 1),
        (100, 100),
        (0, 1),
        (-5, 1),
        (101, 100),
        (10**400, 100),
        (5.0, 5),
        (2.5, 20),
        (-0.5, 20),
        (float("inf"), 20),
        (1e300, 100),
    ],
)
def test_whole_limits_are_clamped_and_others_are_the_default(limit: float, resolved: int) -> None:
    assert resolve_limit(limit) == resolved
    assert parse_search({"query": "q", "limit": limit}).limit == resolved


@pytest.mark.parametrize("limit", ["10", True, [], {}])
def test_a_limit_is_a_number(limit: Any) -> None:
    assert paths({"query": "q", "limit": limit}) == ["limit"]


def test_every_agent_of_the_contract_is_taken() -> None:
    assert len(AGENT_NAMES) == 22
    assert parse_search({"query": "q", "filters": {"agents": list(AGENT_NAMES)}}).agents == AGENT_NAMES


@pytest.mark.parametrize("name", ["Claude", "", "claude ", 1, None, ["claude"]])
def test_another_agent_name_is_refused(name: Any) -> None:
    assert paths({"query": "q", "filters": {"agents": [name]}}) == ["filters.agents.0"]


def test_scope_paths_have_bounds() -> None:
    def asked(found: List[Any]) -> Dict[str, Any]:
        return {"query": "q", "filters": {"scopePaths": found}}

    assert len(parse_search(asked(["/p"] * 64)).scope_paths) == 64
    assert paths(asked(["/p"] * 65)) == ["filters.scopePaths"]
    assert parse_search(asked(["/" + "p" * 4095])).scope_paths == ("/" + "p" * 4095,)
    assert paths(asked(["/" + "p" * 4096])) == ["filters.scopePaths.0"]
    assert paths(asked([7])) == ["filters.scopePaths.0"]
    assert paths(asked("/p")) == ["filters.scopePaths"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("since", "milliseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00+00:00", 0),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1969-12-31T19:00:00-05:00", 0),
        ("1970-01-01T05:30:00+0530", 0),
        ("1970-01-01T00:00Z", 0),
        ("1970-01-01T00:00:00.5Z", 500),
        ("1970-01-01T00:00:00.123Z", 123),
        ("1970-01-01T00:00:00.123456Z", 123),
        ("1970-01-01T00:00:00.123456789+00:00", 123),
        ("1969-12-31T23:59:59.999Z", -1),
        ("2024-02-29T12:00:00Z", 1709208000000),
    ],
)
def test_since_is_an_iso_date_time(since: str, milliseconds: int) -> None:
    assert parse_search({"query": "q", "filters": {"since": since}}).since == milliseconds


@pytest.mark.parametrize(
    "since",
    [
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-01-01 00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:60Z",
        "2026-01-01T00:00:00+24:00",
        "2026-01-01T00:00:00+00:60",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00Z\n",
        " 2026-01-01T00:00:00Z",
        "٢٠٢٦-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "7d",
        "",
        1772357400000,
        None,
    ],
)
def test_another_since_is_refused(since: Any) -> None:
    assert paths({"query": "q", "filters": {"since": since}}) == ["filters.since"]


def test_lone_surrogates_become_replacement_characters() -> None:
    request = parse_search({"query": "a\ud800b", "cursor": "\udfff", "filters": {"scopePaths": ["/\ud83d"]}})
    assert (request.query, request.cursor, request.scope_paths) == ("a\ufffdb", "\ufffd", ("/\ufffd",))
    assert parse_search({"query": "\U0001f600é"}).query == "\U0001f600é"


def test_a_long_query_reaches_the_engine_whole() -> None:
    assert len(parse_search({"query": "x" * 1_000_000}).query) == 1_000_000


REQUESTS = st.builds(
    SearchRequest,
    query=st.text(),
    scope=st.sampled_from(["all", "conversation"]),
    freshness=st.sampled_from(["indexed", "wait-until-current"]),
    limit=st.integers(1, 100),
    cursor=st.none() | st.text(),
    agents=st.lists(st.sampled_from(AGENT_NAMES)).map(tuple),
    scope_paths=st.lists(st.text(min_size=1), max_size=64).map(tuple),
    since=st.none() | st.integers(-62135596800000, 253402300799999),
    sort=st.sampled_from(["relevance", "newest"]),
    debug=st.booleans(),
)


@given(REQUESTS)
def test_the_wire_form_of_a_request_is_the_request(request: SearchRequest) -> None:
    assert parse_search(search_params(request)) == request


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["query", "filters", "since", "limit"]), inner),
)


@given(JSON)
def test_any_value_is_a_request_or_a_list_of_issues(value: Any) -> None:
    try:
        assert isinstance(parse_search(value), SearchRequest)
    except InvalidParams as invalid:
        assert invalid.issues and all(set(issue) == {"path", "message"} for issue in invalid.issues)
