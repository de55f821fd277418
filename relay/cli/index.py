"""``relay index``: one full pass over this account's transcripts in the foreground."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any, Dict

import click

from relay.cli import render
from relay.cli.options import FOUND, NO_ANSWER, UNAVAILABLE

if TYPE_CHECKING:
    from relay.indexer.full_pass import Progress

_EPILOG = """\b
Exit codes: 0 everything was read, 3 indexing is off here or this Python has no FTS5,
4 the index cannot be written."""

#: Seconds between two drawings of the bar.
_DRAW = 0.1


@click.command(epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")
def command(as_json: bool) -> None:
    """Read everything that is new since the last time, and end. `relay serve` does the same by itself."""
    from relay import paths, policy
    from relay.index.faults import IndexFault
    from relay.index.opening import fts5_available
    from relay.indexer.full_pass import run_full_pass
    from relay.transcripts.registry import Env

    consent = policy.read(paths.config_folder())
    if not consent.enabled:
        click.echo(render.unavailable("disabled", "local"), err=True)
        sys.exit(UNAVAILABLE)
    if not fts5_available():
        click.echo(render.unavailable("no-service", "local"), err=True)
        sys.exit(UNAVAILABLE)
    env = Env.of_this_account(consent.roots)
    with _Bar() as bar:
        try:
            last = run_full_pass(paths.state_folder(), env, consent.history_days, bar)
        except IndexFault as fault:
            bar.erase()
            click.echo(str(fault), err=True)
            sys.exit(NO_ANSWER)
    summary = _summary(last)
    click.echo(json.dumps(summary) if as_json else _sentence(summary))
    sys.exit(FOUND)


def _summary(last: Progress) -> Dict[str, Any]:
    from relay import paths
    from relay.index import opening
    from relay.indexer import standing

    path = opening.database_path(paths.state_folder())
    stored = standing.stored(path)
    return {
        "filesRead": last.files_done,
        "bytesRead": last.bytes_done,
        "seconds": round(last.seconds, 3),
        "filesIndexed": stored["filesIndexed"],
        "filesFailed": stored["filesFailed"],
        "indexBytes": os.path.getsize(path) if os.path.exists(path) else 0,
        "byRunningAgent": last.by_agent,
    }


def _sentence(summary: Dict[str, Any]) -> str:
    failed = f", {summary['filesFailed']} could not be read (see `relay agents`)" if summary["filesFailed"] else ""
    if summary["byRunningAgent"]:
        return f"A running agent has brought the index up to date: {_files(summary['filesIndexed'])}{failed}."
    rate = summary["bytesRead"] / 1e6 / max(summary["seconds"], 0.001)
    return (
        f"Read {_files(summary['filesRead'])} ({summary['bytesRead'] / 1e6:.1f} MB) in {summary['seconds']:.1f} s "
        f"({rate:.0f} MB/s): {_files(summary['filesIndexed'])} indexed{failed}."
    )


def _files(number: int) -> str:
    return render.count(number, "file")


class _Bar:
    """One line on stderr with files, MB, rate and time left; nothing when that is no terminal."""

    def __init__(self) -> None:
        self._live = render.is_live(sys.stderr)
        self._drawn = 0.0

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *exc: object) -> None:
        self.erase()

    def erase(self) -> None:
        """Take the line away."""
        if self._live and self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._drawn = 0.0

    def __call__(self, now: Progress) -> None:
        moment = time.monotonic()
        if not self._live or now.finished or moment - self._drawn < _DRAW:
            return
        self._drawn = moment
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write("\r\x1b[K" + _drawing(now, width))
        sys.stderr.flush()


def _drawing(now: Progress, width: int) -> str:
    if now.by_agent:
        return f"A running agent is reading: {now.files_total - now.files_done} files left"[:width]
    share = now.bytes_done / now.bytes_total if now.bytes_total else 1.0
    rate = now.bytes_done / now.seconds if now.seconds > 0 else 0.0
    left = f"{(now.bytes_total - now.bytes_done) / rate:.0f} s left" if rate > 0 else "…"
    text = (
        f" {share:4.0%}  {now.files_done}/{now.files_total} files  "
        f"{now.bytes_done / 1e6:.0f}/{now.bytes_total / 1e6:.0f} MB  {rate / 1e6:.1f} MB/s  {left}"
    )
    room = width - len(text)
    if room < 8:
        return text.strip()[:width]
    full = int(min(room, 30) * share)
    return "█" * full + "░" * (min(room, 30) - full) + text
