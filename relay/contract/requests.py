"""The parameters of a search as they stand on the wire, and the checked request they become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from relay.contract.fields import (
    Fields,
    Issue,
    boolean,
    date_time,
    epoch_ms,
    finite,
    iso,
    number,
    one_of,
    text,
)

SEARCH_METHOD = "aiVault.searchSessions"
STATUS_METHOD = "aiVault.searchStatus"

#: Every agent a filter may name, in wire order; a build without a reader for one matches nothing.
AGENT_NAMES = tuple(
    "claude codex hermes pi omp prime-agent cursor gemini antigravity rovo copilot opencode grok openclaw devin "
    "droid cline kimi qwen goose amp crush".split()
)
SCOPES = ("conversation", "all")
FRESHNESS = ("indexed", "wait-until-current")
SORTS = ("relevance", "newest")

DEFAULT_LIMIT, MOST_HITS = 20, 100
MOST_PATHS, LONGEST_PATH = 64, 4096


class InvalidParams(ValueError):
    """Parameters that break the contract.

    ``issues`` are ``{"path", "message"}``, paths dotted (``filters.agents.0``) and empty for the parameters as a whole.
    """

    def __init__(self, issues: List[Issue]) -> None:
        super().__init__("; ".join(f"{issue['path'] or 'params'} {issue['message']}" for issue in issues))
        self.issues = issues


@dataclass(frozen=True)
class SearchRequest:
    """A checked search. ``limit`` is 1..100, ``since`` epoch milliseconds, ``scope_paths`` paths of the host searched.

    ``query`` has any length, and none of the texts holds a lone surrogate.
    """

    query: str
    scope: str = "all"
    freshness: str = "indexed"
    limit: int = DEFAULT_LIMIT
    cursor: Optional[str] = None
    agents: Tuple[str, ...] = ()
    scope_paths: Tuple[str, ...] = ()
    since: Optional[int] = None
    sort: str = "relevance"
    debug: bool = False


def parse_search(params: Any) -> SearchRequest:
    """The request that wire ``params`` stand for; unknown fields (and the old ``tier`` and ``refresh``) are ignored.

    Raises InvalidParams with every fault found, not only the first.
    """
    issues: List[Issue] = []
    fields = Fields(params, "", issues)
    filters = fields.child("filters", {})
    since = filters.take("since", date_time, None)
    request = SearchRequest(
        query=_well_formed(fields.take("query", text) or ""),
        scope=fields.take("scope", one_of(*SCOPES), "all"),
        freshness=fields.take("freshness", one_of(*FRESHNESS), "indexed"),
        limit=resolve_limit(fields.take("limit", number, DEFAULT_LIMIT)),
        cursor=_well_formed(fields.take("cursor", text, None)),
        agents=tuple(filters.items("agents", one_of(*AGENT_NAMES))),
        scope_paths=tuple(_well_formed(path) for path in filters.items("scopePaths", _scope_path, MOST_PATHS)),
        since=None if since is None else epoch_ms(since),
        sort=filters.take("sort", one_of(*SORTS), "relevance"),
        debug=fields.take("debug", boolean, False),
    )
    if issues:
        raise InvalidParams(issues)
    return request


def parse_status_params(params: Any) -> None:
    """Status takes nothing: no params, or an object, whose fields are ignored, or an empty list.

    Raises InvalidParams.
    """
    if params not in (None, []) and not isinstance(params, dict):
        raise InvalidParams([{"path": "", "message": "must be an object"}])


def resolve_limit(limit: float) -> int:
    """A wire ``limit`` as a number of hits: whole numbers are clamped to 1..100, anything else is the default of 20."""
    if finite(limit) is not None or limit != int(limit):
        return DEFAULT_LIMIT
    return max(1, min(MOST_HITS, int(limit)))


def search_params(request: SearchRequest) -> Dict[str, Any]:
    """The wire form of a request: ``parse_search`` of it gives the request again."""
    filters: Dict[str, Any] = {"sort": request.sort}
    if request.agents:
        filters["agents"] = list(request.agents)
    if request.scope_paths:
        filters["scopePaths"] = list(request.scope_paths)
    if request.since is not None:
        filters["since"] = iso(request.since)
    params: Dict[str, Any] = {
        "query": request.query,
        "scope": request.scope,
        "freshness": request.freshness,
        "limit": request.limit,
        "filters": filters,
        "debug": request.debug,
    }
    if request.cursor is not None:
        params["cursor"] = request.cursor
    return params


def _scope_path(value: Any) -> Optional[str]:
    good = text(value) is None and 1 <= len(value) <= LONGEST_PATH
    return None if good else f"must be a string of 1 to {LONGEST_PATH} characters"


def _well_formed(value: Any) -> Any:
    """The text with U+FFFD for each lone surrogate, which JSON can spell but UTF-8 (and SQLite) cannot hold."""
    if value is None or value.isascii():
        return value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
