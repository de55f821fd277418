"""What can stand between a box and a working agent; each has a sentence with the next step, and an exit code."""

from __future__ import annotations

from relay.client import faults as client


class InstallFault(Exception):
    """Something on the box or here stands in the way; the box is as it was. ``str()`` is for people."""

    exit_code = 1


class NoShell(InstallFault):
    """The account runs something else than the commands it is sent."""

    exit_code = 17


class HomeMissing(InstallFault):
    """The account has no home folder of its own."""

    exit_code = 18


class NoPython(InstallFault):
    """No Python on the box can run the agent."""

    exit_code = 20


class NoSpace(InstallFault):
    """The file system of the home is full."""

    exit_code = 21


class QuotaExceeded(InstallFault):
    """The account may store no more."""

    exit_code = 22


class ReadOnlyHome(InstallFault):
    """The home is mounted read-only."""

    exit_code = 23


class HomeNotWritable(InstallFault):
    """The account may not write into its own home."""

    exit_code = 24


class UploadDamaged(InstallFault):
    """What arrived on the box is not what was sent."""

    exit_code = 25


class AgentFails(InstallFault):
    """The new version does not answer on the box; the old one goes on serving."""

    exit_code = 26


class Busy(InstallFault):
    """Another install works on the same account at this moment."""

    exit_code = 27


class NewerInstalled(InstallFault):
    """The box has a newer version than this desktop."""

    exit_code = 28


class StoppedHalfway(InstallFault):
    """The connection, or the program on the box, ended before it said how it went."""

    exit_code = 30


class NotRemoved(InstallFault):
    """Something of ours could not be removed."""

    exit_code = 31


class ConsentFailed(InstallFault):
    """The agent is installed, but its ``enable`` command did not succeed."""

    exit_code = 32


class BoxFault(InstallFault):
    """The box's operating system said no to something else."""

    exit_code = 33


class NoLocalBundle(InstallFault):
    """The agent cannot be built from what is installed on this desktop."""

    exit_code = 34


_CLIENT_CODES = (
    (client.Unreachable, 10),
    (client.HostKeyUnknown, 11),
    (client.HostKeyChanged, 12),
    (client.AuthenticationFailed, 13),
    (client.TimedOut, 14),
    (client.SessionRefused, 16),
    (client.ConnectionLost, 15),
    (client.AgentMissing, 29),
    (client.UnknownHost, 2),
    (client.HostsFileBroken, 2),
)


def exit_code(fault: Exception) -> int:
    """The exit code of a fault of the installer or of the connection."""
    if isinstance(fault, InstallFault):
        return fault.exit_code
    return next((code for kind, code in _CLIENT_CODES if isinstance(fault, kind)), 1)


def name(fault: Exception) -> str:
    """The fault's name in JSON and in docs/troubleshooting.md: ``no-python`` for NoPython."""
    words = type(fault).__name__
    return "".join(("-" + letter.lower()) if letter.isupper() else letter for letter in words).lstrip("-")
