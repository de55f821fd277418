"""What append readers share: the head of a session as it grows, and a state that is simply their attributes."""

from __future__ import annotations

import hashlib
from typing import Any, Dict, Iterable, Mapping, Optional, Sequence

from relay.transcripts import content, times, titles
from relay.transcripts.types import Event, Message, Rewind, Session, Source


class Fold:
    """Base of the append readers: every attribute but ``source`` is state, so it must be JSON-able and small.

    A reader sets its own attributes in ``begin()`` and implements ``feed()``; ``session()`` may be extended.
    """

    #: What the session is called when nothing else names it.
    label = "Session"

    def __init__(self, source: Source, state: Optional[Mapping[str, Any]] = None) -> None:
        self.source = source
        self.unknown = 0
        self.seq = 0
        self.count = 0
        self.began = False
        self.id = ""
        self.name = ""
        self.prompt = ""
        self.prompt_seq = 0
        self.cwd: Optional[str] = None
        self.branch: Optional[str] = None
        self.created: Optional[int] = None
        self.updated: Optional[int] = None
        self.parent: Optional[str] = None
        self.lineage: Optional[str] = None
        self.begin()
        if state:
            self.__dict__.update(state)

    def begin(self) -> None:
        """Sets the attributes of this reader to what they are before the first record."""

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        """The messages that the next record makes; see ``types.AppendReader``."""
        raise NotImplementedError

    def state(self) -> Dict[str, Any]:
        """JSON-able; a reader made with it goes on from here."""
        return {name: value for name, value in self.__dict__.items() if name != "source"}

    def saw(self, timestamp: Any) -> Optional[int]:
        """Takes a record's time into the session's; gives it in epoch milliseconds, or None."""
        at = times.millis(timestamp)
        if at is not None:
            if self.updated is None or at > self.updated:
                self.updated = at
            if self.created is None or at < self.created:
                self.created = at
        return at

    def message(self, role: str, text: str, at: Optional[int]) -> Message:
        """The next message of the session."""
        self.seq += 1
        return Message(self.seq - 1, role, text, at)

    def said(self, text: str) -> None:
        """Takes the words that a person typed as the title while there is none."""
        if not self.prompt:
            self.prompt = titles.prompt(text)
            self.prompt_seq = self.seq

    def mark(self, identity: Any, timestamp: Any, body: Any) -> None:
        """Takes the first record that a copy of this session would begin with, too, as the sign of its lineage.

        A copy keeps the record's identity, time and text. All three count: not every writer's identities are unique.
        """
        if self.lineage is None and isinstance(identity, str):
            text = f"{identity}\n{timestamp}\n{content.text_of(body, 1000)[:1000]}"
            self.lineage = hashlib.sha1(text.encode("utf-8", "replace")).hexdigest()

    def rewind(self, seq: int, count: int) -> Rewind:
        """Goes back to where the next message was the ``seq``-th and ``count`` of them counted."""
        if self.prompt and seq <= self.prompt_seq:
            self.prompt = ""
        # A session that had something to show stays one, though all of it be undone.
        self.began = self.began or self.count > 0
        self.seq, self.count = seq, count
        return Rewind(seq)

    def session(self) -> Optional[Session]:
        """The head of the session, or None while nothing was said in it."""
        if not self.began and not self.count:
            return None
        session_id = content.clean(self.id)
        return Session(
            session_id,
            content.clean(titles.title(self.name) or self.prompt or titles.fallback(self.label, session_id)),
            cwd=text_or_none(self.cwd),
            branch=text_or_none(self.branch),
            created_at=self.created,
            updated_at=self.updated if self.updated is not None else times.modified(self.source.path),
            message_count=self.count,
            resume=self.resume(),
            parent_id=self.parent,
            lineage=self.lineage,
        )

    def resume(self) -> Optional[str]:
        """The command that reopens this session, or None when there is none."""
        return None


def text_or_none(value: Any) -> Optional[str]:
    """``value`` when it is text that can be stored, else None."""
    return content.clean(value) if isinstance(value, str) and value else None


def mapping(value: Any) -> Mapping[str, Any]:
    """``value`` when it is an object, else an empty one: a drifted format never breaks a reader."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> Sequence[Any]:
    """``value`` when it is an array, else an empty one."""
    return value if isinstance(value, list) else ()


def kind_of(record: Mapping[str, Any], name: str = "type") -> Optional[str]:
    """The record's type when it is text, else None."""
    kind = record.get(name)
    return kind if isinstance(kind, str) else None
