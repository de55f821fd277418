"""The sentences both SSH transports say of the same fault."""

from __future__ import annotations


def refused(target: str) -> str:
    """The sentence for a host that lets us in but starts nothing."""
    return (
        f"{target} lets you in but starts no further session (MaxSessions in its sshd_config, or a restricted"
        " account). End other sessions there, or ask its administrator."
    )


def changed(name: str, shown: str, where: str) -> str:
    """The sentence for a changed key: what it shows, where another one stands, what to do."""
    return (
        f"The host key of {name} has CHANGED: it shows {shown}, another one stands in {where or 'your known_hosts'}."
        " Someone may be listening in, or the host was set up anew. Ask its administrator; when the new key is"
        f" right: ssh-keygen -R '{name}'"
    )


def revoked(name: str, shown: str) -> str:
    """The sentence for a key that must not be trusted any more."""
    return f"{name} shows a key that your known_hosts marks as revoked ({shown}). Do not connect."


def unknown(name: str, target: str, shown: str) -> str:
    """The sentence for an unknown key: what it shows, and how to accept it."""
    return (
        f"The host key of {name} is not known: it shows {shown}. Compare it with what its administrator tells you,"
        f" then accept it with --accept-new, or by `ssh {target}` once."
    )
