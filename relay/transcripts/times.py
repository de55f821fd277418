"""Timestamps of any agent to epoch milliseconds."""

from __future__ import annotations

import os
import re
import time
from datetime import datetime, timezone
from typing import Any, Dict, Optional

#: 2000-01-01: what is older is a clock that was never set, or no time at all.
EARLIEST = 946_684_800_000
_DAY = 86_400_000

_ISO = re.compile(
    r"\s*(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,12}))?)?\s*([Zz]|[+-]\d\d:?(?:\d\d)?)?)?\s*$"
)
#: By the text up to the seconds: the minute in milliseconds.
_minutes: Dict[str, int] = {}


def millis(value: Any, local: bool = False) -> Optional[int]:
    """``value`` as epoch milliseconds, or None when it is no time between 2000 and tomorrow.

    Takes a number or numeric text, whose size tells its unit (below 1e11 seconds, 1e14 milliseconds, 1e17
    microseconds, else nanoseconds), or ISO 8601 text with any number of decimals. Text without a zone is UTC, or
    this machine's own time when ``local``.
    """
    if type(value) is str:
        found = _from_text(value, local)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        found = _from_number(value)
    else:
        return None
    if found is None or found < EARLIEST or found > time.time() * 1000 + _DAY:
        return None
    return found


def modified(path: str) -> Optional[int]:
    """The time of the file's last change, for transcripts that carry no times; None when it is gone."""
    try:
        return millis(os.stat(path).st_mtime)
    except OSError:
        return None


def _from_number(value: float) -> Optional[int]:
    if not 0 < value < 1e20:  # nor what is not a number
        return None
    if value < 1e11:
        return int(value * 1000)
    if value < 1e14:
        return int(value)
    return int(value / 1e3) if value < 1e17 else int(value / 1e6)


def _from_text(text: str, local: bool) -> Optional[int]:
    # The form nearly every record carries, 2026-05-02T08:00:00.120Z, most often in the minute of one before it.
    if len(text) == 24 and text[19] == "." and text[23] == "Z":
        minute = _minutes.get(text[:17])
        if minute is not None and text[17:19].isdecimal() and text[20:23].isdecimal():
            return minute + int(text[17:19]) * 1000 + int(text[20:23])
    match = _ISO.match(text)
    if match is None:
        try:
            return _from_number(float(text))
        except ValueError:
            return None
    year, month, day_, hour, minute_, second, fraction, zone = match.groups()
    try:
        second = min(int(second or 0), 59)
        moment = datetime(int(year), int(month), int(day_), int(hour or 0), int(minute_ or 0), second)
        if zone is None and local:
            whole = int(moment.timestamp()) * 1000
        else:
            whole = int(moment.replace(tzinfo=timezone.utc).timestamp()) * 1000 - _offset(zone)
    except (ValueError, OverflowError, OSError):
        return None
    if zone == "Z":
        if len(_minutes) > 4096:
            _minutes.clear()
        _minutes[text[:17]] = whole - whole % 60_000
    return whole + int((fraction or "0").ljust(3, "0")[:3])


def _offset(zone: Optional[str]) -> int:
    if zone is None or zone in ("Z", "z"):
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return (-1 if zone[0] == "-" else 1) * (int(digits[:2]) * 60 + int(digits[2:])) * 60_000
