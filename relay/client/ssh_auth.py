"""Logging in (RFC 4252, RFC 4256): keys first, then what a person at a terminal can answer."""

from __future__ import annotations

import getpass
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from relay.client import ssh_keys
from relay.client.faults import AuthenticationFailed, Unreachable
from relay.client.ssh_config import Settings

#: One question at a time, whichever host asks it.
_terminal = threading.Lock()
#: How long a person may take to answer, in seconds.
PATIENCE = 120.0


def ask_at_terminal(prompt: str, shown: bool = False) -> str:
    """The answer typed at the controlling terminal, not echoed unless ``shown``; empty when there is no terminal."""
    with _terminal:
        try:
            if not shown:
                return getpass.getpass(prompt)
            # Not one file in "r+": a terminal cannot seek.
            with open("/dev/tty", "w", encoding="utf-8") as screen, open("/dev/tty", encoding="utf-8") as keyboard:
                screen.write(prompt)
                screen.flush()
                return keyboard.readline().rstrip("\n")
        except (EOFError, OSError):
            return ""


def log_in(transport: Any, settings: Settings, interactive: bool) -> None:
    """Log ``transport`` (a paramiko Transport past its key exchange) in. Raises AuthenticationFailed or Unreachable."""
    attempt = _Attempt(transport, settings, interactive)
    if not attempt.succeeds():
        raise AuthenticationFailed(attempt.explanation())


class _Attempt:
    """One login: which methods the host still takes, what was offered, and why it did not do."""

    def __init__(self, transport: Any, settings: Settings, interactive: bool) -> None:
        self.transport, self.settings, self.interactive = transport, settings, interactive
        self.allowed: Sequence[str] = settings.methods
        self.offered: list[str] = []
        self.remarks: list[str] = []

    def succeeds(self) -> bool:
        """Try none, then every method of the settings in order; a host may ask for several (RFC 4252 §5.1)."""
        if self._done(partial(self.transport.auth_none, self.settings.user)):
            return True
        tried: set[str] = set()
        while True:
            method = next(
                (name for name in self.settings.methods if name in self.allowed and name not in tried), None
            )
            if method is None or not self.transport.is_active():
                return False
            tried.add(method)
            if getattr(self, "_by_" + method.replace("-", "_"))():
                return True

    def _done(self, step: Callable[[], Any]) -> bool:
        """Run one authentication request; True when it logged us in, else ``allowed`` is what the host still takes."""
        import paramiko

        try:
            further = step()
        except paramiko.BadAuthenticationType as error:
            self.allowed = error.allowed_types
            return False
        except paramiko.AuthenticationException as error:
            if "timeout" in str(error).lower():
                raise Unreachable(f"{self.settings.target} stopped answering during the login. Try again.") from error
            return False
        except (paramiko.SSHException, EOFError, OSError) as error:
            self.remarks.append(str(error) or "the host closed the connection")
            return False
        if further:
            self.allowed = further
            return False
        return bool(self.transport.is_authenticated())

    def _by_publickey(self) -> bool:
        ask = ask_at_terminal if self.interactive else None
        for candidate in ssh_keys.candidates(self.settings, ask, self.remarks):
            if not self.transport.is_active():
                return False
            before = self.allowed
            self.offered.append(candidate.label)
            if self._done(partial(self.transport.auth_publickey, self.settings.user, candidate.key)):
                return True
            if self.allowed is not before and "publickey" not in self.allowed:
                return False
        return False

    def _by_keyboard_interactive(self) -> bool:
        if not self.interactive:
            return False
        name = f"({self.settings.user}@{self.settings.hostname}) "

        def answers(title: str, instructions: str, prompts: Sequence[tuple[str, bool]]) -> list[str]:
            return [ask_at_terminal(name + prompt, shown) for prompt, shown in prompts]

        return any(
            self._done(partial(self.transport.auth_interactive, self.settings.user, answers))
            for _ in range(self.settings.prompts)
            if self.transport.is_active() and "keyboard-interactive" in self.allowed
        )

    def _by_password(self) -> bool:
        if not self.interactive:
            return False
        for _ in range(self.settings.prompts):
            password = ask_at_terminal(f"{self.settings.user}@{self.settings.hostname}'s password: ")
            if not password or not self.transport.is_active():
                return False
            if self._done(partial(self.transport.auth_password, self.settings.user, password, fallback=False)):
                return True
        return False

    def explanation(self) -> str:
        """What was tried and what to do, for a person."""
        text = f"{self.settings.target} lets {self.settings.user} in with none of the keys there were to offer"
        text += f" ({', '.join(self.offered)})." if self.offered else " (there were none)."
        if self.remarks:
            text += " Note: " + "; ".join(self.remarks) + "."
        if len(self.offered) > 4:
            text += " A host takes about six: name the right one with IdentityFile and IdentitiesOnly."
        if not self.interactive and any(name in self.allowed for name in ("password", "keyboard-interactive")):
            text += " The host would take a password: run this at a terminal, or set up a key with ssh-copy-id."
        else:
            text += f" Next: see that `ssh {self.settings.target}` works without a question."
        return text
