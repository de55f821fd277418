"""Append-only files whose entries form a tree: the active conversation is the last entry and its ancestors."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence

from relay.transcripts.fold import Fold
from relay.transcripts.jsonl import records
from relay.transcripts.types import Event

#: Entries of the active path that are remembered, newest last; to go back further the file is looked at again.
_KEPT = 512
#: What going back changes; everything else about the session (names, times) is as the file has it.
_FOLLOWED = frozenset(("seq", "count", "began", "prompt", "prompt_seq", "path"))


class TreeFold(Fold):
    """An append reader that follows the active branch; ``entry()`` does what ``feed()`` does elsewhere.

    An entry whose parent is not the one before it goes back: what was said since is undone, or, when it continues a
    branch that was left before, the conversation is given anew along that branch. A file in which a parent cannot be
    found is no tree and is taken in file order from there on.
    """

    #: The members that hold an entry's own id and its parent's.
    id_key, parent_key = "id", "parentId"

    def begin(self) -> None:
        self.path: List[List[Any]] = []  # [id, seq, count] behind each entry
        self.loose = False

    def entry(self, record: Mapping[str, Any]) -> Sequence[Event]:
        """The events of one record on the active path."""
        raise NotImplementedError

    def is_entry(self, record: Mapping[str, Any]) -> bool:
        """Whether the record has a place in the tree."""
        parent = record.get(self.parent_key, 0)  # an entry without the member is none; one with null is a root
        own = record.get(self.id_key)
        return isinstance(own, str) and own != "" and (parent is None or isinstance(parent, str))

    def went_back(self) -> None:
        """Called when what was said last is not what the next entry follows."""

    def feed(self, record: Mapping[str, Any]) -> Iterable[Event]:
        if self.loose or not self.is_entry(record):
            return self.entry(record)
        own, parent = record[self.id_key], record[self.parent_key]
        if not self.path or parent == self.path[-1][0] or any(known[0] == own for known in self.path[-16:]):
            events = self.entry(record)
            self._reached(own)
            return events
        return self._elsewhere(record, own, parent)

    def _reached(self, own: str) -> None:
        if not self.path or self.path[-1][0] != own:
            self.path.append([own, self.seq, self.count])
            if len(self.path) > 2 * _KEPT:
                del self.path[:_KEPT]
        else:
            self.path[-1][1:] = [self.seq, self.count]

    def _elsewhere(self, record: Mapping[str, Any], own: str, parent: Any) -> Iterator[Event]:
        yield from self._go_back(own, parent)
        yield from self.entry(record)
        self._reached(own)

    def _go_back(self, own: str, parent: Any) -> Iterator[Event]:
        place = next((place for place in reversed(range(len(self.path))) if self.path[place][0] == parent), None)
        if place is not None:
            seq, count = self.path[place][1:]
            del self.path[place + 1 :]
        elif parent is None:
            seq, count, self.path = 0, 0, []
        else:
            yield from self._along(own, parent)
            return
        self.went_back()
        if seq < self.seq:
            yield self.rewind(seq, count)

    def _along(self, own: str, parent: Any) -> Iterator[Event]:
        """The conversation from the start along the branch of ``parent``, read from the file itself."""
        branch = self._branch(own, parent)
        if branch is None:
            self.loose = True
            return
        before = self.state()
        self.went_back()
        self.path = []
        yield self.rewind(0, 0)
        try:
            for record in records(self.source.path):
                entry = record.get(self.id_key)
                if entry == own:
                    break
                if isinstance(entry, str) and entry in branch:
                    yield from self.entry(record)
                    self._reached(entry)
        except OSError:
            pass  # the file went away meanwhile; so will the session
        self.__dict__.update({name: value for name, value in before.items() if name not in _FOLLOWED})
        self.went_back()

    def _branch(self, own: str, parent: Any) -> Optional[Mapping[str, Any]]:
        """The entry ``parent`` and its ancestors, or None when the file does not hold them all."""
        parents: Dict[str, Any] = {}
        try:
            for record in records(self.source.path):
                entry = record.get(self.id_key)
                if entry == own:
                    break
                if isinstance(entry, str) and entry not in parents:
                    ancestor = record.get(self.parent_key)
                    parents[entry] = ancestor if isinstance(ancestor, str) else None
        except OSError:
            return None
        branch: Dict[str, Any] = {}
        while parent is not None:
            if parent not in parents or parent in branch:
                return None
            branch[parent] = True
            parent = parents[parent]
        return branch
