"""The registry's rows: add an agent by adding its module's ``AGENT`` here (docs/adding-an-agent.md)."""

from __future__ import annotations

from typing import Sequence

from relay.transcripts.registry import Agent

AGENTS: Sequence[Agent] = ()
