"""OMP (oh-my-pi): Pi's form, with a title that is rewritten in place on the first line, and subagents beside it."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional, Sequence

from relay.transcripts import resume, titles
from relay.transcripts.fold import kind_of
from relay.transcripts.pi import PiReader
from relay.transcripts.types import Event

#: Where a title may stand, in order of trust; one that a person gave beats all that were made.
_PLACES = ("slot", "change", "header")


class OmpReader(PiReader):
    """When the title on the first line is rewritten the file is no longer what was read, so it is read anew."""

    label = "OMP"
    program, option, variable = "omp", "--resume", "OMP_CODING_AGENT_DIR"
    silent = PiReader.silent | frozenset(
        "model_usage service_tier_change reset_boundary archive ttsr_injection credential_pin session_init"
        " mode_change".split()
    )

    def begin(self) -> None:
        super().begin()
        self.titles: Dict[str, List[str]] = {}  # by place: [title, source]
        below = os.path.relpath(self.source.path, self.source.root).split(os.sep)
        if len(below) > 2:
            self.parent = below[1].rpartition("_")[2]

    def entry(self, record: Mapping[str, Any]) -> Sequence[Event]:
        kind = kind_of(record)
        if kind in ("title", "title_change", "session_info"):
            place = "slot" if kind == "title" else "change"
            self._titled(place, record.get("name") if kind == "session_info" else record.get("title"), record)
            self.saw(record.get("timestamp"))
            return ()
        return super().entry(record)

    def header(self, record: Mapping[str, Any]) -> None:
        super().header(record)
        self._titled("header", record.get("title"), {"source": record.get("titleSource")})

    def _titled(self, place: str, title: Any, record: Mapping[str, Any]) -> None:
        title = titles.title(title)
        if title:
            self.titles[place] = [title, str(record.get("source"))]
        else:
            self.titles.pop(place, None)
        known = [self.titles[place] for place in _PLACES if place in self.titles]
        chosen = next((entry for entry in known if entry[1] == "user"), known[0] if known else [""])
        self.name = chosen[0]
        if not self.name and self.parent:
            self.name = titles.title(os.path.splitext(os.path.basename(self.source.path))[0])

    def resume(self) -> Optional[str]:
        if not self.parent:
            return super().resume()
        # The subagent's own file cannot be resumed; its parent is the file its folder is named after.
        below = os.path.relpath(self.source.path, self.source.root).split(os.sep)
        parent = os.path.join(self.source.root, below[0], below[1] + ".jsonl")
        return resume.command(self.program, self.option, parent, env=resume.home_variable(self.source, self.variable))
