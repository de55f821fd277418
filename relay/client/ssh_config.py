"""What the ssh configuration says about a target: asked of ``ssh -G``, or read by paramiko where there is no ssh."""

from __future__ import annotations

import getpass
import os
import re
import shlex
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relay.client.faults import Unreachable

#: Names another configuration file than ``~/.ssh/config`` (as ``ssh -F`` does), for both transports.
CONFIG_VARIABLE = "SESSION_RELAY_SSH_CONFIG"
_HOST_AND_PORT = re.compile(r"[^\[\]:/]+:\d{1,5}\Z")
#: More hops than this before one host are taken for a circle.
MOST_HOPS = 8
_DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")


@dataclass(frozen=True)
class Settings:
    """Everything that decides how one host is reached; paths are expanded, times are in seconds.

    ``unknown_keys`` is ``refuse`` or ``add`` (StrictHostKeyChecking accept-new and no). ``identity_agent`` is the path
    of a socket, None for no agent. ``proxy_jump`` holds the hops in order.
    ``methods`` are those that may be tried, in order.
    """

    target: str
    hostname: str
    port: int
    user: str
    host_key_alias: str | None = None
    identity_files: tuple[str, ...] = ()
    identities_only: bool = False
    identity_agent: str | None = None
    certificate_files: tuple[str, ...] = ()
    user_known_hosts: tuple[str, ...] = ()
    global_known_hosts: tuple[str, ...] = ()
    unknown_keys: str = "refuse"
    hash_known_hosts: bool = False
    proxy_jump: tuple[str, ...] = ()
    proxy_command: str | None = None
    connect_timeout: float | None = None
    alive_interval: int = 15
    alive_count: int = 3
    address_family: str = "any"
    bind_address: str | None = None
    prompts: int = 3
    methods: tuple[str, ...] = ("publickey", "keyboard-interactive", "password")

    @property
    def known_as(self) -> str:
        """The name under which known_hosts holds the host's key."""
        if self.host_key_alias:
            return self.host_key_alias
        return self.hostname if self.port == 22 else f"[{self.hostname}]:{self.port}"


def destination(target: str) -> list[str]:
    """The words that tell ssh the target: it has no short form for ``box:2222``, and no URI for an IPv6 address."""
    user, host, port = split_target(target)
    if "[" in target and ":" in host:
        return [*(["-p", port] if port else []), f"{user}@{host}" if user else host]
    return [f"ssh://{target}" if _HOST_AND_PORT.match(target) else target]


def ssh_program() -> str | None:
    """The system's ssh, None when there is none."""
    return shutil.which("ssh")


def config_arguments() -> list[str]:
    """The ``-F`` arguments for ssh when CONFIG_VARIABLE names a file."""
    path = os.environ.get(CONFIG_VARIABLE)
    return ["-F", path] if path else []


def read(target: str, timeout: float = 30.0) -> Settings:
    """The settings for ``target``, had within ``timeout`` seconds (a ``Match exec`` may take its time).

    Raises Unreachable when the configuration cannot be read.
    """
    program = ssh_program()
    values = _ask_ssh(program, target, timeout) if program else _read_by_paramiko(target)
    return _settings(target, values)


def refuse_circle(settings: Settings, timeout: float) -> None:
    """Raises Unreachable when the first hop's first hop, and so on, leads back to where it came from."""
    hop = settings
    for _ in range(MOST_HOPS):
        if not hop.proxy_jump:
            return
        hop = read(hop.proxy_jump[0], timeout)
    raise circle(settings.target)


def circle(target: str) -> Unreachable:
    """The fault for a ProxyJump without an end."""
    return Unreachable(
        f"ProxyJump leads to {target} through more than {MOST_HOPS} hops: a circle in your ssh configuration?"
    )


def _ask_ssh(program: str, target: str, timeout: float) -> dict[str, list[str]]:
    command = [program, *config_arguments(), "-G", "-T", *destination(target)]
    try:
        result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unreachable(
            f"`ssh -G {target}` gave no answer. Try it by hand; a `Match exec` in your ssh configuration may hang."
        ) from error
    if result.returncode != 0:
        said = result.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Unreachable(
            f"Your ssh configuration cannot be read for {target}: {said[-1] if said else 'ssh -G failed'}. Correct it"
            " first."
        )
    values: dict[str, list[str]] = {}
    for line in result.stdout.decode("utf-8", "replace").splitlines():
        name, _, value = line.partition(" ")
        values.setdefault(name.lower(), []).append(value)
    return values


def _read_by_paramiko(target: str) -> dict[str, list[str]]:
    import paramiko

    user, host, port = split_target(target)
    config = paramiko.SSHConfig()
    named = os.environ.get(CONFIG_VARIABLE)
    for path in [named] if named else [os.path.expanduser("~/.ssh/config"), "/etc/ssh/ssh_config"]:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                config.parse(file)
        except FileNotFoundError:
            continue
        except (OSError, paramiko.SSHException) as error:
            raise Unreachable(f"{path} cannot be read: {error}. Correct it first.") from error
    found = {name: value if isinstance(value, list) else [value] for name, value in config.lookup(host).items()}
    for name, value in (("user", user), ("port", port)):
        if value:
            found[name] = [value]
    return found


