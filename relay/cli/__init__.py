"""The ``relay`` command line; its group is in ``relay.cli.group``, so that ``relay serve`` starts without click."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "main":
        from relay.cli.group import main

        return main
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
