"""``relay enable``, ``disable`` and ``clear``: what only the person with this account decides."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from typing import Any, Dict, List, Optional, Tuple

import click

from relay import paths, policy
from relay.contract.requests import AGENT_NAMES

#: Seconds that a clear waits for running agents; they look at the policy twice a second.
PATIENCE = 10.0

#: A policy in another folder would change nothing: agents that run, and those that SSH starts, look here.
_AGENTS_READ_IT = "Search is as it was. Make the folder and policy.json in it writable, then run this again."

_ENABLE_EXAMPLES = """\b
Examples:
  relay enable
  relay enable --history-days 90
  relay enable --root claude=/srv/agents/.claude --root codex=~/work/.codex

\b
To undo it: `relay disable` (keeps the index) or `relay disable --clear`.
"""

_DISABLE_EXAMPLES = """\b
Examples:
  relay disable
  relay disable --clear
"""

_CLEAR_EXAMPLES = """\b
Examples:
  relay clear
  relay clear --json
"""


class RootType(click.ParamType):
    """``AGENT=PATH``: the agent's wire name and a folder that it keeps its sessions in."""

    name = "agent=path"

    def convert(self, value: Any, param: Optional[click.Parameter], ctx: Optional[click.Context]) -> Tuple[str, str]:
        if isinstance(value, tuple):
            return value
        agent, equals, path = value.partition("=")
        if not equals or not path:
            self.fail(f"{value!r} is not AGENT=PATH, as claude=/srv/agents/.claude is.", param, ctx)
        if agent not in AGENT_NAMES:
            self.fail(f"{agent!r} is no agent. There are: {', '.join(AGENT_NAMES)}.", param, ctx)
        return agent, os.path.abspath(os.path.expanduser(path))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> List[Any]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(f"{name}=") for name in AGENT_NAMES if name.startswith(incomplete)]


@click.command(epilog=_ENABLE_EXAMPLES)
@click.option(
    "--history-days",
    type=click.IntRange(0, 36500),
    metavar="N",
    help="Leave out transcripts older than N days; 0 reads all of them. Without it: what was set before, else all.",
)
@click.option(
    "--root",
    "roots",
    type=RootType(),
    multiple=True,
    metavar="AGENT=PATH",
    help="A further folder of an agent (repeatable). Those given take the place of those set before.",
)
@click.option("--no-roots", is_flag=True, help="Forget the folders set before.")
@click.option("--json", "as_json", is_flag=True, help="Print what was decided as JSON.")
def enable(history_days: Optional[int], roots: Tuple[Tuple[str, str], ...], no_roots: bool, as_json: bool) -> None:
    """Let this account's coding-agent transcripts be indexed and searched.

    The index stays on this machine, readable by this account only. Whoever can open an SSH session as this account can
    search it; nothing listens on a port, and no transcript is copied anywhere.
    """
    from relay.service import obstacle

    if roots and no_roots:
        raise click.UsageError("--root and --no-roots exclude each other.")
    decided = replace(policy.read(paths.config_folder()), enabled=True, clearing_until=0.0)
    if history_days is not None:
        decided = replace(decided, history_days=history_days or None)
    if roots or no_roots:
        decided = replace(decided, roots={agent: _of(agent, roots) for agent, _ in roots})
    if not decided.epoch:
        decided = replace(decided, epoch=policy.new_epoch())
    _write(decided, "Make it writable, or set XDG_CONFIG_HOME to a folder that is.")
    why_not = obstacle()
    if why_not is not None:
        click.echo(f"{why_not} Nothing can be indexed by it: run relay with another Python.", err=True)
    if as_json:
        click.echo(json.dumps(_as_json(decided)))
        return
    days = f"the last {decided.history_days} days of " if decided.history_days else ""
    click.echo(f"Search is on: {days}what these agents keep here is read, now and when they are used:")
    for label, folder in _found(decided):
        click.echo(f"  {label:<14} {folder}")
    for agent, folder in roots:
        if not os.path.isdir(folder):
            click.echo(f"There is no folder {folder} yet; {agent} is read from it when there is.", err=True)
    click.echo(f"The index is kept in {paths.state_folder()}, for this account only. Transcripts are never changed.")
    click.echo("A running agent begins within a second, else the first search does; `relay index` does it all now.")
    click.echo("To undo it: relay disable (keeps the index), or relay disable --clear (removes it, too).")


