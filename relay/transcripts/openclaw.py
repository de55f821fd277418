"""OpenClaw: Pi's form, one folder of sessions an agent; what was deleted or reset stays beside it as an archive."""

from __future__ import annotations

import os
import re
from typing import Any, Mapping, Optional, Sequence

from relay.transcripts import resume, titles
from relay.transcripts.pi import PiReader
from relay.transcripts.types import Event

#: What a channel puts before a message: its own data as fenced blocks, and the time.
_CHANNEL = re.compile(r"\A(?:\s*[A-Z][\w ]* \((?:un)?trusted[^)\n]*\):\s*```(?:json)?\n.*?\n```)+\s*", re.DOTALL)
_STAMP = re.compile(r"\A\[[^\]\n]*\d{4}-\d\d-\d\d \d\d:\d\d[^\]\n]*\]\s*")


class OpenClawReader(PiReader):
    """The id of a session is its own within its agent only, so another agent than ``main`` stands before it."""

    label = "OpenClaw"

    def begin(self) -> None:
        super().begin()
        self.id = os.path.basename(self.source.path).partition(".jsonl")[0]
        self.session_id = self.id

    def header(self, record: Mapping[str, Any]) -> None:
        super().header(record)
        self.session_id = self.id
        agent = os.path.basename(os.path.dirname(os.path.dirname(self.source.path)))
        if agent != "main" and os.path.relpath(self.source.path, self.source.root).count(os.sep) >= 2:
            self.id = f"{agent}/{self.session_id}"

    def entry(self, record: Mapping[str, Any]) -> Sequence[Event]:
        message = record.get("message")
        if isinstance(message, dict) and "delivery-mirror" in (message.get("model"), message.get("api")):
            return ()  # says once more what went out to the channel
        return super().entry(record)

    def typed(self, text: str) -> str:
        return titles.visible(_STAMP.sub("", _CHANNEL.sub("", text)))

    def resume(self) -> Optional[str]:
        env = resume.home_variable(self.source, "OPENCLAW_STATE_DIR")
        return resume.command("openclaw", "--resume", self.session_id, env=env)
