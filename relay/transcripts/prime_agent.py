"""Prime Agent, whose sessions are taken to be in Pi's form (docs/adding-an-agent.md says why)."""

from __future__ import annotations

from relay.transcripts.pi import PiReader


class PrimeAgentReader(PiReader):
    """Only the names differ."""

    label = "Prime Agent"
    program, variable = "prime-agent", "PRIME_AGENT_DIR"
