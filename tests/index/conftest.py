"""An open index and its writer."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

import pytest

from relay.index import opening
from relay.index.writer import Writer


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    index = opening.open_for_writing(opening.database_path(str(tmp_path / "state")))
    yield Writer(index)
    index.close()
