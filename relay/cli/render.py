"""Answers as people read them: plain lines, in colour only on a terminal, all text from elsewhere made safe first."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TextIO

from relay.cli.text import line
from relay.contract.fields import epoch_ms

#: A mark may go over the end of a wrapped line.
_MARK = re.compile(r"\[\[(.+?)\]\]", re.DOTALL)
_WIDEST, _NARROWEST = 120, 40
_INDENT = "   "
_DAY = 86400
_AGES = ((60, 1, "s"), (3600, 60, "min"), (_DAY, 3600, "h"), (14 * _DAY, _DAY, "d"), (90 * _DAY, 7 * _DAY, "weeks"))


class Style(NamedTuple):
    """How to write: with colour or not, how wide (columns), and what time it is (epoch seconds)."""

    color: bool = False
    width: int = _WIDEST
    now: float = 0.0

    @classmethod
    def of(cls, stream: TextIO) -> Style:
        """The style for a stream: colour on a terminal that has it, unless NO_COLOR is set."""
        width = max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((_WIDEST, 24)).columns))
        return cls(is_live(stream) and not os.environ.get("NO_COLOR"), width, time.time())

    def paint(self, text: str, codes: str) -> str:
        """``text`` in the given SGR codes (``"1;33"``), or as it is when there is no colour."""
        return f"\x1b[{codes}m{text}\x1b[0m" if self.color and text else text


BOLD, DIM, MARK, AGENT, WARN = "1", "2", "1;33", "36", "31"


def is_live(stream: TextIO) -> bool:
    """Whether the stream is a terminal that understands control sequences."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def open_stdout() -> Style:
    """The style of stdout."""
    return Style.of(sys.stdout)


def hits(response: Mapping[str, Any], style: Style) -> Iterator[str]:
    """The hits of a results response, a block of lines each."""
    for number, hit in enumerate(response["hits"], 1):
        yield from _hit(number, hit, style)
        yield ""


def _hit(number: int, hit: Mapping[str, Any], style: Style) -> Iterator[str]:
    host = line(hit.get("executionHostId", "local"))
    home = os.path.expanduser("~") if host == "local" else None
    yield f"{number:>2} {style.paint(line(hit['title'], 200) or '(no title)', BOLD)}"
    facts = [
        style.paint(hit["agent"], AGENT),
        moment(epoch_ms(hit["updatedAt"]) if hit["updatedAt"] else None, style.now),
    ]
    place = line(hit["cwd"] or "")
    if home and place.startswith(home + os.sep):
        place = "~" + place[len(home) :]
    branch = line(hit["branch"] or "")
    facts.append(" ".join(part for part in (place, f"({branch})" if branch else "") if part))
    facts.append(host_label(host) if host != "local" else "")
    facts.append(count(hit["messageCount"], "message"))
    facts.append(count(hit.get("duplicateCount", 1) - 1, "more fork") if hit.get("duplicateCount", 1) > 1 else "")
    facts.append(
        {"unverifiable": "its file cannot be verified", "missing": "its file is gone"}.get(
            hit["source"]["presence"], ""
        )
    )
    yield _INDENT + " · ".join(fact for fact in facts if fact)
    if hit["evidence"]:
        yield from _snippet(hit["evidence"], style)
    if hit["source"].get("filePath"):
        yield _INDENT + style.paint(line(hit["source"]["filePath"], 4096), DIM)
    yield _INDENT + style.paint(_resume(hit, host), DIM)


def _snippet(evidence: Mapping[str, Any], style: Style) -> Iterator[str]:
    said = f"{evidence['role']}: " if evidence["role"] != "unknown" else ""
    wrapped = textwrap.wrap(
        said + line(evidence["snippet"], 2000),
        style.width,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_on_hyphens=False,
    )
    text = "\n".join(wrapped)
    if style.color:
        # Line by line, so that no colour runs into the margin.
        text = _MARK.sub(lambda mark: "\n".join(style.paint(part, MARK) for part in mark[1].split("\n")), text)
    yield from text.split("\n")


def _resume(hit: Mapping[str, Any], host: str) -> str:
    """The line that reopens the session: the command itself when we have it, else the one that asks the host for it."""
    if hit.get("resumeCommand"):
        return line(hit["resumeCommand"], 4096)
    words = ["relay", "resume", *(["--host", host_label(host)] if host != "local" else []), "--agent", hit["agent"]]
    return " ".join(shlex.quote(word) for word in [*words, line(hit["sessionId"])])


def notes(response: Mapping[str, Any]) -> Iterator[str]:
    """What the flags of a results response mean for its reader."""
    truncated = response["truncated"]
    if truncated["query"]:
        yield "The query was longer than 512 characters or 48 words; what lies beyond was not searched for."
    if truncated["candidates"]:
        yield "So much matches that not all of it was looked at. A rarer word or a filter finds the rest."
    if truncated["freshness"]:
        yield "The newest changes were not all read within 5 s; the same search a little later sees them."
    for term in response.get("debug", {}).get("repairedTerms", ()):
        yield f"Searched for {line(term['to'], 80)!r}, since {line(term['from'], 80)!r} occurs nowhere."


