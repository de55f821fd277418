"""A command line whose output may be closed, full, or of an encoding that lacks some characters."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, Iterator

import click

from relay.rpc.stdio import open_closed


class Program(click.Group):
    """A group that ends with one sentence, not with a traceback, when its output cannot be written."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """As click's; the exit code is ``os.EX_IOERR`` when the output cannot be written."""
        with _output():
            return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """As click's; an interrupt has the exit code that shells give it, since 1 is an answer."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("\nInterrupted.", err=True)
            ctx.exit(130)


@contextlib.contextmanager
def _output() -> Iterator[None]:
    open_closed()
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:  # closed at start
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is not None:  # of some file, which is no matter of the output
            raise
        nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        try:
            print(f"Error: The output cannot be written: {error.strerror}.", file=sys.stderr, flush=True)
        except OSError:
            sys.stderr = nowhere
        sys.stdout = nowhere  # what still waits to be written must not be tried again at the end
        raise SystemExit(os.EX_IOERR) from None
