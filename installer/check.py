"""``relay-installer check``: everything that is, or will be, wrong with a box, each with what to do."""

from __future__ import annotations

import shlex
from typing import Any, NamedTuple

from installer import box, consent, deploy, faults, probe
from installer.bundle import Bundle
from relay.client.faults import ClientFault, SessionRefused
from relay.client.streams import Connection

_MODULES = ("talk", "layout", "examine")
#: Below these, watching many folders falls back to polling.
_FEW_WATCHES, _FEW_INSTANCES = 16384, 32


class Finding(NamedTuple):
    """One thing about a box: ``level`` is ok, note or problem; ``name`` stands in docs/troubleshooting.md."""

    level: str
    name: str
    text: str


def examine(connection: Connection, target: str, bundle: Bundle | None) -> list[Finding]:
    """Look at everything without changing anything; ``bundle`` is what an install would bring. Raises a ClientFault."""
    try:
        facts = probe.look(connection, target)
    except faults.NoShell as fault:
        return [Finding("problem", faults.name(fault), str(fault))]
    found = [Finding("ok", "reachable", f"{facts.system}, login shell {facts.shell}, home {facts.home}")]
    if facts.noise:
        found.append(
            Finding(
                "note",
                "noisy-shell",
                f"The start-up files print {facts.noise} bytes for every command. It is skipped; to silence "
                "them, let them print only when stdout is a terminal (`[ -t 1 ]`).",
            )
        )
    if forbids := probe.fault(facts, target):
        found.append(Finding("problem", faults.name(forbids), str(forbids)))
    if facts.python:
        found.append(Finding("ok", "python", f"Python {facts.python_version} at {facts.python}"))
        found += [Finding("note", "python-passed-over", text) for text in facts.refused]
        needed = len(bundle.data) + 3 * bundle.unpacked_size if bundle else 4 << 20
        files = 3 * len(bundle.members) if bundle else 1  # each may get a compiled one, and a folder
        said = _ask(connection, target, facts.python, {"needed": needed, "files": files})
        known = {finding.name for finding in found}
        found += [finding for finding in _from_box(said, target, bundle) if finding.name not in known]
    found += [Finding("note", "noexec-home", text) for text in deploy.notes(facts)]
    found += _sessions(connection, target)
    if facts.installed:
        found.append(_serving(connection, target))
    return found


def _ask(connection: Connection, target: str, python: str, request: dict[str, int]) -> dict[str, Any]:
    talk = box.Conversation(connection, target, python, _MODULES, request)
    try:
        return dict(talk.receive(60.0)["done"])
    finally:
        talk.close()


def _from_box(said: dict[str, Any], target: str, bundle: Bundle | None) -> list[Finding]:
    found = []
    if write := said["write"]:
        if write["kind"] == "no-locks":
            found.append(
                Finding(
                    "problem",
                    "no-locks",
                    f"{write['path']} takes no file locks, so that two agents could write one index. Mount it "
                    "with locking, or set XDG_STATE_HOME to a local folder for this account.",
                )
            )
        else:
            fault = deploy.fault(target, write["kind"], write)
            found.append(Finding("problem", faults.name(fault), str(fault)))
    for folder in said["folders"]:
        if write and folder["path"] == write["path"]:
            continue  # said already
        what = "policy" if folder["variable"] == "XDG_CONFIG_HOME" else "index"
        found.append(
            Finding(
                "problem",
                f"no-{what}-folder",
                f"{folder['path']} takes no file ({folder['reason']}), so that the agent can keep no {what} below it. "
                f"Correct it (`ls -ld {shlex.quote(folder['path'])}`), or set {folder['variable']} for the account to"
                " a folder that can be written to.",
            )
        )
    if said["in_the_way"]:
        fault = deploy.fault(target, "in-the-way", {"path": said["in_the_way"]})
        found.append(Finding("problem", faults.name(fault), str(fault)))
    if said["network"]:
        found.append(
            Finding(
                "note",
                "network-home",
                f"The home lies on a network file system ({said['network']}): changes made by other machines "
                "are found by polling. For speed, set XDG_STATE_HOME to a local folder for this account.",
            )
        )
    if tmp := said["tmp"]:
        found.append(
            Finding(
                "note",
                "tmp-full",
                f"/tmp takes no file ({tmp.get('reason', tmp['kind'])}). Neither the installer nor the agent needs "
                "it, but other programs there will fail: free some space (`df -h /tmp`).",
            )
        )
    if said["selinux"]:
        found.append(
            Finding(
                "note",
                "selinux",
                "SELinux enforces. If the agent is denied its files, give them their labels back: "
                "`restorecon -R ~/.local/share/session-relay ~/.local/state/session-relay`.",
            )
        )
    if (said["watches"] or _FEW_WATCHES) < _FEW_WATCHES or (said["instances"] or _FEW_INSTANCES) < _FEW_INSTANCES:
        found.append(
            Finding(
                "note",
                "few-watches",
                f"The kernel allows {said['watches']} watches in {said['instances']} instances a user; beyond that"
                " the agent polls. To raise it: `sudo sysctl fs.inotify.max_user_watches=524288"
                " fs.inotify.max_user_instances=512`.",
            )
        )
    installed = said["installed"]
    if not installed:
        found.append(Finding("note", "not-installed", f"There is no agent yet: `relay-installer install {target}`."))
    elif said["damaged"]:
        found.append(
            Finding(
                "problem",
                "damaged",
                f"{installed['agent']} is not as it was installed ({said['damaged']}). Repair it: "
                f"`relay-installer install {target}`.",
            )
        )
    elif bundle and installed.get("digest") != bundle.digest:
        found.append(
            Finding(
                "note",
                "other-version",
                f"{installed['agent']} is installed, {bundle.name} is here: `relay-installer upgrade {target}`.",
            )
        )
    else:
        found.append(Finding("ok", "installed", f"{installed['agent']}, whole"))
    return found


def _sessions(connection: Connection, target: str) -> list[Finding]:
    """Whether a second command starts while one runs: a search and a status may overlap."""
    try:
        first = connection.open("/bin/sh -c 'read -r line'")
    except SessionRefused as fault:
        return [Finding("problem", faults.name(fault), str(fault))]
    try:
        connection.run("/bin/sh -c 'exit 0'", timeout=20.0)
    except SessionRefused:
        return [
            Finding(
                "note",
                "one-session",
                "The host starts one command a connection (MaxSessions 1). Everything works; each command takes a "
                "connection of its own.",
            )
        ]
    finally:
        first.close()
    return []


def _serving(connection: Connection, target: str) -> Finding:
    try:
        enabled = consent.is_enabled(connection, target)
    except ClientFault as fault:
        return Finding("problem", faults.name(fault), str(fault))
    if enabled:
        return Finding("ok", "enabled", "The agent answers, and indexing is on.")
    return Finding(
        "note",
        "disabled",
        f"The agent answers; indexing is off until its account says otherwise: {consent.by_hand(target)}",
    )
