"""Where this account keeps our files: the state folder (the index) and the policy file (consent)."""

from __future__ import annotations

import os
from typing import Mapping, Optional


def state_folder(variables: Optional[Mapping[str, str]] = None) -> str:
    """``$XDG_STATE_HOME/session-relay`` or its default; not created here."""
    return _folder(variables, "XDG_STATE_HOME", ".local/state")


def config_folder(variables: Optional[Mapping[str, str]] = None) -> str:
    """``$XDG_CONFIG_HOME/session-relay`` or its default; not created here."""
    return _folder(variables, "XDG_CONFIG_HOME", ".config")


def _folder(variables: Optional[Mapping[str, str]], name: str, default: str) -> str:
    variables = os.environ if variables is None else variables
    base = variables.get(name, "")
    if not os.path.isabs(base):  # the XDG specification: a relative value is ignored
        home = variables.get("HOME") or os.path.expanduser("~")
        base = os.path.join(home, *default.split("/"))
    return os.path.join(base, "session-relay")
