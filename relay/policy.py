"""Consent: the policy file of this account, which says whether its transcripts may be read, and which."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping, Optional, Tuple

from relay.diagnostics import say
from relay.paths import replace_config_file

FILE_NAME = "policy.json"

#: No clear takes longer; a mark that claims more (a clock that jumped) is not believed.
LONGEST_CLEAR = 60.0

#: What a look at the file is compared by: inode, size and time of change, or None when there is no file.
Signature = Optional[Tuple[int, int, int]]


@dataclass(frozen=True)
class Policy:
    """What the person with the account decided. The default is what holds without a file: nothing may be read.

    ``history_days`` is the retention (None: everything). ``roots`` maps an agent to further folders named by the
    person. ``epoch`` changes with every clear. ``clearing_until`` (epoch seconds, 0 otherwise) asks running agents to
    let go of the index for so long, so that it can be removed; a clear that is killed leaves nothing behind.
    """

    enabled: bool = False
    history_days: Optional[int] = None
    roots: Mapping[str, Tuple[str, ...]] = field(default_factory=dict)
    epoch: str = ""
    clearing_until: float = 0.0

    @property
    def clearing(self) -> bool:
        """Whether the index is being removed just now."""
        return 0.0 < self.clearing_until - time.time() <= LONGEST_CLEAR


def new_epoch() -> str:
    """A name for the time from now to the next clear."""
    return os.urandom(16).hex()


def read(config_folder: str) -> Policy:
    """The policy in force. An absent file, and one that is broken or cannot be read (said on stderr), disable."""
    try:
        with open(os.path.join(config_folder, FILE_NAME), encoding="utf-8") as file:
            return _parse(json.load(file))
    except FileNotFoundError:
        return Policy()
    except OSError as error:
        say(f"the policy file cannot be read ({error.strerror}): search is off. `relay enable` writes it anew.")
    except (ValueError, RecursionError):
        say("the policy file is not what `relay enable` writes: search is off until that is run again.")
    return Policy()


def write(config_folder: str, policy: Policy) -> None:
    """Put the policy in force, in one step: readers see the old file or the new one. Raises OSError."""
    value = {
        "enabled": policy.enabled,
        "historyDays": policy.history_days,
        "roots": {agent: list(paths) for agent, paths in policy.roots.items()},
        "epoch": policy.epoch,
        "clearingUntil": policy.clearing_until,
    }
    replace_config_file(config_folder, FILE_NAME, value)


def signature(config_folder: str) -> Signature:
    """Changes whenever the file does; one ``stat``."""
    try:
        found = os.stat(os.path.join(config_folder, FILE_NAME))
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _parse(value: Any) -> Policy:
    """Raises ValueError for anything that ``write`` cannot have written: consent is never guessed."""
    if not isinstance(value, dict) or not isinstance(value.get("enabled"), bool):
        raise ValueError("no policy")
    days = value.get("historyDays")
    if days is not None and (isinstance(days, bool) or not isinstance(days, int) or days < 1):
        raise ValueError("historyDays")
    epoch, until = value.get("epoch", ""), value.get("clearingUntil", 0.0)
    if not isinstance(epoch, str) or isinstance(until, bool) or not isinstance(until, (int, float)):
        raise ValueError("epoch")
    return Policy(value["enabled"], days, dict(_roots(value.get("roots", {}))), epoch, float(until))


def _roots(value: Any) -> Iterator[Tuple[str, Tuple[str, ...]]]:
    if not isinstance(value, dict):
        raise ValueError("roots")
    for agent, paths in value.items():
        if not isinstance(paths, list) or not all(isinstance(path, str) and os.path.isabs(path) for path in paths):
            raise ValueError("roots")
        yield agent, tuple(paths)
