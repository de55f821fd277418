"""One host from connecting to outcome, as each command does it; each outcome is a value to print or make JSON of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from installer import box, consent, deploy, faults, removal, targets
from installer.bundle import Bundle
from relay.client.faults import ClientFault, HostsFileBroken
from relay.client.hosts_file import Host
from relay.client.streams import Connection


@dataclass
class Report:
    """How it went with one host: ``state`` is a word, ``text`` a sentence, ``more`` are further fields of the JSON."""

    host: str
    state: str
    text: str
    exit_code: int = 0
    more: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The report as an object for ``--json``."""
        return {"host": self.host, "state": self.state, "message": self.text, **self.more}


@dataclass(frozen=True)
class Way:
    """How hosts are reached: the time limit for a connection in seconds, and what a person allowed."""

    timeout: float = 20.0
    interactive: bool = False
    accept_new: bool = False


def on_host(host: Host, way: Way, do: Callable[[Connection, str], Report]) -> Report:
    """Connect, ``do`` it, close; a fault becomes a report with state ``failed``."""
    label = host.id.label
    try:
        connection = box.open_box(host, timeout=way.timeout, interactive=way.interactive, accept_new=way.accept_new)
        try:
            return do(connection, targets.target(host))
        finally:
            connection.close()
    except (ClientFault, faults.InstallFault) as fault:
        return failed(label, fault)


def failed(label: str, fault: Exception) -> Report:
    """The report of a fault."""
    return Report(label, "failed", str(fault), faults.exit_code(fault), {"fault": faults.name(fault)})


def install(
    host: Host,
    way: Way,
    bundle: Bundle,
    *,
    downgrade: bool,
    progress: Callable[[str, float], None],
    ask: Callable[[], bool | None],
    history_days: int | None,
) -> Report:
    """Install, remember the host, and turn it on when ``ask()`` says so (None: nobody was there to say)."""

    def do(connection: Connection, target: str) -> Report:
        outcome = deploy.install(connection, target, bundle, downgrade=downgrade, progress=progress)
        text = _told(outcome)
        try:
            if targets.remember(host):
                text += f" {host.id.label} is now in your hosts."
        except OSError as error:
            text += f" It could not be added to your hosts: {error.filename}: {error.strerror}."
        except HostsFileBroken as fault:
            text += f" It could not be added to your hosts: {fault}"
        enabled = consent.try_is_enabled(connection, target)
        wanted = None if enabled and history_days is None else ask()
        if wanted:
            consent.enable(connection, target, history_days)
            enabled = True
            text += " Indexing there is on."
        elif enabled:
            text += " Indexing there is on, as it was."
        elif wanted is False:
            text += " Indexing there stays off."
        else:
            text += f" Indexing there is off; to turn it on: {consent.by_hand(target)}"
        return Report(
            host.id.label,
            outcome.state,
            " ".join([text, *outcome.notes]),
            more={
                "agent": outcome.agent,
                "before": outcome.before,
                "python": outcome.python,
                "pythonVersion": outcome.python_version,
                "enabled": enabled,
                "notes": list(outcome.notes),
            },
        )

    return on_host(host, way, do)


def _told(outcome: deploy.Outcome) -> str:
    running = f"{outcome.agent} on Python {outcome.python_version} ({outcome.python})"
    return {
        "new": f"Installed {running}.",
        "downgraded": f"Went back from {outcome.before} to {running}.",
        "upgraded": f"Upgraded from {outcome.before} to {running}.",
        "repaired": f"Repaired: {running}.",
        "unchanged": f"Already up to date: {running}.",
    }[outcome.state]


def upgrade(host: Host, way: Way, bundle: Bundle, progress: Callable[[str, float], None]) -> Report:
    """Bring the agent of a host up to date; what served goes on serving when that fails."""

    def do(connection: Connection, target: str) -> Report:
        outcome = deploy.install(connection, target, bundle, progress=progress)
        return Report(
            host.id.label, outcome.state, _told(outcome), more={"agent": outcome.agent, "before": outcome.before}
        )

    return on_host(host, way, do)


def uninstall(host: Host, way: Way, *, purge: bool) -> Report:
    """Remove the agent from a host and the host from hosts.json."""

    def do(connection: Connection, target: str) -> Report:
        removed = removal.uninstall(connection, target, purge=purge)
        paths, kept = removed.paths, removed.kept
        forgotten, left = False, ""
        try:
            forgotten = targets.forget(host.id)
        except OSError as error:
            left = f" It could not be taken out of your hosts: {error.filename}: {error.strerror}."
        except HostsFileBroken as fault:
            left = f" It could not be taken out of your hosts: {fault}"
        what = "the agent, its index and its policy" if purge else "the agent"
        text = (
            f"Removed {what}: {len(paths)} paths, and none of them is left."
            if paths
            else "There was nothing to remove."
        )
        if paths and not purge:
            text += " Its index and policy stay; --purge removes them too."
        if kept:
            text += f" Not ours, and left alone: {kept[0]}" + (f" and {len(kept) - 1} more." if kept[1:] else ".")
        if forgotten:
            text += f" {host.id.label} is no longer in your hosts."
        text += left
        more = {"removed": list(paths), "kept": list(kept)}
        return Report(host.id.label, "removed" if paths else "absent", text, more=more)

    return on_host(host, way, do)
