"""Small stand-ins for the agent: bundles whose ``serve`` answers, does not, or does something else."""

from __future__ import annotations

import textwrap

from installer.bundle import Bundle, pack

_GOOD = """
    import json, os, sys
    VERSION = {version!r}
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    policy = os.path.join(config, "session-relay", "policy")
    def main(arguments):
        if arguments[:1] == ["enable"]:
            os.makedirs(os.path.dirname(policy), exist_ok=True)
            open(policy, "w").write(" ".join(arguments[1:]))
        elif arguments[:1] == ["disable"]:
            if os.path.exists(policy):
                os.unlink(policy)
        elif arguments == ["serve"]:
            for line in sys.stdin:
                request = json.loads(line)
                answer = {{"enabled": os.path.exists(policy), "phase": "idle", "version": VERSION}}
                print(json.dumps({{"jsonrpc": "2.0", "id": request["id"], "result": answer}}), flush=True)
        else:
            return 2
        return 0
"""
_MAIN = "import sys\nfrom relay.start import main\nsys.exit(main(sys.argv[1:]))\n"


def agent(version: str = "1.0.0", filling: int = 0) -> Bundle:
    """An agent that answers everything with a status that names its version; ``filling`` bytes make it larger."""
    return _bundle(version, textwrap.dedent(_GOOD).format(version=version), filling)


def broken_agent(version: str = "9.0.0") -> Bundle:
    """An agent that ends with a traceback."""
    return _bundle(version, "def main(arguments):\n    raise RuntimeError('this one is broken')\n")


def mute_agent(version: str = "9.1.0") -> Bundle:
    """An agent that ends well and answers nothing."""
    return _bundle(version, "def main(arguments):\n    return 0\n")


def _bundle(version: str, source: str, filling: int = 0) -> Bundle:
    import random

    noise = random.Random(version).randbytes(filling)  # nothing that could be compressed
    return pack(
        version,
        {
            "__main__.py": _MAIN.encode(),
            "relay/__init__.py": b"",
            "relay/start.py": source.encode(),
            "relay/filling": noise,
        },
    )
