"""Installing on one box: look, upload, let the box verify and try it, switch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from installer import box, faults, probe
from installer.bundle import Bundle
from relay.client.streams import Connection

#: The steps on the box in their order, each told to ``progress`` as it is done.
STEPS = ("uploaded", "unpacked", "placed", "proved", "switched")
_MODULES = ("talk", "layout", "running", "place")
_PIECE = 1 << 15


@dataclass(frozen=True)
class Outcome:
    """How an install went: ``state`` is new, upgraded, downgraded, repaired or unchanged.

    ``agent`` now serves, ``before`` did, ``notes`` are sentences a person should read.
    """

    state: str
    agent: str
    before: str | None
    python: str
    python_version: str
    notes: tuple[str, ...]


def install(
    connection: Connection,
    target: str,
    bundle: Bundle,
    *,
    downgrade: bool = False,
    progress: Callable[[str, float], None] | None = None,
) -> Outcome:
    """Put ``bundle`` on the box. Unless it returns, what served before still does and nothing new is left.

    ``progress`` gets a step's name and how much of it is done (0 to 1). Raises an InstallFault or a ClientFault.
    """
    tell = progress or (lambda step, share: None)
    facts = probe.look(connection, target)
    tell("probed", 1.0)
    if fault := probe.fault(facts, target):
        raise fault
    assert facts.python is not None
    request = {
        "agent": bundle.name,
        "digest": bundle.digest,
        "sha256": bundle.sha256,
        "size": len(bundle.data),
        "unpacked_size": bundle.unpacked_size,
        "members": dict(bundle.members),
        "python": facts.python,
        "downgrade": downgrade,
    }
    talk = box.Conversation(connection, target, facts.python, _MODULES, request)
    try:
        done = _follow(talk, target, bundle, tell)
    finally:
        talk.close()
    return Outcome(done["state"], done["agent"], done["before"], facts.python, facts.python_version, notes(facts))


def _follow(
    talk: box.Conversation, target: str, bundle: Bundle, tell: Callable[[str, float], None]
) -> dict[str, Any]:
    while True:
        said = talk.receive(box.SILENCE)
        if "done" in said:
            return dict(said["done"])
        if "fault" in said:
            raise fault(target, said["fault"], said["facts"])
        if said["step"] == "send":
            for start in range(0, len(bundle.data), _PIECE):
                tell("uploading", start / len(bundle.data))
                talk.send(bundle.data[start : start + _PIECE])
            continue
        tell(said["step"], 1.0)
        if said["step"] != STEPS[-1]:
            talk.send(b"go\n")


def notes(facts: probe.Facts) -> tuple[str, ...]:
    """What a person should know though nothing is wrong."""
    found = []
    if facts.noexec:
        found.append(
            "The home is mounted noexec. Nothing is executed from it: the launcher is read by /bin/sh and the agent"
            f" by {facts.python}. By hand, write `sh ~/.local/share/session-relay/relay …`."
        )
    return tuple(found)


def fault(target: str, kind: str, facts: dict[str, Any]) -> faults.InstallFault:
    """The fault for what the box reported."""
    path = facts.get("path") or "its home"
    if kind == "no-space" and "needed" in facts:
        return faults.NoSpace(
            f"{target}: {facts['free'] >> 20} MiB are free at {path}, {-(-facts['needed'] >> 20)} MiB are needed."
            " Free some space, then run this again."
        )
    if kind == "no-inodes":
        return faults.NoSpace(
            f"{target}: {facts['free']} more files can be made at {path}, {facts['needed']} may be needed. Remove some"
            f" files there (`df -i {path}` shows how many there are), then run this again."
        )
    if kind in ("no-space", "quota", "read-only", "not-writable"):
        said = {
            "no-space": "No space",
            "quota": "quota",
            "read-only": "Read-only",
            "not-writable": "Permission denied",
        }[kind]
        return probe.not_writable(target, path, said)
    if kind == "damaged":
        return faults.UploadDamaged(
            f"{target}: what arrived on the disk is not what was sent ({path}). Check the disk and the connection, "
            "then run this again."
        )
    if kind == "agent-fails":
        return faults.AgentFails(
            f"{target}: the new version does not answer there, so what was there before goes on serving. It said: "
            f"{facts['said']}"
        )
    if kind == "busy":
        return faults.Busy(f"{target}: another install works there at this moment. Wait for it, then run this again.")
    if kind == "newer":
        return faults.NewerInstalled(
            f"{target} has {facts['there']}, which is newer than {facts['ours']} here. Upgrade this machine, or "
            "say --downgrade."
        )
    if kind == "in-the-way":
        return faults.BoxFault(
            f"{target}: {path} stands where the agent is to be, and is not of ours. Move it away, then run this again."
        )
    return faults.BoxFault(
        f"{target}: {path}: {facts.get('reason', kind)}. Put that right there, then run this again; what was there"
        " before goes on serving."
    )
