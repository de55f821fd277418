"""One line for each host that is being asked, kept up to date on a terminal and taken away at the end."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from relay.cli.render import host_label, is_live
from relay.cli.text import line

if TYPE_CHECKING:
    from relay.client.fanout import Outcome


class HostProgress:
    """Lines on stderr, nothing when that is no terminal; a context manager, called with each host's outcome."""

    def __init__(self, host_ids: Sequence[str]) -> None:
        self._said = dict.fromkeys(host_ids, "asking …")
        self._drawn = 0
        self._live = is_live(sys.stderr)

    def __enter__(self) -> HostProgress:
        self._draw()
        return self

    def __exit__(self, *exc: object) -> None:
        self._erase()

    def __call__(self, outcome: Outcome) -> None:
        self._said[outcome.host_id] = f"{_summary(outcome)} ({outcome.seconds:.1f} s)"
        self._draw()

    def _draw(self) -> None:
        if not self._live:
            return
        size = shutil.get_terminal_size()
        room = max(1, size.lines - 3)
        # When not all fit, those still waited for are the ones to see.
        waiting_first = sorted(self._said.items(), key=lambda item: item[1] != "asking …")
        shown = waiting_first[:room] if len(self._said) > room else list(self._said.items())
        lines = [line(f"{host_label(host_id)}: {said}", size.columns - 1) for host_id, said in shown]
        if len(shown) < len(self._said):
            lines.append(f"and {len(self._said) - len(shown)} more")
        self._erase()
        sys.stderr.write("".join(f"{text}\n" for text in lines))
        sys.stderr.flush()
        self._drawn = len(lines)

    def _erase(self) -> None:
        if self._drawn:
            sys.stderr.write(f"\x1b[{self._drawn}A\x1b[J")
            sys.stderr.flush()
            self._drawn = 0


def _summary(outcome: Outcome) -> str:
    if outcome.answer is None:
        return str(outcome.fault)
    if "hits" in outcome.answer:
        return f"{len(outcome.answer['hits'])} found"
    return outcome.answer.get("reason") or outcome.answer.get("kind") or "answered"
