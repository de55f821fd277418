"""``relay hosts``: the machines that can be searched from here."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from typing import Any

import click

from relay import paths
from relay.cli import options, reach, render
from relay.cli.options import FOUND, NO_ANSWER, NOTHING_FOUND
from relay.cli.text import clean, line

reach.need_client()  # on a box this command is refused before its imports fail

from relay.client import fanout, hosts_file  # noqa: E402
from relay.client.host_ids import RUNTIME, SSH, HostId, parse  # noqa: E402
from relay.client.hosts_file import TRANSPORTS, Host  # noqa: E402
from relay.client.remote import TIMEOUT, RemoteHost  # noqa: E402

HOST = options.HostType(without="local")


@click.group(
    name="hosts",
    epilog="\b\nExamples:\n  relay hosts add ssh:box\n  relay hosts test\n  relay hosts COMMAND --help\n",
)
def command() -> None:
    """The hosts that `relay search --host` knows.

    They stand in hosts.json in $XDG_CONFIG_HOME/session-relay. `relay-installer install ssh:TARGET` adds a host too.
    """


@command.command("list", epilog="\b\nExamples:\n  relay hosts list\n  relay hosts list --json\n")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def list_hosts(as_json: bool) -> None:
    """Show every configured host and how it is reached."""
    render.open_stdout()
    with reach.faults():
        hosts = hosts_file.load(paths.config_folder())
    if as_json:
        click.echo(json.dumps([_entry(host) for host in hosts], indent=2 if sys.stdout.isatty() else None))
        return
    for text in render.table([("local", "this machine"), *((host.id.label, _route(host)) for host in hosts)]):
        click.echo(text)


@command.command(
    "add",
    epilog="""\b
Examples:
  relay hosts add ssh:box
  relay hosts add ssh:me@box.example:2222 --transport openssh
  relay hosts add runtime:gpu -- docker exec -i gpu relay serve
  relay hosts add runtime:wsl --shell 'wsl -d Debian -- relay serve'
  relay hosts add ssh:box --json
