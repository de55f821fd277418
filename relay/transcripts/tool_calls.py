"""Tool calls as programs write them down: OpenAI, Anthropic, AI SDK and ATIF name the same things differently."""

from __future__ import annotations

from typing import Any, Iterator

from relay.transcripts import content

_NAMES = ("name", "toolName", "tool_name", "function_name", "tool")
_ARGUMENTS = ("arguments", "input", "args", "parameters")


def calls(value: Any) -> Iterator[str]:
    """The text of each call in a ``tool_calls`` list (or its JSON already decoded)."""
    for call in value if isinstance(value, list) else ():
        text = call_text(call)
        if text:
            yield text


def call_text(call: Any) -> str:
    """One call's text: its name and arguments; empty when it has neither."""
    if not isinstance(call, dict):
        return ""
    inner = call.get("function")
    if isinstance(inner, dict):
        call = inner
    name = next((call[key] for key in _NAMES if isinstance(call.get(key), str)), "")
    arguments = next((call[key] for key in _ARGUMENTS if call.get(key)), None)
    return content.call_text(name, arguments)


def result_text(result: Any) -> str:
    """A result's text; the AI SDK's ``{type, value}`` is looked into."""
    if isinstance(result, dict) and "value" in result and isinstance(result.get("type"), str):
        result = result["value"]
    return content.output_text(result)
