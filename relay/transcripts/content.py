"""Blocks, tool calls and tool outputs to searchable text, without base64."""

from __future__ import annotations

import json
import re
from typing import Any, Iterator, List, Mapping, Optional, Tuple

#: Characters of a tool's text that are worth making: the index keeps 3,072 of them.
TOOL_LIMIT = 3_200

_DATA_URL = re.compile(
    r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,([A-Za-z0-9+/=_-]*(?:\r?\n[A-Za-z0-9+/=_-]{60,})*)"
)
#: A payload in one piece, or folded into lines of 60 characters and more.
_RUN = re.compile(
    r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{256,}|(?:[A-Za-z0-9+/_-]{60,}\r?\n){3,}[A-Za-z0-9+/_-]*)={0,2}"
)
#: What relay.transcripts.jsonl leaves of a payload that it cut.
_LEFT_OUT = re.compile(r"\[(\d+) bytes left out\]")
_RUN_LENGTH = 256
_MIXTURE = (re.compile("[0-9]"), re.compile("[a-z]"), re.compile("[A-Z]"))


def clean(text: str) -> str:
    """``text`` that UTF-8 can spell: a lone surrogate becomes ``?`` (SQLite stores no such text)."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # A pair of escapes is one character, what stays alone is none.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\ufffd", "?")
    return text


def without_base64(text: str) -> str:
    """``text`` with each data URL and each long run of base64 replaced by ``[image <mime> <bytes>]`` or its like."""
    if len(text) < _RUN_LENGTH:
        return text
    if ";base64," in text:
        text = _DATA_URL.sub(_data_url_note, text)
    # A cheap look for a run of 256 characters before the expensive one: from one break as far as the next may lie.
    start, last = 0, len(text) - _RUN_LENGTH
    while start <= last:
        stop = start + _RUN_LENGTH
        gap = text.rfind(" ", start, stop)
        if gap < 0:
            return _RUN.sub(_run_note, text)
        start = gap + 1
    return text


def image(mime: Any, data: Any) -> str:
    """What stands for an image: ``[image <mime> <bytes>]``; ``data`` is base64 text, a data URL, or an address."""
    if isinstance(data, str) and data.startswith("data:"):
        match = _DATA_URL.match(data[:200])
        if match is not None:
            mime, data = match.group(1) or mime, data[data.find(",") + 1 :]
    name = clean(mime[:80]) if isinstance(mime, str) and mime else "image"
    return f"[image {name} {_decoded_size(data)}]" if isinstance(data, str) and data else f"[image {name}]"


def _decoded_size(data: str) -> int:
    left_out = _LEFT_OUT.search(data[-40:])
    length = len(data) - (len(left_out.group()) - int(left_out.group(1)) if left_out else 0)
    return max(0, length * 3 // 4 - data[-2:].count("="))


def _data_url_note(match: "re.Match[str]") -> str:
    return image(match.group(1), match.group(2).rstrip())


def _run_note(match: "re.Match[str]") -> str:
    run = "".join(match.group().split())
    # A path or a long identifier has no such mixture; a hash in hexadecimal has no upper case.
    mixed = all(kind.search(run) for kind in _MIXTURE)
    return f"[base64 {_decoded_size(run)}]" if mixed and run.count("/") < len(run) // 12 else match.group()


def text_of(content: Any, limit: Optional[int] = None) -> str:
    """The text of a message's content: a string, one block, or a list of blocks.

    Understands ``text`` blocks under their usual names, images in the forms agents use, and strings among the blocks;
    other blocks (thinking, tool calls) give nothing. Not much more than ``limit`` characters are made.
    """
    if isinstance(content, str):
        return clean(without_base64(content if limit is None else _head(content, limit)))
    if isinstance(content, dict):
        content = (content,)
    elif not isinstance(content, (list, tuple)):
        return ""
    parts: List[str] = []
    room = limit
    for block in content:
        part = block if isinstance(block, str) else block_text(block)
        if part:
            part = clean(without_base64(part if room is None else _head(part, room)))
            parts.append(part)
            if room is not None:
                room -= len(part) + 1
                if room <= 0:
                    break
    return "\n".join(parts)


_TEXT_TYPES = frozenset(("text", "input_text", "output_text", "markdown", None))
_IMAGE_TYPES = frozenset(("image", "input_image", "image_url", "inline_image"))


def block_text(block: Any) -> str:
    """The text one block shows, as it stands; ``[image …]`` for an image; empty for anything else."""
    if not isinstance(block, dict):
        return ""
    kind = block.get("type")
    if kind is not None and not isinstance(kind, str):
        return ""
    if kind in _TEXT_TYPES:
        text = block.get("text")
        if isinstance(text, str):
            return text
        inline = block.get("inlineData") or block.get("inline_data")
        if isinstance(inline, dict):
            return image(inline.get("mimeType") or inline.get("mime_type"), inline.get("data"))
        return ""
    if kind in _IMAGE_TYPES or kind == "document":
        return _image_block(block)
    return ""


def _image_block(block: Mapping[str, Any]) -> str:
    source = block.get("source")
    if isinstance(source, dict):
        if isinstance(source.get("text"), str):  # a document given as text
            return str(source["text"])
        if source.get("type") == "text" and isinstance(source.get("data"), str):
            return str(source["data"])
        return image(source.get("media_type") or source.get("mediaType"), source.get("data"))
    url = block.get("image_url") or block.get("url")
    if isinstance(url, dict):
        url = url.get("url")
    mime = block.get("mimeType") or block.get("mediaType") or block.get("media_type") or block.get("mime_type")
    data = block.get("data") if isinstance(block.get("data"), str) else url
    if isinstance(data, str) and not data.startswith("data:") and data is url:
        return image(mime, None)
    return image(mime, data)


def call_text(name: Any, arguments: Any = None) -> str:
    """A tool call as a person would note it: the name, then each argument as ``key: value`` without JSON's quoting."""
    shown = clean(name[:200]) if isinstance(name, str) else ""
    flat = flatten(arguments)
    return f"{shown}\n{flat}".strip() if "\n" in flat else f"{shown} {flat}".strip()


