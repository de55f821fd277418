"""What may be shown as a session's title: real user text without what a program put around it."""

from __future__ import annotations

import re
from typing import Optional, Pattern

from relay.transcripts.content import clean

#: Characters of a title.
LENGTH = 96

#: Blocks that several agents put before, after or into what a person typed. One that is not closed takes the rest.
_BLOCKS = re.compile(r"<(system-reminder|codex_internal_context|goal_context)\b[^>]*>.*?(?:</\1>|\Z)", re.DOTALL)

#: What ``content.image`` makes of a picture.
_PICTURE = re.compile(r"\[image [^\s\]]+(?: \d+)?\]")

_BLANK = "\ufeff \t\r\n\f\v"

#: Text that is instructions from a file, whoever it is said by.
_INSTRUCTIONS = ("# AGENTS.md instructions", "<INSTRUCTIONS>")


def blocks(*tags: str) -> Pattern[str]:
    """A pattern for ``visible``: the blocks ``<tag …>…</tag>`` with one of these names, wherever they stand."""
    names = "|".join(re.escape(tag) for tag in tags)
    return re.compile(rf"<({names})\b[^>]*>.*?(?:</\1>|\Z)", re.DOTALL)


def leading(*tags: str) -> Pattern[str]:
    """The same for blocks that only count at the start: further on, a person may be talking about such a tag."""
    names = "|".join(re.escape(tag) for tag in tags)
    return re.compile(rf"\A(?:\s*<({names})\b[^>]*>.*?(?:</\1>|\Z))+", re.DOTALL)


def visible(text: str, *injected: Pattern[str]) -> str:
    """What a person typed: ``text`` without wrapper blocks (ours, ``injected``), trimmed; empty if nothing is left."""
    text = text.strip(_BLANK)
    if "<" in text:
        text = _BLOCKS.sub(" ", text)
        for pattern in injected:
            text = pattern.sub(" ", text)
        text = text.strip(_BLANK)
    return "" if text.startswith(_INSTRUCTIONS) else text


def title(text: Optional[str]) -> str:
    """``text`` on one line, storable, and at most ``LENGTH`` characters long; empty when there is none."""
    if not isinstance(text, str):
        return ""
    # Only the start can show: a prompt may be megabytes long.
    line = clean(" ".join(text[: LENGTH * 40].replace("\0", " ").split()))
    return line if len(line) <= LENGTH else line[: LENGTH - 1].rstrip() + "…"


def prompt(text: str) -> str:
    """The title that a prompt makes: ``title`` of its words, which are none when it is a picture alone."""
    head = text[: LENGTH * 40]
    return title(_PICTURE.sub(" ", head) if "[image " in head else head)


def fallback(label: str, session_id: str) -> str:
    """The title of a session in which nobody said anything that can be one."""
    return title(f"{label} {session_id[:8]}")
