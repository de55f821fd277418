"""``relay search``: one host's answer, or all hosts' as one list."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from relay.cli import options, reach, render
from relay.cli.options import AGENT, EXIT_CODES, FOUND, NO_ANSWER, NOTHING_FOUND, STALE, UNAVAILABLE, USAGE
from relay.cli.text import clean_all
from relay.contract.requests import DEFAULT_LIMIT, LONGEST_PATH, MOST_HITS, MOST_PATHS, SCOPES, SORTS, SearchRequest

_AGAIN = 2

_EXAMPLES = """\b
Examples:
  relay search reattach race
  relay search '"connection reset by peer"' --path .
  relay search flaky test --host all --since 7d --agent codex
  relay search 'repo:api TimeoutError' --host ssh:box --scope conversation
"""


@click.command(epilog=_EXAMPLES + "\n" + EXIT_CODES)
@click.argument("words", nargs=-1, required=True, metavar="QUERY…")
@options.ANY_HOST
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    default="all",
    show_default=True,
    help="Search what was said only (conversation), or tool calls and their output too (all).",
)
@click.option("--fresh", is_flag=True, help="Look for changes first; waits at most 5 s.")
@click.option(
    "--agent", "agents", type=AGENT, multiple=True, metavar="AGENT", help="Only this agent's sessions; repeatable."
)
@click.option(
    "--path",
    "scope_paths",
    multiple=True,
    metavar="FOLDER",
    help="Only sessions that ran in this folder of the host, or below it; repeatable.",
)
@click.option(
    "--since",
    type=options.Moment(),
    metavar="WHEN",
    help="Only sessions updated since then: 7d, 12h, 2026-03-01, 2026-03-01T09:30Z.",
)
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default="relevance",
    show_default=True,
    help="The order of the hits; --host all always gives the newest first.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, MOST_HITS, clamp=True),
    metavar="N",
    default=DEFAULT_LIMIT,
    show_default=True,
    help=f"Hits on a page, at most {MOST_HITS}.",
)
@click.option("--cursor", metavar="CURSOR", help="Go on where a page ended: the cursor it was given with.")
@click.option(
    "--timeout",
    type=options.Seconds(0.1, 3600),
    metavar="SECONDS",
    help="How long a host may take: 15 by default, 7.5 with --host all.",
)
@click.option("--debug", is_flag=True, help="Tell how the query was understood and how long it took.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as the protocol has it.")
def command(
    words: tuple[str, ...],
    host: str,
    scope: str,
    fresh: bool,
    agents: tuple[str, ...],
    scope_paths: tuple[str, ...],
    since: int | None,
    sort: str,
    limit: int,
    cursor: str | None,
    timeout: float | None,
    debug: bool,
    as_json: bool,
) -> None:
    """Find the sessions in which something was said or done.

    QUERY is plain words, or something exact: an identifier, a path, or a phrase in quotes of its own ('"like this"').
    repo:NAME and path:TEXT narrow it to where a session ran, and may stand alone.
    """
    style = render.open_stdout()
    request = SearchRequest(
        query=" ".join(words),
        scope=scope,
        freshness="wait-until-current" if fresh else "indexed",
        limit=limit,
        cursor=cursor,
        agents=agents,
        scope_paths=_paths(scope_paths, host),
        since=since,
        sort=sort,
        debug=debug,
    )
    why: dict[str, str] = {}
    note = ""
    if host == "all":
        response, why = _all(request, timeout)
    else:
        response, note = _one(host, request, timeout)
    if as_json:
        click.echo(json.dumps(clean_all(response), indent=2 if sys.stdout.isatty() else None))
    elif response["kind"] == "results":
        _show(response, request, style)
    for text in [*_explained(response, host, why), *filter(None, [note])]:
        click.echo(text, err=True)
    sys.exit(_exit_code(response))


def _paths(given: tuple[str, ...], host: str) -> tuple[str, ...]:
    """The folders as the host searched knows them; here a relative one is meant from where we stand."""
    if len(given) > MOST_PATHS:
        raise click.BadParameter(f"at most {MOST_PATHS} folders can be named", param_hint="--path")
    found = []
    for path in given:
        whole = os.path.abspath(os.path.expanduser(path)) if host == "local" else path
        if not path or not os.path.isabs(whole) or len(whole) > LONGEST_PATH:
            raise click.BadParameter(f"{path!r} is not a whole path of {host}, as /home/me/src is", param_hint="--path")
        found.append(whole)
    return tuple(found)


def _one(host: str, request: SearchRequest, timeout: float | None) -> tuple[dict[str, Any], str]:
    if host == "local":
        from relay.cli.local import LocalHost

        with reach.own_faults(), LocalHost() as here:
            if not here.swept():  # nobody has looked yet what there is to find
                request = dataclasses.replace(request, freshness="wait-until-current")
            return _asked(here, request, timeout)
    there = reach.one(host)
    from relay.client.fanout import close_all
    from relay.client.remote import TIMEOUT

    # The answer is shown before the connection is wound up.
    click.get_current_context().call_on_close(lambda: close_all([there]))
    with reach.faults():
        return _asked(there, request, timeout or TIMEOUT)


def _asked(host: Any, request: SearchRequest, timeout: float | None) -> tuple[dict[str, Any], str]:
    """The answer, and what to say when the index is not complete.

    A first page that the index outran is asked for again; a later one cannot be.
    """
    answer: dict[str, Any] = host.search(request, timeout)
    for _ in range(_AGAIN if request.cursor is None else 0):
        if answer["kind"] != "stale-cursor":
            break
        answer = host.search(request, timeout)
    if answer["kind"] == "results" and not answer["hits"]:
        return answer, render.incomplete(host.status(timeout))
    return answer, ""


def _all(request: SearchRequest, timeout: float | None) -> tuple[dict[str, Any], dict[str, str]]:
    """The merged answer, and for each host that is not in it the sentence that says why."""
    hosts = reach.everyone()
    from relay.cli.progress import HostProgress
    from relay.client import fanout, host_ids, merge
    from relay.client.faults import UnknownHost

    click.get_current_context().call_on_close(lambda: fanout.close_all(hosts))
    named = {host.id for host in hosts}
    if request.cursor is not None:
        with contextlib.suppress(merge.MalformedCursor):
            named &= set(merge.decode_cursor(request.cursor))

    def gone(host_id: str) -> UnknownHost:
        return UnknownHost(f"{host_ids.parse(host_id).label} is no configured host any more.")

    with HostProgress([host.id for host in hosts if host.id in named]) as progress:
        merged = fanout.search(hosts, gone, request, progress, timeout or fanout.LEG_TIMEOUT)
    why = {host_id: str(fault) for host_id, fault in merged.faults.items()}
    for host_id, reason in merged.reasons.items():
        why[host_id] = render.unavailable(reason, host_ids.parse(host_id).label)
    return merged.response, why


def _show(response: Mapping[str, Any], request: SearchRequest, style: render.Style) -> None:
    for text in render.hits(response, style):
        click.echo(text, color=style.color)
    for text in [*render.notes(response), *(render.debug(response) if request.debug else ())]:
        click.echo(text)
    if response["page"]["hasMore"]:
        click.echo(f"There is more: repeat the command with --cursor {shlex.quote(response['page']['cursor'])}")


def _explained(response: Mapping[str, Any], host: str, why: Mapping[str, str]) -> Iterator[str]:
    """Why there is no answer, or not everybody's; nothing when all is well."""
    kind = response["kind"]
    if kind == "unavailable":
        yield render.unavailable(response["reason"], host)
    elif kind == "stale-cursor":
        yield "The index changed since that page was made. Search again without --cursor."
    elif kind == "malformed-cursor":
        yield "This cursor is of another search, or damaged. Repeat the search it came from, or leave --cursor out."
    elif not response["hits"]:
        yield "Nothing found."
    for leg in response.get("hosts", ()):
        label = render.host_label(leg["executionHostId"])
        outcome = leg["outcome"]
        if outcome in ("unreachable", "unavailable"):
            yield f"No answer from {label}: {why[leg['executionHostId']]}"
        elif outcome != "results":
            yield f"{label}: its page is out of date ({outcome}). Search again without --cursor to have it back."


def _exit_code(response: Mapping[str, Any]) -> int:
    kinds = {"unavailable": UNAVAILABLE, "stale-cursor": STALE, "malformed-cursor": USAGE}
    if response["kind"] != "results":
        return kinds[response["kind"]]
    outcomes = {leg["outcome"] for leg in response.get("hosts", ())}
    if response["hits"]:
        return FOUND
    if not outcomes or "results" in outcomes:
        return NOTHING_FOUND
    return NO_ANSWER if "unreachable" in outcomes else UNAVAILABLE
