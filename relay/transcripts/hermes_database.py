"""Hermes' database ``state.db``: sessions that compression makes go on in another one, branches and subagents."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from relay.transcripts import times
from relay.transcripts.fold import Fold, mapping
from relay.transcripts.foreign_database import SqliteReader, parsed, text
from relay.transcripts.hermes import Hermes
from relay.transcripts.types import Session, Transcript
from relay.transcripts.whole import transcripts

_COLUMNS = (
    "id",
    "parent_session_id",
    "end_reason",
    "started_at",
    "ended_at",
    "title",
    "last_activity_at",
    "cwd",
    "model_config",
)
_MARKS = {"branch": "_branched_from", "subagent": "_delegate_from"}
_MESSAGE = ("role", "content", "tool_calls", "timestamp", "display_kind")


class _Head(NamedTuple):
    """A row of ``sessions``."""

    id: str
    parent: str
    end_reason: str
    started: float
    ended: float
    title: str
    active: object
    cwd: str
    config: Mapping[str, Any]


class HermesDatabase(SqliteReader):
    """The sessions of ``state.db``.

    Compression ends a session and starts a child that goes on with it. The last one of such a chain that holds anything
    is the conversation: it is what resumes, and the earlier ones answer as it (it is their ``parent_id``). A copied
    branch shares the lineage of what it was copied from; any other child is a subagent, except after a reset.
    """

    program = "Hermes"
    needed = {"sessions": ("id",), "messages": ("session_id", "role", "content")}

    def __enter__(self) -> "HermesDatabase":
        super().__enter__()
        try:
            self._load()
        except BaseException:
            self.database.close()
            raise
        return self

    def _load(self) -> None:
        self._heads: Dict[str, _Head] = {}
        self._tallies: Dict[str, Tuple[Any, ...]] = {}
        if not self.filled:
            return
        for row in self.database.rows(f"SELECT {self.choose('sessions', *_COLUMNS)} FROM sessions"):
            head = _Head(
                text(row[0]),
                text(row[1]),
                text(row[2]).lower(),
                _number(row[3]),
                _number(row[4]),
                text(row[5]),
                row[6],
                text(row[7]),
                mapping(parsed(row[8])),
            )
            if head.id:
                self._heads[head.id] = head
        counted = [name for name in ("id", "timestamp") if name in self.database.columns("messages")]
        self._tallies = self.tallies("messages", *counted)
        if "active" in self.database.columns("messages"):
            shown = self.database.rows("SELECT session_id, total(active) FROM messages GROUP BY session_id")
            for session_id, count in shown:
                self._tallies[text(session_id)] += (count,)
        #: By session: the one that goes on with it.
        self._next = {
            head.parent: head.id for head in sorted(self._heads.values(), key=_begun) if self._continues(head)
        }
        self._before = {later: earlier for earlier, later in self._next.items()}

    def _continues(self, head: _Head) -> bool:
        """Whether a child is what its parent became by compression, not a subagent the parent had started before."""
        parent = self._heads.get(head.parent)
        if parent is None or parent.end_reason != "compression" or parent.id == head.id:
            return False
        if any(head.config.get(mark) for mark in ("_branched_from", "_delegate_from", "_reset_from")):
            return False
        return not head.started or not parent.ended or head.started >= parent.ended

    def sessions(self, known: Mapping[str, str] = {}) -> Iterator[Tuple[str, str]]:
        """Messages are only appended (or made inactive): counts, ends and how sessions hang together tell a change."""
        for head in self._heads.values():
            chain = self._chain(head.id)
            parts = [(self._heads[one].title, self._tallies.get(one)) for one in chain] if chain[-1] == head.id else []
            yield head.id, repr((*head[1:], self._tallies.get(head.id), self._above(head), parts))

    def read(self, session_id: str) -> Optional[Transcript]:
        head = self._heads.get(session_id)
        if head is None:
            return None
        chain = self._chain(session_id)
        earlier = [self._heads[one] for one in chain[:-1]] if chain[-1] == session_id else []
        named = [one.title for one in (head, *reversed(earlier)) if one.title]

        def start() -> Hermes:
            fold = Hermes(self.source)
            fold.id, fold.name = session_id, named[0] if named else ""
            fold.cwd = head.cwd or text(head.config.get("cwd")) or None
            fold.saw(head.started)
            fold.saw(head.active)
            return fold

        def finish(fold: Fold, session: Session) -> None:
            session.parent_id, session.lineage = self._above(head)
            if earlier:
                session.created_at = times.millis(earlier[0].started) or session.created_at
                before = [transcript for transcript in map(self._alone, earlier) if transcript is not None]
                session.message_count += sum(transcript.session.message_count for transcript in before)
                if not named and before:
                    session.title = before[0].session.title

        return next(transcripts(start, lambda: self._records(session_id), finish), None)

    def _alone(self, head: _Head) -> Optional[Transcript]:
        """An earlier session of a chain by itself, for its prompt and its number of messages."""

        def start() -> Hermes:
            fold = Hermes(self.source)
            fold.id = head.id
            return fold

        return next(transcripts(start, lambda: self._records(head.id)), None)

    def _records(self, session_id: str) -> Iterator[Mapping[str, Any]]:
        columns = self.database.columns("messages")
        # The row's own id tells the order of insertion; a clock may go backwards.
        order = next((name for name in ("id", "timestamp") if name in columns), "rowid")
        for *values, active, compacted in self.each(
            "messages", "session_id", session_id, order, *_MESSAGE, "active", "compacted"
        ):
            if active == 0 and not compacted:  # undone
                continue
            record = dict(zip(_MESSAGE, values))
            record["role"] = text(record["role"])
            if isinstance(record["content"], bytes):
                record["content"] = text(record["content"])
            yield record

    def _chain(self, session_id: str) -> List[str]:
        """The chain of compressions the session belongs to, first to last, cut behind the last that holds messages."""
        chain = [session_id]
        while chain[0] in self._before and self._before[chain[0]] not in chain:
            chain.insert(0, self._before[chain[0]])
        while chain[-1] in self._next and self._next[chain[-1]] not in chain:
            chain.append(self._next[chain[-1]])
        while len(chain) > 1 and chain[-1] != session_id and chain[-1] not in self._tallies:
            chain.pop()
        return chain

    def _above(self, head: _Head) -> Tuple[Optional[str], Optional[str]]:
        """``parent_id`` and ``lineage``."""
        chain = self._chain(head.id)
        if chain[-1] != head.id:
            return chain[-1], None
        first = self._heads[chain[0]]
        kind = self._kind(first)
        origin = self._origin(first, kind) if kind else None
        return (None, origin) if kind == "branch" else (origin, None)

    def _origin(self, head: _Head, kind: str) -> Optional[str]:
        """The conversation that a line of branches, or of subagents, begins with."""
        seen = set()
        while self._kind(head) == kind and head.id not in seen:
            seen.add(head.id)
            above = text(head.config.get(_MARKS[kind])) or head.parent
            if above not in self._heads:
                return above or None
            chain = self._chain(above)
            head = self._heads[chain[0]]
        return self._chain(head.id)[-1]

    def _kind(self, head: _Head) -> str:
        config, parent = head.config, self._heads.get(head.parent)
        if config.get("_branched_from"):
            return "branch"
        if config.get("_reset_from") or not head.parent:
            return ""
        if config.get("_delegate_from") or parent is None:
            return "subagent"
        if parent.end_reason == "branched":
            return "branch"
        # A conversation that was ended for a new one is no parent of it.
        return "" if "reset" in parent.end_reason or "new" in parent.end_reason else "subagent"


def _begun(head: _Head) -> float:
    return head.started


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
