"""What a transcript is made of once it is read: messages, sessions, and the files they came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, NamedTuple, Optional, Protocol, Tuple, Union

if TYPE_CHECKING:
    from relay.transcripts.registry import Store

USER, ASSISTANT, TOOL, SYSTEM, UNKNOWN = "user", "assistant", "tool", "system", "unknown"


class Message(NamedTuple):
    """One thing that was said or done.

    ``seq`` is the message's place in its session, counted from 0 by the reader. Sending a ``seq`` again replaces
    what was sent under it before (an agent that rewrites a growing reply). ``role`` is one of the five constants
    above; a tool call and a tool's output are ``tool`` messages. ``text`` is never empty and carries no base64.
    ``timestamp`` is epoch milliseconds.
    """

    seq: int
    role: str
    text: str
    timestamp: Optional[int] = None


class Rewind(NamedTuple):
    """Every message sent so far with a place at or after ``seq`` is undone (a rollback, an abandoned branch)."""

    seq: int


Event = Union[Message, Rewind]


@dataclass
class Session:
    """The head of a session, as the reader knows it after the records read so far.

    Times are epoch milliseconds. ``message_count`` counts user turns and assistant messages (chunks merged), no tool
    results. ``resume`` is the shell command that reopens the session, POSIX-quoted, with the environment it needs and
    without ``cd`` (whoever shows it adds that when ``cwd`` still exists).
    """

    session_id: str
    title: str
    cwd: Optional[str] = None
    branch: Optional[str] = None
    created_at: Optional[int] = None
    updated_at: Optional[int] = None
    message_count: int = 0
    resume: Optional[str] = None
    #: A subagent names the session that started it: its rows answer as that session's.
    parent_id: Optional[str] = None
    #: Copies of one conversation (forks) share this; None when the session stands alone.
    lineage: Optional[str] = None


@dataclass(frozen=True)
class Source:
    """One place a store keeps sessions in: a file, or the file that stands for a folder or a database.

    ``path`` is absolute; ``root`` is the watched folder it lies below; ``home`` is the agent's own folder, and
    ``default_home`` says that the agent finds it without an environment variable.
    """

    store: "Store"
    home: str
    root: str
    path: str
    default_home: bool = True


class AppendReader(Protocol):
    """A fold over the lines of an append-only file: the same lines give the same answer, however they are portioned.

    ``state()`` is JSON-able and small; a reader made with it goes on where the other stopped.
    """

    #: Records whose type the reader does not know (format drift); shown by ``relay agents``.
    unknown: int

    def __init__(self, source: Source, state: Optional[Mapping[str, Any]] = None) -> None: ...

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]: ...

    def session(self) -> Optional[Session]: ...

    def state(self) -> Mapping[str, Any]: ...


class Transcript(NamedTuple):
    """One session read whole."""

    session: Session
    messages: Iterable[Message]
    #: Records of a type the reader does not know.
    unknown: int = 0
    #: What of it could not be read (a sentence, without a path), or None.
    failure: Optional[str] = None


class DatabaseReader(Protocol):
    """A foreign database, opened read-only; a context manager made with a Source.

    ``sessions()`` gives each session's id with a change key: while the key stays the same, so does the session. The
    keys of the last time (``known``, by session id) spare a big database the second look at what has long been quiet.
    ``read()`` gives None for a session that holds nothing, and raises Unreadable for one that cannot be read; a
    transcript's messages are taken before the database is left.
    """

    def __enter__(self) -> "DatabaseReader": ...

    def __exit__(self, *exc: object) -> None: ...

    def sessions(self, known: Mapping[str, str] = ...) -> Iterator[Tuple[str, str]]: ...

    def read(self, session_id: str) -> Optional[Transcript]: ...


class Unreadable(Exception):
    """A transcript that cannot be read; ``reason`` is a short sentence for ``relay agents``, without a path."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Incomplete(Unreadable):
    """Raised behind the records that could be read of a file of which others could not."""
