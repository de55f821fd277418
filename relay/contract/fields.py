"""Plain JSON values read field by field: each fault is an issue with its path, unknown fields are left behind."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from typing import Any, Callable, Dict, List, Mapping, Optional

#: A check gives None for a good value, else what the value must be ("must be a string").
Check = Callable[[Any], Optional[str]]
Issue = Dict[str, str]

REQUIRED = object()

#: A list of a hundred thousand wrong names must not become as many issues.
MOST_ISSUES = 100

_EPOCH = datetime(1970, 1, 1)
_DATE_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
    r"(?:Z|([+-])([0-9]{2})(?::?([0-9]{2}))?)"
)


class Fields:
    """The fields of one JSON object found at ``path``; what is wrong with them is added to ``issues``."""

    def __init__(self, value: Any, path: str, issues: List[Issue]) -> None:
        self.path = path
        self.issues = issues
        self.present = isinstance(value, Mapping)
        self._value: Mapping[str, Any] = value if self.present else {}
        if not self.present:
            self.issue(path, "must be an object")

    def issue(self, path: str, message: str) -> None:
        """Add a fault; those beyond ``MOST_ISSUES`` are not told."""
        if len(self.issues) < MOST_ISSUES:
            self.issues.append({"path": path, "message": message})

    def take(self, name: str, check: Check, default: Any = REQUIRED) -> Any:
        """The field's value; ``default`` when it is absent or wrong (None then, when it is required)."""
        fallback = None if default is REQUIRED else default
        if name not in self._value:
            if default is REQUIRED and self.present:
                self.issue(self._below(name), "is required")
            return fallback
        message = check(self._value[name])
        if message is None:
            return self._value[name]
        self.issue(self._below(name), message)
        return fallback

    def items(self, name: str, check: Check, most: Optional[int] = None) -> List[Any]:
        """The good items of a list field (of at most ``most``); absent is empty. An item's path is ``name.index``."""
        value = self.take(name, array, [])
        if most is not None and len(value) > most:
            self.issue(self._below(name), f"must have at most {most} items")
            return []
        faults = [check(item) for item in value]
        for index, message in enumerate(faults):
            if message is not None:
                self.issue(f"{self._below(name)}.{index}", message)
        return [item for item, message in zip(value, faults) if message is None]

    def children(self, name: str) -> List["Fields"]:
        """The objects in a required list field."""
        value = self.take(name, array) or []
        return [Fields(item, f"{self._below(name)}.{index}", self.issues) for index, item in enumerate(value)]

    def child(self, name: str, default: Any = REQUIRED) -> "Fields":
        """The fields of an object inside this one; ``default`` stands for an absent one."""
        if name in self._value or default is REQUIRED:
            return Fields(self._value.get(name), self._below(name), self.issues)
        return Fields(default, self._below(name), self.issues)

    def has(self, name: str) -> bool:
        """Whether the field is there, whatever its value."""
        return name in self._value

    def _below(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


def text(value: Any) -> Optional[str]:
    """A string."""
    return None if isinstance(value, str) else "must be a string"


def boolean(value: Any) -> Optional[str]:
    """True or false."""
    return None if isinstance(value, bool) else "must be a boolean"


def array(value: Any) -> Optional[str]:
    """A list."""
    return None if isinstance(value, list) else "must be a list"


def number(value: Any) -> Optional[str]:
    """Any JSON number."""
    return None if isinstance(value, (int, float)) and not isinstance(value, bool) else "must be a number"


def finite(value: Any) -> Optional[str]:
    """A number, not what ``1e999`` becomes."""
    good = number(value) is None and (isinstance(value, int) or math.isfinite(value))
    return None if good else "must be a finite number"


def count(value: Any) -> Optional[str]:
    """A whole number of at least 0; JSON does not tell 3 from 3.0."""
    good = finite(value) is None and value >= 0 and value == int(value)
    return None if good else "must be a whole number of at least 0"


def date_time(value: Any) -> Optional[str]:
    """An ISO 8601 date-time with ``Z`` or an offset."""
    message = "must be an ISO 8601 date-time with Z or an offset"
    return message if text(value) is not None or epoch_ms(value) is None else None


def one_of(*names: str) -> Check:
    """One of the given strings."""
    known = frozenset(names)
    message = "must be one of: " + ", ".join(names)
    return lambda value: None if isinstance(value, str) and value in known else message


def or_null(check: Check) -> Check:
    """What ``check`` takes, or null."""
    return lambda value: None if value is None else check(value)


def epoch_ms(stamp: str) -> Optional[int]:
    """The epoch milliseconds of an ISO 8601 date-time (finer fractions are cut), or None when it is none.

    Years 1 to 9999, as UTC. Own code, since ``fromisoformat`` takes neither ``Z`` nor 9 digits before Python 3.11.
    """
    match = _DATE_TIME.fullmatch(stamp)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, sign, offset_hours, offset_minutes = match.groups()
    try:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0))
    except ValueError:
        return None
    offset = timedelta(hours=int(offset_hours or 0), minutes=int(offset_minutes or 0))
    if int(offset_hours or 0) > 23 or int(offset_minutes or 0) > 59:
        return None
    try:
        moment = moment + offset if sign == "-" else moment - offset
    except OverflowError:
        return None
    return (moment - _EPOCH) // timedelta(milliseconds=1) + int(f"{fraction or ''}000"[:3])


def iso(milliseconds: int) -> str:
    """Epoch milliseconds as an ISO 8601 date-time in UTC with three digits, ``2026-03-01T09:30:00.000Z``.

    Raises OverflowError outside the years 1 to 9999.
    """
    return (_EPOCH + timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds") + "Z"
