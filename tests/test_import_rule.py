"""Imports run one way (docs/architecture.md)."""

from __future__ import annotations

import runpy
from pathlib import Path

RULE = runpy.run_path(str(Path(__file__).resolve().parents[1] / "scripts" / "lib" / "import_rule.py"))


def test_no_room_imports_one_above_it() -> None:
    assert RULE["broken"]() == []


def test_the_rule_names_the_room_of_a_module() -> None:
    assert RULE["room_of"]("relay.search.engine") == "relay.search"
    assert RULE["room_of"]("relay.__version__") == "relay"
    assert RULE["room_of"]("os.path") == ""
