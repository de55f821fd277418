"""The answer of the scope ``all``: many hosts' pages as one page, newest first. Pure functions over responses."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from relay.client.faults import UnknownHost
from relay.client.host_ids import LOCAL, parse
from relay.contract.fields import epoch_ms

RESULTS, UNREACHABLE = "results", "unreachable"
#: The cursor of a host whose first page is still to be shown.
FIRST_PAGE = ""
_LONGEST_CURSOR = 1 << 20


class MalformedCursor(ValueError):
    """Not the cursor of a merged page."""


class Leg(NamedTuple):
    """One host's part in an answer.

    ``cursor`` is the one it was asked with (None for the first page), ``response`` None when it did not answer.
    """

    host_id: str
    cursor: str | None
    response: Mapping[str, Any] | None

    @property
    def hits(self) -> Sequence[Mapping[str, Any]]:
        """The hits it gave; none unless its answer is results."""
        return self.response["hits"] if self.response and self.response["kind"] == RESULTS else ()

    @property
    def outcome(self) -> str:
        """What the answer says of it: its response's kind, or unreachable."""
        return self.response["kind"] if self.response else UNREACHABLE


def cut(legs: Sequence[Leg], limit: int) -> list[int]:
    """How many of each leg's hits make a page of ``limit``: always its first ones, so that a cursor can follow them.

    The newest head goes first; of equal ones that of the earlier leg.
    """
    shown = [0] * len(legs)
    heads = {place: _age(leg.hits[0]) for place, leg in enumerate(legs) if leg.hits}
    for _ in range(limit):
        if not heads:
            break
        place = min(heads, key=lambda place: (heads[place], place))
        shown[place] += 1
        if shown[place] < len(legs[place].hits):
            heads[place] = _age(legs[place].hits[shown[place]])
        else:
            del heads[place]
    return shown


def page(legs: Sequence[Leg], shown: Sequence[int], kept: Mapping[str, str], duration_ms: float) -> dict[str, Any]:
    """The merged response: the first ``shown`` hits of each leg.

    ``kept`` gives the cursor for a leg that goes on from elsewhere than the end of its response (FIRST_PAGE for its
    beginning); the others go on where their response says.
    """
    hits = [{**hit, "executionHostId": leg.host_id} for leg, count in zip(legs, shown) for hit in leg.hits[:count]]
    hits.sort(key=_age)
    cursors: dict[str, str] = {}
    truncated = {"candidates": False, "snippets": 0, "query": False, "freshness": False}
    generation = 0
    for leg in legs:
        if leg.host_id in kept:
            cursors[leg.host_id] = kept[leg.host_id]
        elif leg.outcome == RESULTS and leg.response and leg.response["page"]["hasMore"]:
            cursors[leg.host_id] = leg.response["page"]["cursor"]
        if leg.host_id == LOCAL and leg.response:
            generation = leg.response.get("generation", 0)
        if leg.outcome == RESULTS and leg.response:
            for name, value in leg.response["truncated"].items():
                truncated[name] = truncated[name] + value if name == "snippets" else truncated[name] or value
    return {
        "kind": RESULTS,
        "hits": hits,
        "page": {"cursor": encode_cursor(cursors) if cursors else None, "hasMore": bool(cursors)},
        "generation": generation,
        "truncated": truncated,
        "durationMs": duration_ms,
        "hosts": [{"executionHostId": leg.host_id, "outcome": leg.outcome} for leg in legs],
    }


def encode_cursor(cursors: Mapping[str, str]) -> str:
    """The merged cursor: base64url (without padding) of a JSON object from host id to that host's cursor."""
    text = json.dumps(cursors, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode("ascii")).rstrip(b"=").decode("ascii")


def decode_cursor(cursor: str) -> dict[str, str]:
    """The map a merged cursor holds, host ids as they are written on the wire. Raises MalformedCursor."""
    if len(cursor) > _LONGEST_CURSOR:
        raise MalformedCursor("too long")
    try:
        text = base64.b64decode(cursor.rstrip("=").encode("ascii") + b"=" * (-len(cursor.rstrip("=")) % 4), b"-_", True)
        cursors = json.loads(text)
    except (binascii.Error, ValueError, RecursionError) as error:
        raise MalformedCursor("not base64url of JSON") from error
    if not isinstance(cursors, dict) or not cursors or not all(isinstance(value, str) for value in cursors.values()):
        raise MalformedCursor("not a map from host to cursor")
    try:
        decoded = {str(parse(host)): value for host, value in cursors.items()}
    except UnknownHost as error:
        raise MalformedCursor("not a host") from error
    if len(decoded) != len(cursors):
        raise MalformedCursor("a host named twice")
    return decoded


def _age(hit: Mapping[str, Any]) -> float:
    """A key that sorts the newest first and hits without a time last."""
    moment = epoch_ms(hit["updatedAt"]) if hit["updatedAt"] else None
    return float("inf") if moment is None else -moment
