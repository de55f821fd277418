"""One look at a box before anything is changed: its Python, its home, what is installed there."""

from __future__ import annotations

from dataclasses import dataclass

from installer import box, faults
from relay.client.streams import Connection

_WHY = {
    "old": "is too old (3.9 is needed)",
    "not-cpython": "is not CPython",
    "old-sqlite": "has an SQLite before 3.31",
    "no-sqlite": "was built without sqlite3",
    "no-fts5": "has an SQLite without FTS5",
    "broken": "does not start as it should",
}
_REMEDY = (
    "Install Python 3.9 or newer there (`sudo apt install python3`, `sudo dnf install python3.11`; without root,"
    " pyenv, conda or uv put one into the home, where it is found), then run this again."
)


@dataclass(frozen=True)
class Facts:
    """What the probe found.

    ``python`` is a path, None when none will do; ``refused`` are sentences about those that will not. ``unwritable`` is
    what the system said when the home could not be written to. ``free`` counts bytes, and so does ``noise``, which the
    start-up files printed.
    """

    home: str
    system: str
    shell: str
    python: str | None
    python_version: str
    refused: tuple[str, ...]
    nearest: str
    home_exists: bool
    home_usable: bool
    unwritable: str | None
    noexec: bool
    free: int | None
    installed: bool
    noise: int


def look(connection: Connection, target: str, timeout: float = 60.0) -> Facts:
    """Probe the box. Raises NoShell or a ClientFault."""
    lines, noise = box.run_script(connection, target, box.text_of("probe.sh"), timeout)
    said: dict[str, list[str]] = {}
    for line in lines:
        name, _, value = line.partition(" ")
        said.setdefault(name, []).append(value)

    def one(name: str) -> str:
        return said.get(name, [""])[0]

    python = one("python").split(" ", 2)
    free = one("free-kilobytes")
    return Facts(
        home=one("home"),
        system=one("system"),
        shell=one("shell"),
        python=python[2] if len(python) == 3 else None,
        python_version=python[1] if len(python) == 3 else "",
        refused=tuple(map(_refusal, said.get("refused", []))),
        nearest=one("nearest"),
        home_exists="home-missing" not in said,
        home_usable="home-unusable" not in said,
        unwritable=one("unwritable") if "unwritable" in said else None,
        noexec="noexec" in said,
        free=int(free) * 1024 if free.isdigit() else None,
        installed="launcher" in said,
        noise=noise,
    )


def _refusal(value: str) -> str:
    for verdict, why in _WHY.items():
        path, found, version = value.partition(f" {verdict} ")
        if found:
            return f"{path} ({version.strip() or 'version unknown'}) {why}"
    return value


def fault(facts: Facts, target: str) -> faults.InstallFault | None:
    """What forbids an install, the first of it; None when nothing does."""
    if not facts.home_usable:
        return faults.HomeMissing(
            f"{target}: HOME is {facts.home!r} there, which is no folder of an account's own. Correct the home folder"
            " of the account (`getent passwd USER` shows it, `usermod -d` sets it) or the start-up file that changes"
            " HOME, then run this again."
        )
    if not facts.home_exists:
        return faults.HomeMissing(
            f"{target}: the home folder {facts.home or '(none)'} does not exist. Have it made (mkhomedir), or give"
            " the account another one."
        )
    if facts.unwritable is not None:
        return not_writable(target, facts.nearest, facts.unwritable)
    if facts.python is None:
        tried = "; ".join(facts.refused) or "no python3 was found in PATH or in the usual places"
        return faults.NoPython(f"{target} has no Python that can run the agent: {tried}. {_REMEDY}")
    return None


def not_writable(target: str, path: str, said: str) -> faults.InstallFault:
    """The fault for a folder that takes no file, by what the system said (in English)."""
    if "Read-only" in said:
        return faults.ReadOnlyHome(
            f"{target}: {path} is mounted read-only. Remount it (`mount -o remount,rw`), or use an account whose home"
            " can be written to."
        )
    if "quota" in said.lower():
        return faults.QuotaExceeded(
            f"{target}: the account's quota on {path} is used up. Free some space there (`quota -s` shows it), then "
            "run this again."
        )
    if "No space" in said:
        return faults.NoSpace(
            f"{target}: the file system of {path} is full. Free some space or files (`df -h {path}` and `df -i {path}`"
            " show which), then run this again."
        )
    if "Permission denied" in said or "not permitted" in said:
        return faults.HomeNotWritable(
            f"{target}: the account may not write into {path}. Correct its owner and mode "
            f"(`chown`, `chmod u+rwx {path}`)."
        )
    return faults.BoxFault(
        f"{target}: {path} cannot be written to: {said.splitlines()[-1] if said else 'no reason given'}."
    )
