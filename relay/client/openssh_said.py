"""What the system's ssh said on stderr, as one of our faults."""

from __future__ import annotations

import re

from relay.client import ssh_faults
from relay.client.faults import (
    AuthenticationFailed,
    Busy,
    ClientFault,
    ConnectionLost,
    HostKeyChanged,
    HostKeyUnknown,
    SessionRefused,
    Unreachable,
)

_SHOWN = re.compile(r"Server host key: (\S+ \S+)")
_UNKNOWN = re.compile(r"No \S+ host key is known for (\S+) and")
_REVOKED = re.compile(r"host key for (\S+) is marked as revoked")
_CHANGED = re.compile(r"Host key for (\S+) has changed")
_ENTERED = re.compile(r"Authenticating to (\S+):(\d+) as")
_OFFENDING = re.compile(r"Offending \S+ key in (\S+)")
_OFFERED = re.compile(r"Offering public key: (\S+)")
_ACCEPTED = re.compile(r"Server accepts key: (\S+)")
_UNREACHABLE = (
    "Could not resolve hostname",
    "Connection refused",
    "onnection timed out",
    "No route to host",
    "Network is unreachable",
    "Operation timed out",
    "Connection closed",
    "Connection reset",
    "kex_exchange_identification",
    "Unable to negotiate",
    "open failed",
    "Broken pipe",
)


def fault(target: str, said: str) -> ClientFault:
    """The fault for an ssh (run with ``-v``) that did not come to a login."""
    own = [
        line.strip()
        for line in said.splitlines()
        if line.strip() and not line.startswith(("debug", "OpenSSH_", "Authenticated to"))
    ]
    shown = _SHOWN.findall(said)
    if "REVOKED HOST KEY" in said:
        name = _REVOKED.search(said)
        return HostKeyChanged(ssh_faults.revoked(name.group(1) if name else target, shown[-1] if shown else "a key"))
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in said:
        name, where = _CHANGED.search(said), _OFFENDING.search(said)
        return HostKeyChanged(
            ssh_faults.changed(
                name.group(1) if name else target,
                shown[-1] if shown else "another key",
                where.group(1) if where else "",
            )
        )
    if "Host key verification failed" in said:
        return HostKeyUnknown(
            ssh_faults.unknown(_unknown_name(said, target), target, shown[-1] if shown else "a key")
        )
    if "Permission denied" in said or "Too many authentication failures" in said:
        offered = list(dict.fromkeys(_OFFERED.findall(said)))
        refused = next((line for line in own if "Permission denied" in line or "Too many" in line), "")
        keys = (
            f"with none of the keys there were to offer ({', '.join(offered)})" if offered else "(no key was offered)"
        )
        # A key the host would take and that then is not used waits for something a person has to do.
        waits = (
            f"Note: it would take {accepted[-1]}, which has a passphrase or waits for a touch: `ssh-add "
            f"{accepted[-1]}` first. "
            if (accepted := _ACCEPTED.findall(said))
            else ""
        )
        return AuthenticationFailed(
            f"{target} does not let you in {keys}: {refused} {waits}"
            f"Next: see that `ssh {target}` works without a question."
        )
    why = next(
        (line for sign in _UNREACHABLE for line in own if sign in line), own[-1] if own else "ssh gave no reason"
    )
    kind = Busy if "kex_exchange_identification" in why else Unreachable
    return kind(
        f"No connection to {target}: {why}. Is the host up, and do the name, the port and the network or VPN fit?"
    )


def fault_of_command(target: str, said: str) -> ClientFault | None:
    """The fault behind an exit code of 255 over a standing connection; None when the command itself gave it."""
    if "Session open refused by peer" in said or "session request failed" in said or "open failed: " in said:
        return SessionRefused(ssh_faults.refused(target))
    if any(
        sign in said
        for sign in (
            "mux_client",
            "Control socket connect",
            "Connection to",
            "Connection closed",
            "Broken pipe",
            "client_loop",
        )
    ):
        return ConnectionLost(f"The connection to {target} broke before its answer was whole. Try again.")
    if any(sign in said for sign in (*_UNREACHABLE, "Permission denied (", "Host key verification failed")):
        return fault(target, said)
    return None


def _unknown_name(said: str, target: str) -> str:
    """What known_hosts would call the host; a jump host's own ssh, which may not ask, does not say it outright."""
    if found := _UNKNOWN.search(said):
        return found.group(1)
    entered = _ENTERED.findall(said)
    if not entered:
        return target
    host, port = entered[-1]
    return host if port == "22" else f"[{host}]:{port}"