def debug(response: Mapping[str, Any]) -> Iterator[str]:
    """The report a search with ``--debug`` brings."""
    if "debug" in response:
        report = response["debug"]["plannerReport"]
        yield f"route {report['route']}, scope {report['scope']}, generation {response['generation']:.0f}"
    yield f"{len(response['hits'])} hits in {response['durationMs']:.1f} ms"


def unavailable(reason: str, host: str) -> str:
    """Why a host (as it is typed) cannot search, and what to do."""
    here = host == "local"
    if reason == "disabled":
        if here:
            return "Search is off on this machine. `relay enable` turns it on; nothing is read before."
        return f"Search is off there. Its account turns it on: {on_host(host, 'enable')}"
    if reason == "not-ready":
        return (
            "The index is being made ready. Try again in a moment;"
            f" `relay status --host {shlex.quote(host)}` shows how far it is."
        )
    if here:
        return "This Python cannot search: its SQLite lacks FTS5, or the index cannot be had. See `relay status`."
    return "Its agent is too old, or its Python cannot search. " + (
        f"See `relay-installer check {shlex.quote(host)}`."
        if host.startswith("ssh:")
        else f"Update Session Relay inside {host}."
    )


def on_host(host: str, *arguments: str) -> str:
    """The line to type here that runs the agent's own command on a host."""
    kind, _, target = host.partition(":")
    if kind != "ssh":
        return f"run `relay {shlex.join(arguments)}` inside {host}"
    from relay.client.launcher import remote_command
    from relay.client.ssh_config import destination

    return shlex.join(["ssh", *destination(target), remote_command(*arguments)])


def host_label(host_id: str) -> str:
    """A host id as a person types it."""
    if host_id == "local":
        return host_id
    from relay.client import host_ids

    return host_ids.parse(host_id).label


def moment(milliseconds: float | None, now: float) -> str:
    """How long ago, and the local date: ``3 h ago (2026-03-01 09:30)``."""
    if milliseconds is None:
        return "at an unknown time"
    try:
        date = datetime.fromtimestamp(milliseconds / 1000).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"
    return f"{ago(milliseconds, now)} ({date})" if ago(milliseconds, now) else date


def ago(milliseconds: float, now: float) -> str:
    """``5 min ago``; empty for what lies ahead or further back than 90 days."""
    seconds = now - milliseconds / 1000
    if -5 <= seconds < 5:
        return "now"
    for below, unit, name in _AGES:
        if 0 <= seconds < below:
            return f"{seconds / unit:.0f} {name} ago"
    return ""


def status(answer: Mapping[str, Any], host: str, style: Style) -> Iterator[str]:
    """One host's status."""
    yield f"{style.paint(host, BOLD)}: {state(answer)}"
    checked = answer["lastReconcileAt"]
    swept = answer["lastSweepCompletedAt"]
    yield f"{_INDENT}transcripts: {answer['filesIndexed']:,.0f} indexed, {answer['filesDue']:,.0f} waiting, " + (
        f"{answer['filesFailed']:,.0f} failed"
    )
    yield f"{_INDENT}last look for changes: {moment(checked, style.now) if checked else 'never'}"
    yield f"{_INDENT}last full sweep: {moment(swept, style.now) if swept else 'never'}"
    for root in answer["degradedRoots"]:
        where = f"{line(root['root'], 4096)}: " if root.get("root") else ""
        yield _INDENT + style.paint(f"not verified: {where}{line(root['reason'])}", WARN)


def state(answer: Mapping[str, Any]) -> str:
    """On or off, and what the index is doing."""
    if not answer["enabled"]:
        return "off"
    return "on, " + ("up to date" if answer["phase"] == "current" else answer["phase"])


def incomplete(answer: Mapping[str, Any]) -> str:
    """A sentence when a host's index does not hold everything yet, by its status; else empty."""
    if answer["enabled"] and answer["lastSweepCompletedAt"] is None:
        return "Not all transcripts there are indexed yet; the same search finds more a little later."
    if answer["enabled"] and answer["filesDue"]:
        return f"{count(answer['filesDue'], 'transcript')} there wait to be indexed; the same search finds more later."
    return ""


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows in columns as wide as their widest cell; the last column runs free."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)] if rows else []
    for row in rows:
        yield "  ".join([cell.ljust(width) for cell, width in zip(row, widths)] + [row[-1]]).rstrip()


def count(number: float, what: str) -> str:
    """``1 file``, ``2,000 files``."""
    return f"{number:,.0f} {what}{'' if number == 1 else 's'}"
