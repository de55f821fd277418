"""Codex threads that are not lines to append to: compressed rollouts, and the single documents of old versions."""

from __future__ import annotations

import importlib
import io
import json
import os
from typing import Any, BinaryIO, Callable, Dict, Iterable, Iterator, Optional

from relay.transcripts import whole
from relay.transcripts.codex import CodexReader
from relay.transcripts.fold import mapping
from relay.transcripts.jsonl import Lines
from relay.transcripts.regular import opener
from relay.transcripts.types import Source, Transcript, Unreadable

#: A document is parsed in one piece; a larger one is refused.
_DOCUMENT_CAP = 64 << 20


def read_compressed(source: Source) -> Iterable[Transcript]:
    """A ``.jsonl.zst`` rollout; nothing when the plain file stands beside it (Codex ignores it then, too).

    Raises Unreadable when this Python has no decompressor for it, or the file is damaged.
    """
    if os.path.exists(source.path[: -len(".zst")]):
        return ()
    open_compressed = _decompressor()
    if open_compressed is None:
        raise Unreadable("Compressed with zstd: this Python cannot read it (3.14 can, or install zstandard).")

    def lines() -> Iterator[Dict[str, Any]]:
        try:
            with open_compressed(source.path) as file:
                yield from Lines(io.BufferedReader(_Raw(file), 256 << 10))
        except OSError:
            raise
        except Exception as error:  # each library has its own name for a damaged frame
            raise Unreadable("The compressed file is damaged.") from error

    return whole.transcripts(lambda: CodexReader(source), lines)


def read_document(source: Source) -> Iterable[Transcript]:
    """A ``rollout-*.json`` of old versions: ``{session: {…}, items: [{role, content, …}]}``. Raises Unreadable."""
    with open(source.path, "rb", opener=opener) as file:
        raw = file.read(_DOCUMENT_CAP + 1)
    if len(raw) > _DOCUMENT_CAP:
        raise Unreadable(f"The document is larger than {_DOCUMENT_CAP >> 20} MiB.")
    try:
        document = json.loads(raw.decode("utf-8-sig", "replace"), strict=False)
    except (ValueError, RecursionError) as error:
        raise Unreadable("The file is not JSON.") from error
    if not isinstance(document, dict) or not isinstance(document.get("items"), list):
        raise Unreadable("The document is no Codex session.")
    session = mapping(document.get("session"))
    records = [{"session": session}, *(item for item in document["items"] if isinstance(item, dict))]
    return whole.transcripts(lambda: CodexReader(source), lambda: iter(records))


class _Raw(io.RawIOBase):
    """Any object with ``read(size)`` as a raw stream, so that a BufferedReader can find the lines in it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._file.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


def _decompressor() -> Optional[Callable[[str], Any]]:
    """``open`` of whichever module can decompress zstd here, or None."""
    for name in ("compression.zstd", "zstandard"):
        try:
            found: Callable[[str], Any] = importlib.import_module(name).open
            return found
        except (ImportError, AttributeError):
            continue
    return None
