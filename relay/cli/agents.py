"""``relay agents``: the agents that are known, where each is looked for, what was found there and what was not read."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence

import click

from relay.cli import render
from relay.cli.options import AGENT, FOUND
from relay.cli.text import clean_all, line

if TYPE_CHECKING:
    from relay.index.inventory import Inventory
    from relay.transcripts.registry import Root

_EPILOG = """\b
Without consent (see `relay enable`) only names, sizes and times of files are looked at.
Exit codes: 0 always, unless the command line is wrong (2)."""

#: Folders and failures shown for one agent; --json has them all.
_SHOWN = 2


@click.command(epilog=_EPILOG)
@click.argument("names", nargs=-1, type=AGENT, metavar="[AGENT]...")
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
def command(names: Sequence[str], as_json: bool) -> None:
    """List the coding agents that are known, or those named: where each is looked for, how much was found, and what of
    it could not be read."""
    style = render.open_stdout()
    report = _report(names)
    if as_json:
        click.echo(json.dumps(clean_all(report), indent=2 if sys.stdout.isatty() else None))
    else:
        for text in _lines(report, style):
            click.echo(text, color=style.color)
    sys.exit(FOUND)


def _report(names: Sequence[str]) -> Dict[str, Any]:
    """``{enabled, indexed, agents: […]}``; see ``_agent`` for an entry."""
    from relay import paths, policy
    from relay.transcripts import registry

    decided = policy.read(paths.config_folder())
    held = _inventory() if decided.enabled else None
    env = registry.Env.of_this_account(decided.roots, decided.enabled)
    places: Dict[str, List[Root]] = {}
    for root in registry.roots(env):
        places.setdefault(root.store.agent, []).append(root)
    entries = [
        _agent(agent.name, agent.label, places.get(agent.name, []), held)
        for agent in registry.agents().values()
        if not names or agent.name in names
    ]
    entries.sort(key=lambda entry: (not entry["files"], -(entry["newest"] or 0), entry["agent"]))
    return {"enabled": decided.enabled, "indexed": held is not None, "agents": entries}


def _inventory() -> Optional[Inventory]:
    """What the index holds, or None without one."""
    from relay import paths
    from relay.index import inventory, opening
    from relay.index.faults import IndexUnavailable

    try:
        return inventory.inventory(opening.database_path(paths.state_folder()))
    except IndexUnavailable:
        return None


def _agent(name: str, label: str, roots: Sequence[Root], held: Optional[Inventory]) -> Dict[str, Any]:
    """One agent. ``sessions``, ``empty``, ``failed`` and ``unknownRecords`` are null while nothing has been read.

    ``newest`` is when the newest session was updated, or the newest file changed (epoch ms). ``empty`` counts sources
    in which nothing was said; ``unknownRecords`` those records whose kind is not known.
    """
    found = [_place(root, held) for root in roots]
    if held is not None:
        sessions, newest = held.sessions.get(name, (0, None))
        counts = [held.places[key] for key in held.places if key[0] == name]
        read: Dict[str, Any] = {
            "sessions": sessions,
            "empty": sum(place.empty for place in counts),
            "failed": sum(place.failed for place in counts),
            "unknownRecords": sum(place.unknown for place in counts),
            "failures": [{"path": path, "reason": reason} for path, reason in held.failures.get(name, [])],
        }
    else:
        newest = max((place["newest"] for place in found if place["newest"]), default=None)
        read = {"sessions": None, "empty": None, "failed": None, "unknownRecords": None, "failures": []}
    return {
        "agent": name,
        "label": label,
        "files": sum(place["files"] for place in found),
        "bytes": sum(place["bytes"] for place in found),
        "newest": newest,
        **read,
        "places": [{key: value for key, value in place.items() if key != "newest"} for place in found],
    }


def _place(root: Root, held: Optional[Inventory]) -> Dict[str, Any]:
    """One folder that is looked at: whether it is there, how many transcripts it holds, and why it cannot be read."""
    place: Dict[str, Any] = {"store": root.store.name, "path": root.path, "found": os.path.isdir(root.path)}
    place.update(files=0, bytes=0, newest=None, problem=None)
    if held is not None:
        counts = held.places.get((root.store.agent, root.store.name, root.path))
        if counts is not None:
            place.update(files=counts.files, bytes=int(counts.bytes))
        if place["found"] and not os.access(root.path, os.R_OK | os.X_OK):
            place["problem"] = "The folder cannot be read: Permission denied."
    elif place["found"]:
        _look(root, place)
    return place


def _look(root: Root, place: Dict[str, Any]) -> None:
    """Count by names, sizes and times alone."""
    from relay.transcripts.registry import walk

    problems: List[OSError] = []
    for source in walk(root, problems.append):
        try:
            status = os.stat(source.path)
        except OSError:
            continue  # a part whose file is not there, or just deleted
        place["files"] += 1
        place["bytes"] += status.st_size
        place["newest"] = max(place["newest"] or 0, status.st_mtime_ns // 1_000_000)
    for problem in problems[:1]:
        place["problem"] = f"The folder cannot be read: {problem.strerror}."


def _lines(report: Mapping[str, Any], style: render.Style) -> Iterator[str]:
    rows = [("AGENT", "SESSIONS", "FILES", "SIZE", "NEWEST", "LOOKED FOR IN")]
    for entry in report["agents"]:
        there = bool(entry["files"])
        sessions = "?" if entry["sessions"] is None and there else f"{entry['sessions'] or 0:,}" if there else "-"
        rows.append(
            (
                entry["agent"],
                sessions,
                f"{entry['files']:,}" if there else "-",
                _size(entry["bytes"]) if there else "-",
                (render.ago(entry["newest"], style.now) or _date(entry["newest"], style)) if entry["newest"] else "-",
                _folders(entry["places"]),
            )
        )
    yield from render.table(rows)
    remarks = [remark for entry in report["agents"] for remark in _remarks(entry, style)]
    if remarks:
        yield ""
        yield from remarks
    if not report["enabled"]:
        yield ""
        yield render.unavailable("disabled", "local")
    elif not report["indexed"]:
        yield ""
        yield "Nothing has been indexed yet: `relay index` does it now, `relay serve` by itself."


def _remarks(entry: Mapping[str, Any], style: render.Style) -> Iterator[str]:
    """What was not read, or only in part."""
    for place in entry["places"]:
        if place["problem"]:
            yield style.paint(f"{entry['agent']}: {_short(place['path'])}: {place['problem']}", render.WARN)
    for failure in entry["failures"][:_SHOWN]:
        yield style.paint(
            f"{entry['agent']}: not read: {_short(failure['path'])}: {line(failure['reason'])}", render.WARN
        )
    if (entry["failed"] or 0) > _SHOWN:
        yield style.paint(f"{entry['agent']}: {entry['failed']} not read in all (--json lists them)", render.WARN)
    if entry["unknownRecords"]:
        unknown = render.count(entry["unknownRecords"], "record")
        yield f"{entry['agent']}: left out, since their kind is not known: {unknown}"
    if entry["empty"]:
        yield f"{entry['agent']}: left out, since nothing was said in them: {render.count(entry['empty'], 'file')}"


def _folders(places: Sequence[Mapping[str, Any]]) -> str:
    """The folders that are there, else those it would be found in."""
    paths = list(dict.fromkeys(place["path"] for place in places if place["found"]))
    paths = paths or list(dict.fromkeys(place["path"] for place in places))
    paths = [path for path in paths if not any(path.startswith(other + os.sep) for other in paths)]
    shown = ", ".join(_short(path) for path in paths[:_SHOWN])
    more = len(paths) - _SHOWN
    return (f"{shown} and {more} more" if more > 0 else shown) or "(where its list of projects says)"


def _short(path: str) -> str:
    home = os.path.expanduser("~")
    return line("~" + path[len(home) :] if path.startswith(home + os.sep) else path, 4096)


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 50_000 else f"{count / 1e3:,.1f} kB"


def _date(milliseconds: int, style: render.Style) -> str:
    return render.moment(milliseconds, style.now)
