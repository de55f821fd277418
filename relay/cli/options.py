"""What several commands take: hosts, agents, moments; and the exit codes they all end with."""

from __future__ import annotations

import math
import re
import time
from datetime import datetime
from typing import Any

import click

from relay.contract.fields import epoch_ms
from relay.contract.requests import AGENT_NAMES

#: Exit codes. 2 is click's for a command line that cannot be understood.
FOUND, NOTHING_FOUND, USAGE, UNAVAILABLE, NO_ANSWER, STALE = range(6)

EXIT_CODES = """\b
Exit codes: 0 something was found, 1 nothing was found, 2 the command line is wrong,
3 no search on that host (off, or not ready), 4 the host gave no answer,
5 the index changed since the page that --cursor names."""

_UNITS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AGO = re.compile(r"(\d{1,6})\s*([mhdw])")


class HostType(click.ParamType):
    """A host's id as it is typed; completed with the hosts there are, but for those that begin with ``without``.

    ``extra`` are further words it may be.
    """

    name = "host"

    def __init__(self, *extra: str, without: str = "none") -> None:
        self.extra = extra
        self.without = without

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        words = [word for word in ["local", *self.extra, *_configured()] if not word.startswith(self.without)]
        # A shell may take the colon for the end of a word and ask only for what follows it.
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]


class Seconds(click.FloatRange):
    """A span of time within two bounds; what is no number (``nan``) lies within none."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail(f"{value!r} is no number of seconds.", param, ctx)
        return seconds


class Moment(click.ParamType):
    """A moment as epoch milliseconds: ISO 8601 (local time without an offset), or how long ago (``7d``, ``12h``)."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        moment = _moment(value.strip())
        if moment is None:
            self.fail(f"{value!r} is no moment. Write 7d, 12h, 2026-03-01 or 2026-03-01T09:30Z.", param, ctx)
        if not 0 <= moment < 253402300800000:  # the year 10000, which the wire cannot write
            self.fail(f"{value!r} lies outside the years 1970 to 9999.", param, ctx)
        return moment


AGENT = click.Choice(AGENT_NAMES)


def _moment(text: str) -> int | None:
    ago = _AGO.fullmatch(text.lower())
    if ago:
        return int((time.time() - int(ago.group(1)) * _UNITS[ago.group(2)]) * 1000)
    moment = epoch_ms(text)
    if moment is None:
        try:
            return int(datetime.fromisoformat(text).timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            return None
    return moment


def _configured() -> list[str]:
    try:
        from relay import paths
        from relay.client import hosts_file

        return [host.id.label for host in hosts_file.load(paths.config_folder())]
    except Exception:  # a completion shows nothing rather than a traceback; on a box there is no client
        return []


#: The ``--host`` of commands that ask one host or all of them.
ANY_HOST = click.option(
    "--host",
    type=HostType("all"),
    default="local",
    show_default=True,
    metavar="HOST",
    help="local, ssh:TARGET, runtime:NAME, or all of them. See `relay hosts list`.",
)
