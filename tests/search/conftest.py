"""A library of sessions for each test."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

import pytest

from tests.search.corpus import Library


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    """An empty index with a writer and an engine."""
    library = Library(tmp_path)
    yield library
    library.close()
