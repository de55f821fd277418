"""How text is spelled in the full-text index: the same rules for what is stored and for what is asked.

The index's tokenizer knows ASCII letters and digits and takes every non-ASCII character as part of a word. All else is
decided here: what folds (case, accents, width), where words end, and which further words an identifier is found by.
"""

from __future__ import annotations

import re
import string
import unicodedata
from typing import Dict, List, Tuple

#: Characters of a token that are kept; what stands behind them (base64, minified code) is not searchable.
TOKEN_CAP = 128

#: Stands between the parts of two identifiers, so that no phrase runs from one into the next.
GAP = "\ue000"

#: One row of no session. Without column sizes bm25 takes every row for one of -1 words a column, which turns scores
#: round while the average row is short, as it is in an index of a few messages; this keeps the average high there.
BALLAST = f"{GAP} " * 65_536

#: Operators that are words of their own.
OPERATORS = (
    "::",
    "->",
    "=>",
    "!=",
    "==",
    "&&",
    "||",
    "++",
    "--",
    "<=",
    ">=",
    ":=",
    "+=",
    "-=",
    "<<",
    ">>",
    "?.",
    "??",
    "**",
    "//",
    "/*",
    "*/",
    "${",
    "$(",
    "#!",
    "</",
    "/>",
    "<-",
    "|>",
    "...",
)

#: Letters without a decomposition that people type without their stroke.
STROKES = {
    "ı": "i",
    "ø": "o",
    "đ": "d",
    "ł": "l",
    "ħ": "h",
    "æ": "ae",
    "œ": "oe",
    "ð": "d",
    "þ": "th",
    "ŋ": "n",
    "ŧ": "t",
}

#: Scripts written without spaces (and Hangul, whose words grow by suffixes): each character is a word.
UNSPACED_RANGES = (
    (0x0E01, 0x0EFF),
    (0x0F00, 0x0FFF),
    (0x1000, 0x109F),
    (0x1100, 0x11FF),
    (0x1780, 0x17FF),
    (0x3005, 0x3007),
    (0x3040, 0x30FF),
    (0x3100, 0x318F),
    (0x31A0, 0x31BF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA000, 0xA4CF),
    (0xA960, 0xA97F),
    (0xAC00, 0xD7FF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFD),
)
#: Pictures people do search for; box drawing and the like are not among them.
EMOJI_RANGES = ((0x2600, 0x27BF), (0x1F1E6, 0x1F1FF), (0x1F300, 0x1F3FA), (0x1F400, 0x1FAFF))

_SPAN = re.compile(r"[^\x00-\x7f]+")
_TOO_LONG = re.compile(rf"[0-9A-Za-z\x80-\U0010ffff]{{{TOKEN_CAP + 1},}}")
_LONG_RUN = b"a" * (TOKEN_CAP + 1)
_PART = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def _table(classes: Dict[str, str]) -> bytes:
    """A translation of bytes to classes: each key's characters become its value, all others a space."""
    table = bytearray(b" " * 256)
    for members, byte in classes.items():
        for member in members.encode("latin-1"):
            table[member] = ord(byte)
    return bytes(table)


_LOWER, _UPPER, _DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
_HIGH = "".join(map(chr, range(0x80, 0x100)))
#: Words as the tokenizer sees them, to find overlong ones.
_RUNS = _table({_LOWER + _UPPER + _DIGITS + _HIGH: "a"})
#: Where an identifier changes case.
_CASES = _table({_LOWER: "a", _UPPER: "A", _DIGITS: "0"})
#: Where a symbol begins a word, and where two stand together.
_SYMBOLS = _table({_LOWER + _UPPER + _DIGITS + _HIGH + "_)]}": "a", "-.#@$:=><!&|+*/?{(": "!"})


def columns(role: str, text: str) -> Tuple[str, str, str, str, str]:
    """The five FTS5 columns of a row (see ``schema.WORD_COLUMNS``); a pure function of its arguments.

    Every role but ``user`` and ``assistant`` counts as tool text.
    """
    text, data = _spelled(text)
    more = " ".join(_further(data))
    if role == "user":
        return text, "", "", more, ""
    if role == "assistant":
        return "", text, "", more, ""
    return "", "", text, "", more


def spell(text: str) -> str:
    """``text`` folded and split the way the index has it; ASCII letters keep their case (the tokenizer folds them)."""
    return _spelled(text)[0]


def tokens(text: str) -> List[str]:
    """The index's words in ``text``, in order, folded."""
    return _TOKEN.findall(spell(text).lower())


_TOKEN = re.compile(r"[0-9a-z\x80-\U0010ffff]+")


def further(text: str) -> List[str]:
    """The words a text is found by beside its own: parts of identifiers, operators, words with symbols."""
    return _further(_spelled(text)[1])


def symbol(text: str) -> str:
    """Symbols as the letters of a word: each ASCII character moved to the private use area."""
    return "".join(chr(0xE000 + ord(character)) for character in text)


def _spelled(text: str) -> Tuple[str, bytes]:
    """The folded text and its UTF-8 bytes."""
    if not text.isascii():
        text = _SPAN.sub(_fold_span, text)
    data = text.encode()
    if _LONG_RUN in data.translate(_RUNS):
        text = _TOO_LONG.sub(lambda match: match.group()[:TOKEN_CAP], text)
        data = text.encode()
    return text, data