@click.command(epilog=_DISABLE_EXAMPLES)
@click.option("--clear", "also_clear", is_flag=True, help="Remove the index, too.")
@click.option("--json", "as_json", is_flag=True, help="Print what was decided as JSON.")
def disable(also_clear: bool, as_json: bool) -> None:
    """Stop reading this account's transcripts and answering searches.

    Running agents stop within a second. The index stays, so that `relay enable` goes on where this stopped; --clear
    removes it.
    """
    known = policy.read(paths.config_folder())
    epoch = policy.new_epoch() if also_clear else known.epoch
    _write(replace(known, enabled=False, clearing_until=0.0, epoch=epoch), _AGENTS_READ_IT)
    if also_clear:
        _remove("Search is off, but the index is still there")
    if as_json:
        click.echo(json.dumps(_as_json(policy.read(paths.config_folder()))))
    elif also_clear:
        click.echo("Search is off, and the index is removed. Transcripts were not touched.")
    elif os.path.exists(paths.state_folder()):
        click.echo(f"Search is off. The index stays in {paths.state_folder()}; `relay clear` removes it.")
    else:
        click.echo("Search is off, and there is no index.")


@click.command(epilog=_CLEAR_EXAMPLES)
@click.option("--json", "as_json", is_flag=True, help="Print what holds now as JSON.")
def clear(as_json: bool) -> None:
    """Remove the index. Transcripts are never touched.

    Where search is on, it stays on: a new index is built from the transcripts, and cursors of the old one are stale.
    """
    known = policy.read(paths.config_folder())
    if known.enabled:
        epoch = policy.new_epoch()
        _write(replace(known, epoch=epoch, clearing_until=time.time() + 2 * PATIENCE), _AGENTS_READ_IT)
        try:
            _remove("Search is on as before, but the index could not be removed")
        finally:
            now = policy.read(paths.config_folder())
            if now.epoch == epoch:
                _write(replace(now, clearing_until=0.0), _AGENTS_READ_IT)
    else:
        _remove("The index could not be removed")
    if as_json:
        click.echo(json.dumps(_as_json(policy.read(paths.config_folder()))))
    elif known.enabled:
        click.echo("The index is removed; a new one is built while an agent runs, or now by `relay index`.")
    else:
        click.echo("The index is removed. Search is off.")


def _of(agent: str, roots: Tuple[Tuple[str, str], ...]) -> Tuple[str, ...]:
    return tuple(dict.fromkeys(path for name, path in roots if name == agent))


def _write(decided: policy.Policy, remedy: str) -> None:
    """Write the policy, or end with exit code 1 and what to do."""
    try:
        policy.write(paths.config_folder(), decided)
    except OSError as error:
        raise click.ClickException(
            f"{paths.config_folder()} cannot be written ({error.strerror}), so nothing was changed. {remedy}"
        ) from None


def _remove(otherwise: str) -> None:
    """Remove the index, or end with exit code 1 and ``otherwise`` before the reason."""
    from relay.index import removal
    from relay.index.faults import IndexFault

    try:
        removal.clear(paths.state_folder(), PATIENCE)
    except IndexFault as fault:
        raise click.ClickException(f"{otherwise}. {fault}") from None


def _found(decided: policy.Policy) -> List[Tuple[str, str]]:
    """The label and folder of every place that is there to be read."""
    from relay.transcripts import registry

    env = registry.Env.of_this_account(decided.roots)
    labels = registry.agents()
    found = [(labels[root.store.agent].label, root.path) for root in registry.roots(env) if os.path.exists(root.path)]
    return sorted(set(found)) or [
        ("none yet", "`relay agents` lists those that are known and where they are looked for")
    ]


def _as_json(decided: policy.Policy) -> Dict[str, Any]:
    return {
        "enabled": decided.enabled,
        "historyDays": decided.history_days,
        "roots": {agent: list(folders) for agent, folders in decided.roots.items()},
        "stateFolder": paths.state_folder(),
    }
