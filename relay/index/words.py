"""How text is spelled in the full-text index: the same function for what is stored and for what is asked."""

from __future__ import annotations

from typing import Tuple


def columns(role: str, text: str) -> Tuple[str, str, str, str, str]:
    """The five FTS5 columns of a row (see ``schema.WORD_COLUMNS``); a pure function of its arguments."""
    user = text if role == "user" else ""
    assistant = text if role == "assistant" else ""
    tool = text if role not in ("user", "assistant") else ""
    return user, assistant, tool, "", ""
