"""Clearing: the index and everything beside it is removed, transcripts are never touched."""

from __future__ import annotations

import os

from relay.index import opening
from relay.index.faults import IndexUnwritable
from relay.index.ownership import Ownership


def clear(state_folder: str, timeout: float = 10.0) -> None:
    """Remove the index of this state folder, waiting up to ``timeout`` seconds for its writer to let go.

    Raises NotOwner when the writer does not, IndexUnwritable when a file cannot be removed. Whoever calls this has
    changed the policy first, which is what makes running agents let go.
    """
    if not os.path.isdir(state_folder):
        return
    ownership = Ownership(state_folder)
    ownership.take_within(timeout)
    try:
        opening.remove(opening.database_path(state_folder))
    except OSError as error:
        raise IndexUnwritable(f"The index cannot be removed: {error.strerror}.") from error
    finally:
        ownership.release()
