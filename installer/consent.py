"""Consent at a distance: whether a box is on, and its own ``enable`` command run as the account."""

from __future__ import annotations

from installer import faults
from relay.cli.render import on_host
from relay.cli.text import line
from relay.client.faults import ClientFault
from relay.client.launcher import LAUNCHER, remote_command
from relay.client.protocol import JsonRpcClient
from relay.client.streams import Connection

_PATIENCE = 60.0


def is_enabled(connection: Connection, target: str) -> bool:
    """Whether the box reads and answers. Raises a ClientFault."""
    client = JsonRpcClient(
        connection.open(remote_command("serve")), target, f"Install it: `relay-installer install {target}`."
    )
    try:
        status = client.call("aiVault.searchStatus", {}, _PATIENCE)
    finally:
        client.close()
    return isinstance(status, dict) and status.get("enabled") is True


def enable(connection: Connection, target: str, history_days: int | None) -> None:
    """Run the box's own ``relay enable``. Raises ConsentFailed or a ClientFault."""
    arguments = ["--history-days", str(history_days)] if history_days else []
    ended = connection.run(remote_command("enable", *arguments), timeout=_PATIENCE)
    if ended.code:
        said = line((ended.stderr or ended.stdout).decode("utf-8", "replace"))
        raise faults.ConsentFailed(
            f"{target}: the agent is installed, but `relay enable` there ended with {ended.code}:"
            f" {said or 'no word'}. Run it by hand: {by_hand(target)}"
        )


def by_hand(target: str) -> str:
    """The one line that a person runs to turn the box on."""
    return f"{LAUNCHER} enable" if target == "local" else on_host(f"ssh:{target}", "enable")


def try_is_enabled(connection: Connection, target: str) -> bool | None:
    """``is_enabled``, None when the box does not say."""
    try:
        return is_enabled(connection, target)
    except ClientFault:
        return None
