"""relay-installer: puts the agent on hosts, keeps it up to date, takes it away."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

import relay
from relay.cli.options import HostType, Seconds
from relay.cli.program import Program

EXIT_CODES = """\b
Exit codes, when one host is named (several: the highest one):
  0 done                     20 no usable Python        26 the agent does not answer
  2 wrong command or list    21 no space                27 another install is running
 10 unreachable              22 quota used up           28 the host has a newer version
 11 host key unknown         23 home is read-only       29 there is no agent
 12 host key changed         24 home is not writable    30 stopped halfway
 13 authentication           25 upload damaged          31 not all could be removed
 14 timed out                17 no shell for commands   32 `relay enable` failed
 15 connection lost          18 no home folder          33 another fault of the host
 16 no further session       34 no bundle can be built  35 check found problems"""

_HOST: Any = HostType(without="runtime:")
_TRANSPORT = click.option(
    "--transport",
    type=click.Choice(["paramiko", "openssh"]),
    help="The SSH client to reach the host with (remembered).",
)
_ACCEPT_NEW = click.option(
    "--accept-new", is_flag=True, help="Add a host key that is not known; a changed one is never accepted."
)
_TIMEOUT = click.option(
    "--timeout",
    type=Seconds(1, 600),
    default=20.0,
    show_default=True,
    metavar="SECONDS",
    help="How long connecting may take.",
)


def _examples(*lines: str) -> str:
    return "\n".join(["\b", "Examples:", *(f"  relay-installer {line}" for line in lines)])


_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of sentences.")


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES)
@click.version_option(relay.__version__, prog_name="relay-installer")
def main() -> None:
    """Put the search agent on the machines you reach by SSH, keep it up to date, and take it away again.

    HOST is what you type after `ssh` (an alias of ~/.ssh/config, user@box, user@box:port), also written ssh:HOST;
    `local` is this machine. Your ssh configuration, keys and agent are used as ssh uses them.
    """


@main.command(
    short_help="Install the agent on a host, or repair or upgrade it.",
    epilog=_examples("install ssh:box --enable", "install me@gpu.example:2222 --enable --history-days 90"),
)
@click.argument("host", type=_HOST)
@click.option(
    "--enable/--no-enable", default=None, help="Turn indexing on there, or leave it off, without being asked."
)
@click.option(
    "--history-days", type=click.IntRange(1, 36500), help="With --enable: index sessions of the last N days only."
)
@click.option("--downgrade", is_flag=True, help="Replace a newer version on the host by this one.")
@_ACCEPT_NEW
@_TRANSPORT
@_TIMEOUT
@_JSON
def install(
    host: str,
    enable: bool | None,
    history_days: int | None,
    downgrade: bool,
    accept_new: bool,
    transport: str | None,
    timeout: float,
    as_json: bool,
) -> None:
    """Install the agent on HOST, or repair or upgrade it; a second time changes nothing.

    Indexing stays off unless you say --enable or yes at the prompt: then the host's own `relay enable` is run as your
    account there. Nothing that serves is touched before the new version has answered on the host.
    """
    from installer import work
    from relay.client.ssh import has_terminal

    if history_days and not enable:
        raise click.UsageError("--history-days needs --enable.")
    found, bundle, progress = _host(host, transport), _bundle(), _progress()
    label = found.id.label

    def ask() -> bool | None:
        progress.clear()
        if enable is not None or as_json or not has_terminal():
            return enable
        return click.confirm(
            f"Index the coding-agent sessions of your account on {label}, so that they can be searched?", err=True
        )

    progress.show(label, "connecting")
    report = work.install(
        found,
        _way(timeout, accept_new, True),
        bundle,
        downgrade=downgrade,
        progress=lambda step, share: progress.show(label, step, share),
        ask=ask,
        history_days=history_days,
    )
    progress.clear()
    _finish([report], as_json)


@main.command(
    short_help="Bring the agents of hosts up to date, all at once.",
    epilog=_examples("upgrade ssh:box ssh:gpu", "upgrade --all"),
)
@click.argument("hosts", type=_HOST, nargs=-1)
@click.option("--all", "every", is_flag=True, help="Every SSH host of `relay hosts list`.")
@_TIMEOUT
@_JSON
def upgrade(hosts: Sequence[str], every: bool, timeout: float, as_json: bool) -> None:
    """Bring the agent on HOSTS up to date, all at once, and show how each went.

    Where an upgrade fails, the version that was there goes on serving; sessions that run are never cut.
    """
    from concurrent.futures import ThreadPoolExecutor

    from installer import targets, work

    if bool(hosts) == every:
        raise click.UsageError("Name hosts, or say --all.")
    found, bundle, progress = _guarded(lambda: targets.hosts(hosts, every)), _bundle(), _progress()
    way = _way(timeout, False, len(found) == 1)

    def one(host: Any) -> work.Report:
        return work.upgrade(host, way, bundle, lambda step, share: progress.show(host.id.label, step, share))

    with ThreadPoolExecutor(16) as pool:
        reports = list(pool.map(one, found))
    progress.clear()
    if not reports and not as_json:
        click.echo("There are no SSH hosts yet: relay-installer install HOST")
    _finish(reports, as_json, table=True)


@main.command(
    short_help="Remove every byte that was put on a host.",
    epilog=_examples("uninstall ssh:box", "uninstall ssh:box --purge -v"),
)
@click.argument("host", type=_HOST)
@click.option("--purge", is_flag=True, help="Remove the index and the policy too.")
@click.option("--verbose", "-v", is_flag=True, help="List every path that was removed.")
@_TRANSPORT
@_TIMEOUT
@_JSON
def uninstall(host: str, purge: bool, verbose: bool, transport: str | None, timeout: float, as_json: bool) -> None:
    """Remove every byte that was put on HOST, and look whether it is gone. Transcripts are never touched."""
    from installer import work

    report = work.uninstall(_host(host, transport), _way(timeout, False, True), purge=purge)
    if verbose and not as_json:
        for path in report.more.get("removed", ()):
            click.echo(f"removed {_line(path)}")
    _finish([report], as_json)


@main.command(
    short_help="Say what is wrong with a host, and change nothing.",
    epilog=_examples("check ssh:box", "check local --json"),
)
@click.argument("host", type=_HOST)
@_ACCEPT_NEW
@_TRANSPORT
@_TIMEOUT
@_JSON
def check(host: str, accept_new: bool, transport: str | None, timeout: float, as_json: bool) -> None:
    """Look at HOST and change nothing: what an install would meet and how the agent does, each with its remedy."""
    from installer import check as checking
    from installer import work

    found, bundle = _host(host, transport), _bundle()

    def do(connection: Any, target: str) -> work.Report:
        findings = checking.examine(connection, target, bundle)
        problems = sum(finding.level == "problem" for finding in findings)
        more = {"findings": [finding._asdict() for finding in findings]}
        text = "\n".join(f"{finding.level:8}{finding.name}: {finding.text}" for finding in findings)
        return work.Report(found.id.label, "problems" if problems else "sound", text, 35 if problems else 0, more)

    _finish([work.on_host(found, _way(timeout, accept_new, True), do)], as_json)


@main.command(
    short_help="Write the single-file agent.",
    epilog=_examples("bundle -o session-relay.pyz", "bundle -o session-relay.pyz --json"),
)
@click.option("--output", "-o", type=click.Path(dir_okay=False), required=True, help="The file to write.")
@_JSON
def bundle(output: str, as_json: bool) -> None:
    """Write the single-file agent, for boxes that are set up some other way: `python3 -I FILE serve`.

    The same code and dependencies give the same bytes.
    """
    import os

    built = _bundle()
    try:
        with open(output, "wb") as file:
            file.write(built.data)
        os.chmod(output, 0o755)
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written: {error.strerror}.") from error
    if as_json:
        entry = {"path": output, "agent": built.name, "bytes": len(built.data), "sha256": built.sha256}
        click.echo(json.dumps(entry, indent=2))
        return
    click.echo(f"{output}: {built.name}, {len(built.data)} bytes, sha256 {built.sha256}")


def _guarded(step: Any) -> Any:
    """The value of ``step()``; a fault ends the program with its sentence (or JSON) and its code."""
    from installer import faults, work
    from relay.client.faults import ClientFault

    try:
        return step()
    except (ClientFault, faults.InstallFault) as fault:
        asked = click.get_current_context().params
        if asked.get("as_json"):
            names = asked.get("hosts") or [asked.get("host") or "all"]
            _finish([work.failed(" ".join(names), fault)], True, table="hosts" in asked)
        error = click.ClickException(_lines(str(fault)))
        error.exit_code = faults.exit_code(fault)
        raise error from fault


def _host(text: str, transport: str | None) -> Any:
    from installer import targets

    return _guarded(lambda: targets.host(text, transport))


def _bundle() -> Any:
    from installer import bundle as building

    return _guarded(building.build)


def _progress() -> Any:
    from installer.progress import Progress

    return Progress()


def _way(timeout: float, accept_new: bool, interactive: bool) -> Any:
    from installer.work import Way

    return Way(timeout=timeout, interactive=interactive, accept_new=accept_new)


def _line(text: str) -> str:
    from relay.cli.text import line

    return line(text, 4000)


def _lines(text: str) -> str:
    from relay.cli.text import clean

    return "\n".join(map(clean, text.split("\n")))


def _finish(reports: Sequence[Any], as_json: bool, table: bool = False) -> None:
    """Print the reports and end with the highest exit code."""
    if as_json:
        found = [report.as_json() for report in reports]
        click.echo(json.dumps(found if table else found[0], indent=2))
    else:
        width = max((len(report.host) for report in reports), default=0)
        for report in reports:
            text = f"{report.host:{width}}  {report.state:9}  {_line(report.text)}" if table else _lines(report.text)
            click.echo(text, err=report.state == "failed" and not table)
    sys.exit(max((report.exit_code for report in reports), default=0))


if __name__ == "__main__":
    main(prog_name="relay-installer")
