"""``relay serve`` as click sees it, for its help; the plain command never comes here (``relay.__main__``)."""

from __future__ import annotations

import click

_EXAMPLE = """\b
Example:
  echo '{"jsonrpc":"2.0","id":1,"method":"aiVault.searchStatus"}' | relay serve
"""


@click.command(epilog=_EXAMPLE)
def command() -> None:
    """Answer JSON-RPC 2.0, one message a line, on stdin and stdout.

    A client starts it over SSH; it ends with its input. docs/protocol.md describes the messages.
    """
    from relay.cli.serve import run

    raise SystemExit(run())