def output_text(output: Any) -> str:
    """A tool's output: text, blocks, or whatever object it answered with, flattened; JSON text is looked into."""
    if isinstance(output, str):
        output = _from_json(output)
    if isinstance(output, str):
        return text_of(output, TOOL_LIMIT)
    blocks = output if isinstance(output, (list, tuple)) else (output,)
    text = text_of(blocks, TOOL_LIMIT)
    # Blocks give their text; objects of another kind may have a member of that name beside others.
    if all(isinstance(block, str) or (isinstance(block, dict) and _is_plain(block)) for block in blocks):
        return text
    return text if text and isinstance(output, (list, tuple)) else flatten(output)


def _is_plain(block: Mapping[str, Any]) -> bool:
    kind = block.get("type")
    return isinstance(kind, str) and (kind in _TEXT_TYPES or kind in _IMAGE_TYPES)


def flatten(value: Any) -> str:
    """The strings and numbers in ``value`` with their keys, one a line; JSON text is looked into first."""
    value = _from_json(value)
    if isinstance(value, str):
        return text_of(value, TOOL_LIMIT)
    if isinstance(value, dict) and len(value) <= 4:  # the commonest: a few arguments that are a line or so of text
        for text in value.values():
            if type(text) is not str or not 0 < len(text) < _RUN_LENGTH:
                break
        else:
            return clean("\n".join([f"{key}: {text}" for key, text in value.items()]))
    lines: List[str] = []
    length = 0
    for key, text in _leaves(value):
        shown = image(None, text) if _DATA_URL.match(text[:200]) else _head(text, TOOL_LIMIT - length)
        text = clean(without_base64(shown))
        line = f"{key}: {text}" if key else text
        lines.append(line)
        length += len(line) + 1
        if length >= TOOL_LIMIT:
            break
    return "\n".join(lines)


def _leaves(value: Any) -> Iterator[Tuple[str, str]]:
    """``(key, text)`` for each leaf, depth first, without recursion: nesting may be deeper than Python's stack."""
    pending: List[Tuple[str, Any]] = [("", value)]
    steps = 0
    while pending and steps < 20_000:
        steps += 1
        key, item = pending.pop()
        if isinstance(item, str):
            if item:
                yield key, item
        elif isinstance(item, dict):
            kind = item.get("type")
            note = block_text(item) if isinstance(kind, str) and kind in _IMAGE_TYPES else ""
            if note:
                yield key, note
            else:
                few = [(name, inner) for (name, inner), _ in zip(item.items(), range(2_000))]
                pending.extend((clean(str(name)[:100]), inner) for name, inner in reversed(few))
        elif isinstance(item, (list, tuple)):
            if item and len(item) < 100 and all(isinstance(word, str) and len(word) < 4_000 for word in item):
                yield key, " ".join(item)  # a command's words
            else:
                pending.extend((key, inner) for inner in reversed(item[:2_000]))
        elif item is not None and not isinstance(item, bool):
            yield key, str(item)


def _from_json(value: Any) -> Any:
    """What JSON text holds; the text itself when it is none, or too long to be worth it."""
    if isinstance(value, str) and value[:1] in ("{", "[") and len(value) <= 256 << 10:
        try:
            return json.loads(value, strict=False)
        except (ValueError, RecursionError):
            return value
    return value


def _head(text: str, limit: int) -> str:
    """The first ``limit`` characters, and a bit more so that a base64 run at the cut is still seen as one."""
    return text if len(text) <= limit + 512 else text[: limit + 512]
