"""Taking the agent off a box, with proof."""

from __future__ import annotations

from dataclasses import dataclass

from installer import box, faults
from relay.client.streams import Connection


@dataclass(frozen=True)
class Removed:
    """The paths that were there and are gone, and those in our folder that are somebody else's and stay."""

    paths: tuple[str, ...]
    kept: tuple[str, ...] = ()


def uninstall(connection: Connection, target: str, *, purge: bool) -> Removed:
    """Remove all the installer put on the box, with ``purge`` index and policy too, and look whether it is gone.

    Needs no Python there. Raises NotRemoved, NoShell or a ClientFault.
    """
    script = f"purge={'yes' if purge else 'no'}\n{box.text_of('uninstall.sh')}"
    lines, _ = box.run_script(connection, target, script, 120.0)
    left = [line[5:] for line in lines if line.startswith("left ")]
    if left:
        raise faults.NotRemoved(
            f"{target}: {len(left)} paths could not be removed, the first is {left[0]}. See who owns it (`ls -ld`), "
            "then run this again."
        )
    return Removed(
        tuple(line[8:] for line in lines if line.startswith("removed ")),
        tuple(line[5:] for line in lines if line.startswith("kept ")),
    )
