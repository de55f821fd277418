"""Where this account keeps our files: the state folder (the index) and the policy file (consent)."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from typing import Any, Mapping, Optional


def state_folder(variables: Optional[Mapping[str, str]] = None) -> str:
    """``$XDG_STATE_HOME/session-relay`` or its default; not created here."""
    return _folder(variables, "XDG_STATE_HOME", ".local/state")


def config_folder(variables: Optional[Mapping[str, str]] = None) -> str:
    """``$XDG_CONFIG_HOME/session-relay`` or its default; not created here."""
    return _folder(variables, "XDG_CONFIG_HOME", ".config")


def replace_config_file(folder: str, name: str, value: Any) -> None:
    """Write ``value`` as JSON in one step: readers see the old file or the new one; only the account may read either.

    Makes the folder when it is not there. Raises OSError.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.stat(folder).st_mode & 0o077:
        os.chmod(folder, 0o700)
    target = os.path.realpath(os.path.join(folder, name))  # a link into a folder of dot files stays one
    temporary = f"{target}.{uuid.uuid4().hex}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(value, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _folder(variables: Optional[Mapping[str, str]], name: str, default: str) -> str:
    variables = os.environ if variables is None else variables
    base = variables.get(name, "")
    if not os.path.isabs(base):  # the XDG specification: a relative value is ignored
        home = variables.get("HOME") or os.path.expanduser("~")
        base = os.path.join(home, *default.split("/"))
    return os.path.join(base, "session-relay")
