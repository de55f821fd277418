"""Names for hosts: ``local``, ``ssh:<target>``, ``runtime:<name>``, and the scope ``all``, which is no host."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from relay.client.faults import UnknownHost

LOCAL = "local"
ALL = "all"
SSH = "ssh"
RUNTIME = "runtime"

#: What JavaScript's encodeURIComponent leaves as it is, so that both ends write one id the same way.
_PLAIN = "-_.!~*'()"
_KINDS = {SSH: "an SSH host", RUNTIME: "a runtime"}
_HEX = frozenset("0123456789abcdefABCDEF")
_LONGEST = 512


class HostId(NamedTuple):
    """A host's kind (``local``, ``ssh`` or ``runtime``) and its name in plain text (empty for ``local``)."""

    kind: str
    name: str = ""

    def __str__(self) -> str:
        """The id on the wire, its name percent-encoded."""
        return f"{self.kind}:{quote(self.name, safe=_PLAIN)}" if self.name else self.kind

    @property
    def label(self) -> str:
        """The id as a person types it: the name in plain text where that reads back as the same name."""
        plain = f"{self.kind}:{self.name}" if self.name else self.kind
        return plain if "%" not in plain else str(self)


def parse(text: str) -> HostId:
    """The host a text names; the name may be percent-encoded or plain.

    Raises UnknownHost for everything else (``all`` too, which names no single host): nothing is guessed or widened.
    """
    if text == LOCAL:
        return HostId(LOCAL)
    kind, colon, encoded = text.partition(":")
    if not colon or kind not in (SSH, RUNTIME):
        raise UnknownHost(f"{text!r} names no host. Write local, ssh:TARGET or runtime:NAME; see `relay hosts list`.")
    if kind == SSH and encoded.startswith("//"):  # ssh's own long form: ssh://me@box:2222
        encoded = encoded[2:].rstrip("/")
    name = _decoded(encoded)
    if name is None or not _sound(kind, name):
        raise UnknownHost(f"{text!r} names no host: what follows the colon cannot be the name of {_KINDS[kind]}.")
    return HostId(kind, name)


def _decoded(encoded: str) -> str | None:
    pieces = encoded.split("%")[1:]
    if any(len(piece) < 2 or not _HEX.issuperset(piece[:2]) for piece in pieces):
        return None
    try:
        return unquote_to_bytes(encoded).decode("utf-8")
    except UnicodeDecodeError:
        return None


def _sound(kind: str, name: str) -> bool:
    if not name or len(name) > _LONGEST or not name.isprintable() or name != name.strip():
        return False
    return kind != SSH or _is_target(name)


def _is_target(name: str) -> bool:
    # A target that begins with a dash would be read as an option by ssh.
    if name.startswith("-") or "@-" in name or any(character.isspace() for character in name):
        return False
    if name.startswith(("@", "//")) or name.endswith("@"):
        return False
    host, colon, port = name.rpartition(":")
    return not (colon and port.isdecimal() and ":" not in host) or 0 < int(port) < 1 << 16
