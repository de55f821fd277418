"""What can go wrong between a client and a host; every message says what to do next."""

from __future__ import annotations


class ClientFault(Exception):
    """A host could not be asked, or did not answer as it must; ``str()`` is one sentence or two for people."""


class Unreachable(ClientFault):
    """No connection came about: name, route, port, proxy."""


class Busy(Unreachable):
    """Something answers at the host's port, but takes no SSH connection just now; a little later it may."""


class HostKeyChanged(ClientFault):
    """The host shows another key than the one that is known for it."""


class HostKeyUnknown(ClientFault):
    """No key is known for the host, and none may be added."""


class AuthenticationFailed(ClientFault):
    """The host refused every key and password there was to offer."""


class AgentMissing(ClientFault):
    """The connection stands, but there is no agent to start on the host."""


class ConnectionLost(ClientFault):
    """The connection, or the agent at its end, went away before the answer came."""


class SessionRefused(ConnectionLost):
    """The host let us in, but starts no further session (MaxSessions, a restricted account)."""


class TimedOut(ClientFault):
    """The time for this host is up."""


class ProtocolFault(ClientFault):
    """The far side answers, but not in the protocol: too much noise, or an answer of the wrong shape."""


class RemoteError(ClientFault):
    """The host answered with a JSON-RPC error; ``code`` is the protocol's number for it."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class UnknownHost(ClientFault):
    """The text names no host we know; it is never taken for another one."""


class HostsFileBroken(ClientFault):
    """The hosts file is there, but cannot be read or understood; nothing is overwritten."""
