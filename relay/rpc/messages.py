"""JSON-RPC 2.0 messages: a line to the calls in it, a result or an error to the bytes that answer."""

from __future__ import annotations

import json
import math
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Union

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603

#: The whole text of every error: nothing of the host or of an exception is ever added to it.
MESSAGES = {
    PARSE_ERROR: "Parse error",
    INVALID_REQUEST: "Invalid Request",
    METHOD_NOT_FOUND: "Method not found",
    INVALID_PARAMS: "Invalid params",
    INTERNAL_ERROR: "Internal error",
}

Id = Union[str, int, float, None]


class Call(NamedTuple):
    """A request that wants an answer under ``id``; ``params`` is None when it came without."""

    id: Id
    method: str
    params: Any


class Message(NamedTuple):
    """What one line asks. ``invalid`` counts the values in it that are no requests; notifications are left out.

    Both methods of the contract only ask, so a notification, which wants no answer, wants nothing.
    """

    batch: bool
    calls: Sequence[Call]
    invalid: int


class Refused(Exception):
    """The line as a whole is answered by one error, with a null id."""

    def __init__(self, code: int) -> None:
        super().__init__(MESSAGES[code])
        self.code = code


class ParamsError(Exception):
    """Raised by a method's ``parse``: the parameters are wrong; ``issues`` goes out as ``data.issues``."""

    def __init__(self, issues: List[Dict[str, str]]) -> None:
        super().__init__(MESSAGES[INVALID_PARAMS])
        self.issues = issues


def parse(line: bytes) -> Message:
    """The calls in one line. Raises Refused for a line that is no JSON, or an empty batch."""
    try:
        value = _decode(line.decode("utf-8"))
    except (ValueError, RecursionError):
        raise Refused(PARSE_ERROR) from None
    if not isinstance(value, list):
        return _message(False, [value])
    if not value:
        raise Refused(INVALID_REQUEST)
    return _message(True, value)


def result(id: Id, value: Any) -> bytes:
    """The response that carries ``value``; raises TypeError, ValueError or RecursionError when it is no JSON value."""
    return _encode({"jsonrpc": "2.0", "id": id, "result": value})


def error(id: Id, code: int, issues: Optional[List[Dict[str, str]]] = None) -> bytes:
    """The response that says the call failed."""
    fault: Dict[str, Any] = {"code": code, "message": MESSAGES[code]}
    if issues is not None:
        fault["data"] = {"issues": issues}
    return _encode({"jsonrpc": "2.0", "id": id, "error": fault})


def _message(batch: bool, values: List[Any]) -> Message:
    calls = []
    invalid = 0
    for value in values:
        if not _is_request(value):
            invalid += 1
        elif "id" in value:
            calls.append(Call(value["id"], value["method"], value.get("params")))
    return Message(batch, calls, invalid)


def _is_request(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("jsonrpc") == "2.0"
        and isinstance(value.get("method"), str)
        and _is_id(value.get("id"))
    )


def _is_id(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, (str, int)) and not isinstance(value, bool)


def _integer(digits: str) -> Union[int, float]:
    # Turning a million digits into an int takes seconds on some versions and is an error on others.
    return int(digits) if len(digits) < 400 else float(digits)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_decode = json.JSONDecoder(parse_int=_integer, parse_constant=_no_constant).decode

# ASCII only: a lone surrogate, a line separator or a terminal escape in a transcript travels as \\u....
_encode_text = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode


def _encode(value: Any) -> bytes:
    return _encode_text(value).encode("ascii")
