"""Takes the standard streams over, so that nothing but frames can reach the peer."""

from __future__ import annotations

import os
import sys
from typing import Tuple


def take_over() -> Tuple[int, int]:
    """Descriptors of the peer's input and output, private to this process and closed in children.

    From then on descriptor 1, ``sys.stdout`` and so every stray ``print`` lead to stderr, and descriptor 0 is empty.
    """
    open_closed()
    peer_input, peer_output = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return peer_input, peer_output


def open_closed() -> None:
    """Open standard streams that were closed at start on the null device, or some file would get their numbers."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is fd