class _Characters(Dict[str, str]):
    """What a non-ASCII character is spelled as; filled as characters are met."""

    def __missing__(self, character: str) -> str:
        spelled = self[character] = _fold_character(character)
        return spelled


_characters = _Characters()


def _fold_span(match: re.Match[str]) -> str:
    span = match.group()
    if not unicodedata.is_normalized("NFC", span):
        span = unicodedata.normalize("NFC", span)
    if "\uff61" <= max(span) and any("\uff61" <= character <= "\uff9f" for character in span):
        span = unicodedata.normalize("NFKC", span)  # half-width kana carry their voicing as a character of its own
    return "".join(map(_characters.__getitem__, span))


def _fold_character(character: str) -> str:
    code = ord(character)
    category = unicodedata.category(character)
    if any(low <= code <= high for low, high in EMOJI_RANGES):
        return f" {character} "
    if category == "Cf":
        return " " if code == 0x200B else ""  # unlike the zero-width space, joiners and direction marks stand in words
    if category[0] not in "LNM":
        return " "
    if category[0] == "M" and (unicodedata.combining(character) or category == "Me"):
        return ""
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if any(low <= code <= high for low, high in UNSPACED_RANGES):
        return f" {unicodedata.normalize('NFKC', character)} "
    folded = []
    for part in unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold()):
        part = STROKES.get(part, part)
        if any(low <= ord(part[0]) <= high for low, high in UNSPACED_RANGES):
            folded.append(f" {part} ")
        elif part.isascii():
            folded.append(part if part.isalnum() else " ")
        elif unicodedata.category(part)[0] in "LNM":
            folded.append("" if unicodedata.combining(part) else part)
        else:
            folded.append(" ")
    return "".join(folded)


class _Parts(Dict[bytes, str]):
    """The parts of identifiers met before, since the same names return again and again; emptied when it grows large."""

    def __missing__(self, word: bytes) -> str:
        if len(self) > 50_000:
            self.clear()
        spelled = self[word] = _split(word)
        return spelled


_parts = _Parts()


def _split(word: bytes) -> str:
    """``resolveTerminalPath`` as ``resolve Terminal Path``; empty when the word is no name but noise."""
    parts = _PART.findall(word)
    if len(parts) < 2 or len(word) > 64 or len(parts) > 2 + len(word) // 4:
        return ""
    return b" ".join(parts).decode() + " " + GAP


def _further(data: bytes) -> List[str]:
    """``further`` over UTF-8 bytes; it runs over every character indexed, hence the searches for two-byte literals."""
    found: Dict[str, None] = {}
    cases = data.translate(_CASES)
    for turns in (_TURN, _ACRONYM_TURN):
        for match in turns.finditer(cases):
            at, end = match.span()
            found[_parts[data[cases.rfind(b" ", 0, at) + 1 : end]]] = None
    found.pop("", None)
    classes = b" " + data.translate(_SYMBOLS)
    for match in _BEFORE.finditer(classes):
        at, end = match.span()
        sigil = _sigils.get(data[at : end - 2])
        if sigil is not None:
            found[sigil + _word_at(data, end - 2)] = None
    for match in _TOGETHER.finditer(classes):
        for operator in _operators[data[match.start() - 1 : match.end() - 1]]:
            found[operator] = None
    for behind in (b"#", b"++"):
        at = data.find(behind)
        while at >= 0:
            end = at + len(behind)
            before = _BEHIND.search(data, max(0, at - 13), end) if at and data[at - 1] in _ALPHANUMERIC else None
            if before is not None and _ENDED.match(data, end):
                found[before.group(1).decode() + symbol(behind.decode())] = None
            at = data.find(behind, end)
    return list(found)


def _word_at(data: bytes, at: int) -> str:
    match = _WORD.match(data, at)
    return match.group().decode() if match is not None else ""


class _Operators(Dict[bytes, Tuple[str, ...]]):
    """The operators in a run of symbols; ``::<`` holds ``::``."""

    def __missing__(self, run: bytes) -> Tuple[str, ...]:
        if len(self) > 5000:
            self.clear()
        spelled = self[run] = tuple(map(symbol, _OPERATOR.findall(run.decode()))) if len(run) <= 8 else ()
        return spelled


_operators = _Operators()

#: In the classes of _CASES: where an identifier goes from a small letter, or from an acronym, to its next word.
_TURN = re.compile(rb"aA[aA0]*")
_ACRONYM_TURN = re.compile(rb"AAa[aA0]*")
#: In the classes of _SYMBOLS: symbols before a word, and symbols in a row.
_BEFORE = re.compile(rb" !+a")
_TOGETHER = re.compile(rb"!!+")
_OPERATOR = re.compile("|".join(map(re.escape, sorted(OPERATORS, key=len, reverse=True))))
_BEHIND = re.compile(rb"(?<![0-9A-Za-z\x80-\xff])([0-9A-Za-z]{1,12})(?:\+\+|#)\Z")
_ENDED = re.compile(rb"(?![0-9A-Za-z\x80-\xff+#])")
_ALPHANUMERIC = frozenset((_LOWER + _UPPER + _DIGITS).encode())
_WORD = re.compile(rb"[0-9A-Za-z\x80-\xff]{1,64}")
_sigils = {sigil.encode(): symbol(sigil) for sigil in (".", "#", "@", "$", "-", "--")}