def split_target(target: str) -> tuple[str | None, str, str | None]:
    """User, host and port of ``[ssh://][user@]host[:port]``; None for what is not said."""
    rest = target[6:].rstrip("/") if target.startswith("ssh://") else target
    user, at, rest = rest.rpartition("@")
    if rest.startswith("["):
        host, _, port = rest[1:].partition("]")
        port = port.lstrip(":")
    elif rest.count(":") == 1:
        host, _, port = rest.partition(":")
    else:
        host, port = rest, ""
    return (user if at else None), host, port or None


def _settings(target: str, values: Mapping[str, Sequence[str]]) -> Settings:
    def one(name: str, default: str = "") -> str:
        found = values.get(name)
        return found[0] if found else default

    def yes(name: str, default: bool) -> bool:
        return one(name, "yes" if default else "no").lower() in ("yes", "true")

    def optional(name: str) -> str | None:
        value = one(name)
        return None if value.lower() in ("", "none") else value

    hostname = one("hostname", split_target(target)[1])
    port = int(one("port", "22"))
    user = one("user") or getpass.getuser()
    alias = optional("hostkeyalias")
    tokens = _tokens(split_target(target)[1], hostname, port, user, alias)

    def paths(name: str, default: Sequence[str] = ()) -> tuple[str, ...]:
        return tuple(expanded(value, tokens) for value in values.get(name, default) if value.lower() != "none")

    def lists(name: str, default: str) -> tuple[str, ...]:
        return tuple(expanded(value, tokens) for value in _words(one(name, default)) if value.lower() != "none")

    proxy_command = optional("proxycommand")
    jump = optional("proxyjump") if proxy_command is None else None
    strict = one("stricthostkeychecking", "ask").lower()
    wait = one("connecttimeout", "none")
    interval = int(one("serveraliveinterval", "0"))
    allowed = {
        "publickey": yes("pubkeyauthentication", True) or one("pubkeyauthentication") in ("unbound", "host-bound"),
        "keyboard-interactive": yes("kbdinteractiveauthentication", True),
        "password": yes("passwordauthentication", True),
    }
    preferred = one("preferredauthentications").split(",") if one("preferredauthentications") else list(allowed)
    return Settings(
        target=target,
        hostname=hostname,
        port=port,
        user=user,
        host_key_alias=alias,
        identity_files=paths("identityfile", _DEFAULT_KEYS),
        identities_only=yes("identitiesonly", False),
        identity_agent=_agent_socket(one("identityagent", "SSH_AUTH_SOCK"), tokens),
        certificate_files=paths("certificatefile"),
        user_known_hosts=lists("userknownhostsfile", "~/.ssh/known_hosts ~/.ssh/known_hosts2"),
        global_known_hosts=lists("globalknownhostsfile", "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"),
        unknown_keys="add" if strict in ("accept-new", "no", "off", "false") else "refuse",
        hash_known_hosts=yes("hashknownhosts", False),
        proxy_jump=tuple(hop.strip() for hop in jump.split(",")) if jump else (),
        proxy_command=expanded(proxy_command, tokens, home=False) if proxy_command else None,
        connect_timeout=float(wait) if wait.isdigit() and wait != "0" else None,
        alive_interval=interval or 15,
        alive_count=int(one("serveralivecountmax", "3")),
        address_family=one("addressfamily", "any").lower(),
        bind_address=optional("bindaddress"),
        prompts=int(one("numberofpasswordprompts", "3")),
        methods=tuple(method for method in preferred if allowed.get(method)),
    )


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an unpaired quote
        return text.split()


def _agent_socket(value: str, tokens: Mapping[str, str]) -> str | None:
    if value.lower() == "none":
        return None
    if value == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK") or None
    if value.startswith("$"):
        return os.environ.get(value[1:].strip("{}")) or None
    return expanded(value, tokens)


def _tokens(original: str, hostname: str, port: int, user: str, alias: str | None) -> dict[str, str]:
    local = socket.gethostname()
    return {
        "%": "%",
        "d": os.path.expanduser("~"),
        "h": hostname,
        "i": str(os.getuid()),
        "k": alias or original,
        "L": local.split(".")[0],
        "l": local,
        "n": original,
        "p": str(port),
        "r": user,
        "u": getpass.getuser(),
    }


def expanded(text: str, tokens: Mapping[str, str], home: bool = True) -> str:
    """``text`` with the percent tokens of ssh_config(5), ``${VARIABLES}`` and (``home``) a leading tilde replaced."""
    text = re.sub(r"%([%A-Za-z])", lambda match: tokens.get(match.group(1), match.group(0)), text)
    text = re.sub(r"\$\{(\w+)\}", lambda match: os.environ.get(match.group(1), ""), text)
    return os.path.expanduser(text) if home else text
