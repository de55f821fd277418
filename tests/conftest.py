"""Every test has a home of its own; nothing outside it is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

#: What could lead a reader, the agent or a client out of the test's own folder.
FOREIGN = ("CLAUDE_", "CODEX_", "GEMINI_", "COPILOT_", "PI_", "OMP_", "QWEN_", "KIMI_", "GROK_", "GOOSE_", "HERMES_")
FOREIGN += ("OPENCLAW_", "DEVIN_", "CRUSH_", "CLINE_", "OPENCODE_", "CURSOR_", "FACTORY_", "AMP_", "XDG_", "SSH_", "PYTHONPATH")


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new HOME with the XDG folders below it and no agent's environment variables."""
    folder = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(FOREIGN):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    return folder
