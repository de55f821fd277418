"""Reading a session whole: once for its head and again for its messages, so that memory does not follow the file."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, List, Mapping, Optional

from relay.transcripts.fold import Fold
from relay.transcripts.types import Event, Message, Session, Transcript

#: Characters of messages that are kept from the first time over; beyond them the records are read again.
_KEPT = 2 << 20


def transcripts(
    start: Callable[[], Fold],
    records: Callable[[], Iterable[Mapping[str, Any]]],
    finish: Optional[Callable[[Fold, Session], None]] = None,
) -> Iterator[Transcript]:
    """The one session that the fold made by ``start`` finds in ``records``, or nothing when nobody said anything.

    The fold must not rewind. ``finish`` may correct the head by what stands outside the records.
    """
    fold = start()
    kept: List[Message] = []
    size = 0
    for event in _events(fold, records()):
        if size <= _KEPT and isinstance(event, Message):
            kept.append(event)
            size += len(event.text) + 64
    session = fold.session()
    if session is None:
        return
    if finish is not None:
        finish(fold, session)
    messages: Iterable[Message] = kept
    if size > _KEPT:
        del kept[:]
        messages = (event for event in _events(start(), records()) if isinstance(event, Message))
    yield Transcript(session, messages, fold.unknown)


def _events(fold: Fold, records: Iterable[Mapping[str, Any]]) -> Iterator[Event]:
    for record in records:
        try:
            events = list(fold.feed(record))
        except Exception:  # a record no reader foresaw costs that record alone
            fold.unknown += 1
            continue
        yield from events
