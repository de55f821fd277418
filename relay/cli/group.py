"""The ``relay`` command: each subcommand is a module of its own, imported when it is used."""

from __future__ import annotations

import importlib
from typing import Any, Dict, List, Optional, Tuple

import click

from relay import __version__
from relay.cli.program import Program

#: Every subcommand: the module it is in, the name it has there, and its line in ``relay --help``.
COMMANDS: Dict[str, Tuple[str, str, str]] = {
    "search": ("relay.cli.search", "command", "Find the sessions in which something was said or done."),
    "resume": ("relay.cli.resume", "command", "Print the command that reopens a session."),
    "status": ("relay.cli.status", "command", "Show whether transcripts are indexed, and how fresh the index is."),
    "hosts": ("relay.cli.hosts", "command", "List, add and remove the hosts that can be searched."),
    "agents": ("relay.cli.agents", "command", "List the coding agents found here and what can be read of each."),
    "enable": ("relay.cli.consent", "enable", "Let this account's transcripts be indexed and searched."),
    "disable": ("relay.cli.consent", "disable", "Stop reading and answering; the index stays unless --clear."),
    "clear": ("relay.cli.consent", "clear", "Remove the index; transcripts are never touched."),
    "index": ("relay.cli.index", "command", "Index everything now, in the foreground, and exit."),
    "serve": ("relay.cli.serve_command", "command", "Answer JSON-RPC on stdin and stdout, for `relay search --host`."),
}

_EXAMPLES = """\b
Examples:
  relay enable
  relay search "reattach race"
  relay search --host ssh:box --fresh 'repo:web "connection reset"'
  relay COMMAND --help
"""


class LazyGroup(Program):
    """A group that imports a subcommand's module only when that subcommand runs or is asked for its help."""

    def list_commands(self, ctx: click.Context) -> List[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> Optional[click.Command]:
        if name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> List[Any]:
        from click.shell_completion import CompletionItem

        names = [
            CompletionItem(name, help=line) for name, (_, _, line) in COMMANDS.items() if name.startswith(incomplete)
        ]
        # Not Group's own, which imports every command for its help; Command's gives the options.
        return names + click.Command.shell_complete(self, ctx, incomplete)


@click.group(cls=LazyGroup, epilog=_EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", prog_name="relay")
def main() -> None:
    """Find the coding-agent session you remember, on whichever machine it ran."""
