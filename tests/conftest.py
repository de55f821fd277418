"""Every test has a home of its own; nothing outside it is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no failure, and examples are kept nowhere.
settings.register_profile("tests", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")

#: What could lead a reader, the agent or a client out of the test's own folder.
FOREIGN = ("CLAUDE_", "CODEX_", "GEMINI_", "COPILOT_", "PI_", "OMP_", "QWEN_", "KIMI_", "GROK_", "GOOSE_", "HERMES_")
FOREIGN += ("OPENCLAW_", "DEVIN_", "CRUSH_", "CLINE_", "OPENCODE_", "CURSOR_", "FACTORY_", "AMP_")
FOREIGN += ("XDG_", "SSH_", "PYTHONPATH", "SESSION_RELAY_", "NO_COLOR")


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new HOME with the XDG folders below it and no agent's environment variables."""
    folder = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(FOREIGN):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    return folder
