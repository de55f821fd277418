"""``python -m relay``: straight to the agent for ``relay serve``, to the command line for everything else."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """The ``relay`` command."""
    if os.environ.get("HOME") == "":
        del os.environ["HOME"]  # as good as unset: the account's own folder, and not the root of the file system
    if sys.argv[1:] == ["serve"]:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: os._exit(0))  # until the agent has something to finish
        from relay.cli.serve import run

        code = run()
        # Workers may still be inside SQLite, and a stalled peer holds the output's thread: neither is waited for.
        os._exit(code)
    from relay.cli.group import main as command

    command(prog_name="relay")


if __name__ == "__main__":
    main()
