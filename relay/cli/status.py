"""``relay status``: what the index of one host, or of every host, is doing."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from relay.cli import options, reach, render
from relay.cli.options import EXIT_CODES, FOUND, NO_ANSWER, UNAVAILABLE
from relay.cli.text import clean_all

if TYPE_CHECKING:
    from relay.client.fanout import Outcome

#: Seconds.
_LOOK_AROUND, _LOOK_AGAIN = 2.0, 0.05

_EXAMPLES = """\b
Examples:
  relay status
  relay status --host ssh:box
  relay status --host all --json
"""


@click.command(epilog=_EXAMPLES + "\n" + EXIT_CODES)
@options.ANY_HOST
@click.option(
    "--timeout",
    type=options.Seconds(0.1, 3600),
    metavar="SECONDS",
    help="How long a host may take: 15 by default, 7.5 with --host all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as the protocol has it.")
def command(host: str, timeout: float | None, as_json: bool) -> None:
    """Show whether a host's transcripts are indexed, how many, and how fresh the index is."""
    style = render.open_stdout()
    if host == "all":
        sys.exit(_show_all(timeout, as_json, style))
    answer = _one(host, timeout)
    if as_json:
        click.echo(_json(answer))
    else:
        for text in render.status(answer, host, style):
            click.echo(text, color=style.color)
    if not answer["enabled"]:
        click.echo(render.unavailable("disabled", host), err=True)
    sys.exit(FOUND if answer["enabled"] else UNAVAILABLE)


def _one(host: str, timeout: float | None) -> dict[str, Any]:
    if host == "local":
        from relay.cli.local import LocalHost

        with reach.own_faults(), LocalHost() as here:
            return _settled(here, 0)
    there = reach.one(host)
    from relay.client.fanout import close_all
    from relay.client.remote import TIMEOUT

    try:
        with reach.faults():
            return _settled(there, timeout or TIMEOUT)
    finally:
        close_all([there])


def _settled(host: Any, timeout: float) -> dict[str, Any]:
    """The status of a host whose agent has just started, once it has looked around; that takes 2 s at most."""
    until = time.monotonic() + min(_LOOK_AROUND, timeout / 2 or _LOOK_AROUND)
    while True:
        answer: dict[str, Any] = host.status(timeout)
        looking = answer["enabled"] and answer["phase"] in ("idle", "indexing") and not answer["filesDue"]
        if not looking or time.monotonic() > until:
            return answer
        time.sleep(_LOOK_AGAIN)


def _show_all(timeout: float | None, as_json: bool, style: render.Style) -> int:
    hosts = reach.everyone()
    from relay.cli.progress import HostProgress
    from relay.client import fanout

    click.get_current_context().call_on_close(lambda: fanout.close_all(hosts))
    with HostProgress([host.id for host in hosts]) as progress:
        outcomes = fanout.ask(hosts, _settled, timeout or fanout.LEG_TIMEOUT, progress)
    if as_json:
        click.echo(_json({"hosts": [_entry(outcome) for outcome in outcomes]}))
    else:
        for text in render.table(
            [
                ("HOST", "STATE", "INDEXED", "WAITING", "FAILED", "UNVERIFIED", "LAST LOOK"),
                *(_row(outcome, style) for outcome in outcomes),
            ]
        ):
            click.echo(text)
    return _unheard(outcomes)


def _entry(outcome: Outcome) -> dict[str, Any]:
    if outcome.answer is None:
        return {"executionHostId": outcome.host_id, "outcome": "unreachable"}
    return {"executionHostId": outcome.host_id, "outcome": "status", "status": outcome.answer}


def _row(outcome: Outcome, style: render.Style) -> tuple[str, ...]:
    label, answer = render.host_label(outcome.host_id), outcome.answer
    if answer is None:
        return (label, "no answer", "", "", "", "", "")
    looked = answer["lastReconcileAt"]
    counts = [f"{answer[name]:,.0f}" for name in ("filesIndexed", "filesDue", "filesFailed")]
    when = render.moment(looked, style.now) if looked else "never"
    return (label, render.state(answer), *counts, str(len(answer["degradedRoots"])), when)


def _unheard(outcomes: Sequence[Outcome]) -> int:
    """Say why hosts did not answer; the exit code for all of them together."""
    for outcome in outcomes:
        if outcome.fault:
            click.echo(f"No answer from {render.host_label(outcome.host_id)}: {outcome.fault}", err=True)
    answers = [outcome.answer for outcome in outcomes if outcome.answer]
    if any(answer["enabled"] for answer in answers):
        return FOUND
    return UNAVAILABLE if answers else NO_ANSWER


def _json(value: Any) -> str:
    return json.dumps(clean_all(value), indent=2 if sys.stdout.isatty() else None)
