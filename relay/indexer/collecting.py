"""Gathering what a reader says into slices of rows, with replaced and rewound messages already folded."""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, List, Optional

from relay.index.rows import Row, rows
from relay.transcripts.types import Event, Message, Rewind

#: Bytes of an append-only file, and characters of any text, that are read before rows are written.
SLICE = 4 << 20


class Slice:
    """Messages of one session between two points of a transcript. Plain data: it can be made in another process."""

    __slots__ = ("_rows", "characters", "messages", "rewind")

    def __init__(self) -> None:
        self.messages: Dict[int, Message] = {}
        #: Everything stored at or after this place goes before the messages are added.
        self.rewind: Optional[int] = None
        self.characters = 0
        self._rows: List[Row] = []

    @classmethod
    def of_rows(cls, rows: List[Row], rewind: Optional[int], characters: int) -> Slice:
        """A slice whose rows are made already."""
        piece = cls()
        piece._rows, piece.rewind, piece.characters = rows, rewind, characters
        return piece

    def add(self, event: Event) -> None:
        """Take one event of the reader."""
        seq = event.seq
        if isinstance(event, Rewind):
            for later in [known for known in self.messages if known >= seq]:
                del self.messages[later]
            if self.rewind is None or seq < self.rewind:
                self.rewind = seq
            return
        self.messages[seq] = event
        self.characters += len(event.text)

    def rows(self) -> List[Row]:
        """The rows in the order of their messages, which are given up for them: a slice may hold one huge text.

        A blank message has one row without text: it may take the place of one that is stored.
        """
        messages = self.messages
        if not messages:
            made, self._rows = self._rows, []
            return made
        made = []
        for seq in sorted(messages):
            message = messages.pop(seq)
            made += list(rows(message)) or [Row(seq, message.role, message.timestamp, "")]
        return made

    def __bool__(self) -> bool:
        return bool(self.messages or self._rows) or self.rewind is not None


def slices(events: Iterable[Event]) -> Iterator[Slice]:
    """All events of one session in slices of about ``SLICE`` characters; at least one, which may be empty."""
    piece = Slice()
    for event in events:
        if piece.characters >= SLICE:
            yield piece
            piece = Slice()
        piece.add(event)
    yield piece
