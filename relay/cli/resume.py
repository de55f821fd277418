"""``relay resume``: the command that reopens a session, here or on the host it ran on."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import sqlite3
from typing import NamedTuple

import click

from relay import paths, policy
from relay.cli import options, reach, render
from relay.cli.options import AGENT, EXIT_CODES, NOTHING_FOUND, UNAVAILABLE, USAGE
from relay.cli.text import line
from relay.index.faults import IndexUnavailable
from relay.index.names import given
from relay.index.opening import database_path, open_for_reading
from relay.search.hits import resume_command

_EXAMPLES = """\b
Examples:
  relay resume --agent claude 0f3a9c2e-5b1d-4e8a-9c6f-2a7b8d9e0f1a
  relay resume --host ssh:box --agent codex 0199c2f4-…
  eval "$(relay resume --host ssh:box --agent claude 0f3a9c2e-…)"
"""

#: The best copy of each session first, as the search has it.
_SESSIONS = """
SELECT sessions.agent, sessions.cwd, sessions.resume, sources.path
FROM sessions JOIN sources ON sources.id = sessions.source
WHERE sessions.live = 1 AND sessions.session_id = ? AND (? IS NULL OR sessions.agent = ?)
ORDER BY sessions.rank DESC, sessions.updated_at DESC
"""


class Stored(NamedTuple):
    """A session the index knows: its agent, folder, resume command (None: it has none) and transcript."""

    agent: str
    cwd: str | None
    resume: str | None
    path: str


@click.command(epilog=_EXAMPLES + "\n" + EXIT_CODES)
@click.argument("session_id", metavar="SESSION")
@click.option(
    "--agent", type=AGENT, metavar="AGENT", help="The agent whose session it is, when two agents have one of that id."
)
@click.option(
    "--host",
    type=options.HostType(),
    default="local",
    show_default=True,
    metavar="HOST",
    help="Where the session is: local, ssh:TARGET or runtime:NAME.",
)
@click.option(
    "--timeout",
    type=options.Seconds(0.1, 3600),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the host may take.",
)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def command(session_id: str, agent: str | None, host: str, timeout: float, as_json: bool) -> None:
    """Print the command that reopens a session; `relay search` names SESSION and its agent.

    For a session of another host it is the line to type here, which goes there by ssh.
    """
    render.open_stdout()
    if host == "local":
        _here(session_id, agent, as_json)
    else:
        _there(session_id, agent, host, timeout, as_json)


def _here(session_id: str, agent: str | None, as_json: bool) -> None:
    if not policy.read(paths.config_folder()).enabled:
        raise reach.HostFault(render.unavailable("disabled", "local"), UNAVAILABLE)
    found = _stored(session_id, agent)
    if not found:
        raise reach.HostFault("The index has no such session. See `relay search`.", NOTHING_FOUND)
    agents = sorted({session.agent for session in found})
    if len(agents) > 1:
        raise reach.HostFault(f"Several agents have a session of this id; add --agent: {', '.join(agents)}.", USAGE)
    session = found[0]
    if not session.resume:
        raise reach.HostFault(f"A session of {session.agent} cannot be reopened by a command.", NOTHING_FOUND)
    if not os.path.exists(given(session.path)):
        raise reach.HostFault("The session's transcript is not there any more.", NOTHING_FOUND)
    text = resume_command(session.resume, session.cwd)
    if as_json:
        click.echo(
            json.dumps({"agent": session.agent, "sessionId": session_id, "command": text, "shell": _login_shell()})
        )
    else:
        click.echo(line(text, len(text)))


def _there(session_id: str, agent: str | None, host: str, timeout: float, as_json: bool) -> None:
    reach.need_client()
    from relay.client import hosts_file, resume

    with reach.faults({resume.NoSuchSession: NOTHING_FOUND, resume.SearchOff: UNAVAILABLE}):
        configured = hosts_file.find(paths.config_folder(), host)
        answer = resume.ask(configured, agent, session_id, timeout, interactive=True)
    if as_json:
        click.echo(json.dumps({"executionHostId": str(configured.id), **answer._asdict()}))
        return
    if answer.line == answer.command:
        click.echo(f"Run this inside {configured.id.label}:", err=True)
    click.echo(answer.line)


def _stored(session_id: str, agent: str | None) -> list[Stored]:
    try:
        with contextlib.closing(open_for_reading(database_path(paths.state_folder()))) as connection:
            return [Stored(*row) for row in connection.execute(_SESSIONS, (session_id, agent, agent))]
    except (IndexUnavailable, sqlite3.Error) as error:
        raise reach.HostFault(render.unavailable("not-ready", "local"), UNAVAILABLE) from error


def _login_shell() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:  # an account that only its number is known of, as in a container
        return os.environ.get("SHELL", "/bin/sh")
