"""Reading a session whole: once for its head and again for its messages, so that memory does not follow the file."""

from __future__ import annotations

from array import array
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, TypeVar

from relay.transcripts.fold import Fold
from relay.transcripts.jsonl import fault
from relay.transcripts.registry import DATABASE
from relay.transcripts.types import Event, Incomplete, Message, Rewind, Session, Transcript, Unreadable

F = TypeVar("F", bound=Fold)

#: Characters of messages that are kept from the first time over; beyond them the records are read again.
_KEPT = 8 << 20
#: Stands for a place that nothing was said at.
_NOTHING = (1 << 64) - 1


def transcripts(
    start: Callable[[], F],
    records: Callable[[], Iterable[Mapping[str, Any]]],
    finish: Optional[Callable[[F, Session], None]] = None,
) -> Iterator[Transcript]:
    """The one session that the fold made by ``start`` finds in ``records``, or nothing when nobody said anything.

    ``records()`` is gone through twice when the session is long: for its head and for which events stay, then, as
    the messages are taken, for their text. ``finish`` may correct the head by what stands outside the records. Where
    ``records()`` ends with Incomplete, what came before counts; raises it when that is nothing. Raises Unreadable when
    a file holds records, and none of a kind that is known.
    """
    fold = start()
    met = [0, 0]
    incomplete: List[Incomplete] = []
    last = array("Q")  # by the message's place: the number of the event that has the last word there
    kept: Dict[int, Message] = {}
    size = 0
    for number, event in enumerate(_events(fold, records(), incomplete, met)):
        if isinstance(event, Rewind):
            del last[event.seq :]
            for seq in [seq for seq in kept if seq >= event.seq]:
                del kept[seq]
            continue
        while len(last) <= event.seq:
            last.append(_NOTHING)
        last[event.seq] = number
        size += len(event.text) + 64
        if size <= _KEPT:
            kept[event.seq] = event
        else:
            kept.clear()
    session = fold.session()
    if session is None:
        if incomplete:
            raise incomplete[0]
        problem = None if fold.source.store.kind == DATABASE else fault(0, 0, *met)
        if problem is not None:
            raise Unreadable(problem)
        return
    if finish is not None:
        finish(fold, session)
    messages = iter(kept.values()) if size <= _KEPT else _again(start(), records(), last)
    yield Transcript(session, messages, fold.unknown, incomplete[0].reason if incomplete else None)


def _again(fold: Fold, records: Iterable[Mapping[str, Any]], last: "array[int]") -> Iterator[Message]:
    for number, event in enumerate(_events(fold, records, [], [0, 0])):
        if isinstance(event, Message) and event.seq < len(last) and last[event.seq] == number:
            yield event


def _events(
    fold: Fold, records: Iterable[Mapping[str, Any]], incomplete: List[Incomplete], met: List[int]
) -> Iterator[Event]:
    """What the records make. ``met`` counts them, and those of a known kind."""
    try:
        for record in records:
            met[0] += 1
            unknown = fold.unknown
            try:
                events = list(fold.feed(record))
            except Exception:  # a record no reader foresaw costs that record alone
                fold.unknown += 1
                continue
            met[1] += fold.unknown == unknown
            yield from events
    except Incomplete as error:
        incomplete.append(error)