""",
)
@click.argument("host")
@click.argument("start", nargs=-1, metavar="[-- COMMAND…]")
@click.option("--shell", metavar="LINE", help="A runtime's command as one line for /bin/sh, instead of COMMAND.")
@click.option(
    "--transport",
    type=click.Choice(TRANSPORTS),
    help="How an SSH host is reached: paramiko (the default), or the system's ssh program (openssh).",
)
@click.option("--json", "as_json", is_flag=True, help="Print what became of it as JSON.")
def add_host(host: str, start: tuple[str, ...], shell: str | None, transport: str | None, as_json: bool) -> None:
    """Add a host, or change how it is reached.

    HOST is ssh:TARGET, where TARGET is what you would give to ssh (or user@box:port), or runtime:NAME with the COMMAND
    that starts `relay serve` in a container, a pod or a virtual machine, with its stdin and stdout.
    """
    host_id = _id(host)
    if host_id.kind == SSH and (start or shell):
        raise click.UsageError("An SSH host has no command: the agent's place is the same on every box.")
    if host_id.kind == RUNTIME and transport:
        raise click.UsageError("--transport is for SSH hosts.")
    if host_id.kind == RUNTIME and bool(start) == bool(shell and shell.strip()):
        typed = shlex.quote(host_id.label)
        raise click.UsageError(f"A runtime needs its command, in one way: relay hosts add {typed} -- COMMAND…")
    with reach.faults():
        there = any(host.id == host_id for host in hosts_file.load(paths.config_folder()))
        added = Host(host_id, command=start or shell, transport=transport)
        changed = hosts_file.add(paths.config_folder(), added)
    outcome = ("changed" if there else "added") if changed else "unchanged"
    if as_json:
        click.echo(json.dumps({"executionHostId": str(host_id), "outcome": outcome}))
        return
    click.echo(f"{'Known already:' if outcome == 'unchanged' else outcome.capitalize()} {host_id.label}")


@command.command(
    "remove",
    epilog="\b\nExamples:\n  relay hosts remove ssh:box runtime:gpu\n  relay hosts remove ssh:box --json\n",
)
@click.argument("hosts", nargs=-1, required=True, type=HOST, metavar="HOST…")
@click.option("--json", "as_json", is_flag=True, help="Print what became of them as JSON.")
def remove_hosts(hosts: tuple[str, ...], as_json: bool) -> None:
    """Forget hosts. What is installed on them stays: see `relay-installer uninstall`."""
    outcomes = []
    for host_id in [_id(text) for text in hosts]:
        with reach.faults():
            removed = hosts_file.remove(paths.config_folder(), host_id)
        outcomes.append({"executionHostId": str(host_id), "outcome": "removed" if removed else "absent"})
        if not as_json:
            click.echo(f"Removed {host_id.label}" if removed else f"{host_id.label} was not there", err=not removed)
    if as_json:
        click.echo(json.dumps(outcomes, indent=2 if sys.stdout.isatty() else None))
    sys.exit(NOTHING_FOUND if any(entry["outcome"] == "absent" for entry in outcomes) else FOUND)


@command.command(
    "test",
    short_help="Connect to hosts and see who answers.",
    epilog="\b\nExamples:\n  relay hosts test\n  relay hosts test -v ssh:box\n",
)
@click.argument("hosts", nargs=-1, type=HOST, metavar="[HOST…]")
@click.option(
    "--timeout",
    type=options.Seconds(0.1, 3600),
    default=TIMEOUT,
    show_default=True,
    metavar="SECONDS",
    help="How long a host may take.",
)
@click.option("--accept-new", is_flag=True, help="Add a host key that is not known; a changed one is never accepted.")
@click.option("-v", "--verbose", is_flag=True, help="Show the end of what the host wrote to stderr.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcomes as JSON.")
def test_hosts(hosts: tuple[str, ...], timeout: float, accept_new: bool, verbose: bool, as_json: bool) -> None:
    """Connect to hosts (all of them, when none is named), start their agents and ask how they are.

    Exits with 4 when one of them gave no answer.
    """
    style = render.open_stdout()
    with reach.faults():
        config = paths.config_folder()
        chosen = [hosts_file.find(config, text) for text in dict.fromkeys(hosts)] if hosts else hosts_file.load(config)
    remotes = [RemoteHost(host, interactive=len(chosen) == 1, accept_new=accept_new) for host in chosen]
    from relay.cli.progress import HostProgress

    def status(remote: RemoteHost, limit: float) -> dict[str, Any]:
        return remote.status(limit)

    if len(remotes) == 1:
        # A person may be asked for a passphrase and takes their time, so no clock runs around the whole of it.
        outcomes = [fanout.outcome_of(remotes[0], status, timeout)]
    else:
        with HostProgress([remote.id for remote in remotes]) as progress:
            outcomes = fanout.ask(remotes, status, timeout, progress)
    said = {remote.id: remote.stderr() for remote in remotes} if verbose else {}
    fanout.close_all(remotes)
    if as_json:
        click.echo(json.dumps([_tested(outcome) for outcome in outcomes], indent=2 if sys.stdout.isatty() else None))
    else:
        _show_tested(outcomes, said, style)
    sys.exit(NO_ANSWER if any(outcome.fault for outcome in outcomes) else FOUND)


def _tested(outcome: fanout.Outcome) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "executionHostId": outcome.host_id,
        "ok": outcome.fault is None,
        "seconds": round(outcome.seconds, 3),
    }
    if outcome.fault:
        entry.update(fault=type(outcome.fault).__name__, message=clean(str(outcome.fault)))
    elif outcome.answer:
        entry["enabled"] = outcome.answer["enabled"]
    return entry


def _show_tested(outcomes: Sequence[fanout.Outcome], said: dict[str, bytes], style: render.Style) -> None:
    if not outcomes:
        click.echo("No host is configured. Add one: relay hosts add ssh:TARGET", err=True)
    for outcome in outcomes:
        label = render.host_label(outcome.host_id)
        if outcome.fault:
            failed = style.paint("no answer", render.WARN)
            click.echo(f"{label}: {failed} ({outcome.seconds:.1f} s). {clean(str(outcome.fault))}")
        elif outcome.answer:
            click.echo(f"{label}: answers ({outcome.seconds:.1f} s); search is {render.state(outcome.answer)}")
            if not outcome.answer["enabled"]:
                click.echo(f"   {render.unavailable('disabled', label)}")
        for text in said.get(outcome.host_id, b"").decode("utf-8", "replace").splitlines():
            click.echo(f"   stderr: {line(text)}")


def _id(text: str) -> HostId:
    with reach.faults():
        host_id = parse(text)
    if host_id.kind not in (SSH, RUNTIME):
        raise click.UsageError("This machine is always there, as `local`.")
    return host_id


def _entry(host: Host) -> dict[str, Any]:
    entry: dict[str, Any] = {"executionHostId": str(host.id)}
    if host.command:
        entry["command"] = host.command if isinstance(host.command, str) else list(host.command)
    if host.id.kind == SSH:
        entry["transport"] = host.transport or TRANSPORTS[0]
    return entry


def _route(host: Host) -> str:
    if host.id.kind == SSH:
        return "SSH" if host.transport in (None, TRANSPORTS[0]) else f"SSH, by the system's ssh ({host.transport})"
    return line(host.command if isinstance(host.command, str) else shlex.join(host.command or ()), 200)
