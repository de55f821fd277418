"""A JSON-RPC 2.0 client over any pair of streams: whatever else the far side writes is skipped as it comes."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import threading
from collections import deque
from typing import Any, NoReturn

from relay.client.faults import AgentMissing, ConnectionLost, ProtocolFault, RemoteError, TimedOut
from relay.client.streams import Streams
from relay.rpc.framing import LINE_LIMIT, LineDecoder
from relay.rpc.messages import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND

#: What a far side may write beside its answer to one call, in bytes.
NOISE_LIMIT = 16 << 20

_PIECE = 1 << 16
#: How long a command whose output ended may take to end itself, in seconds.
_EXIT_WAIT = 1.0
#: What shells exit with, and say, when there is no such program or it cannot be run.
_NO_PROGRAM_CODES = (126, 127)
_NO_PROGRAM_WORDS = (b"not found", b"no such file", b"permission denied", b"cannot execute", b"unknown command")


class MethodNotFound(RemoteError):
    """The host is of a version that does not have the method."""


class JsonRpcClient:
    """Calls over ``streams``, one at a time; it closes them when a call fails otherwise than by an answer.

    ``name`` is how messages call the host, ``remedy`` is the sentence that says how an agent comes to be there.
    """

    def __init__(
        self, streams: Streams, name: str, remedy: str, *, line_limit: int = LINE_LIMIT, noise_limit: int = NOISE_LIMIT
    ) -> None:
        self._streams = streams
        self._name = name
        self._remedy = remedy
        self._noise_limit = noise_limit
        self._decoder = LineDecoder(line_limit)
        self._lines: deque[bytes | None] = deque()
        self._dropped = False
        self._token = os.urandom(6).hex()
        self._calls = 0
        self._expired = False

    def call(self, method: str, params: object, timeout: float) -> Any:
        """The result of ``method``, waited for up to ``timeout`` seconds.

        Raises MethodNotFound, RemoteError, ProtocolFault, AgentMissing, ConnectionLost or TimedOut.
        """
        self._calls += 1
        request_id = f"{self._token}-{self._calls}"
        frame = json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode("ascii")
        if len(frame) > LINE_LIMIT:
            raise ProtocolFault("The request is longer than 1 MiB, which no host takes. Shorten the query.")
        # The one way to end a read or a write that waits on a silent host is to close its streams.
        alarm = threading.Timer(max(0.0, timeout), self._expire)
        alarm.daemon = True
        alarm.start()
        try:
            with contextlib.suppress(OSError):  # the far side is gone: what it wrote before that says more
                self._streams.writer.write(frame + b"\n")
                self._streams.writer.flush()
            response = self._response(request_id)
        except BaseException:
            self._streams.close()
            raise
        finally:
            alarm.cancel()
        if "error" in response:
            _raise_error(self._name, response["error"])
        return response["result"]

    def stderr(self) -> bytes:
        """The last the far side wrote to stderr."""
        return self._streams.stderr_tail()

    def close(self) -> None:
        """Close the streams, which ends the agent behind them."""
        self._streams.close()

    def _expire(self) -> None:
        self._expired = True
        self._streams.close()

    def _response(self, request_id: str) -> dict[str, Any]:
        wanted = request_id.encode("ascii")
        read = 0
        while True:
            while self._lines:
                line = self._lines.popleft()
                self._dropped = self._dropped or line is None
                # A line without our id is not worth parsing, however much of it there is.
                response = _answer(line, request_id) if line is not None and wanted in line else None
                if response is not None:
                    return response
            if read > self._noise_limit:
                raise ProtocolFault(
                    f"{self._name} wrote more than {self._noise_limit >> 20} MiB and no answer. Look at what its login "
                    f"shell prints: `relay hosts test {shlex.quote(self._name)}`."
                )
            piece = self._streams.reader.read1(_PIECE)
            if not piece:
                break
            read += len(piece)
            self._lines.extend(self._decoder.decode(piece))
        if self._expired and self._dropped:
            raise ProtocolFault(f"{self._name} gave no answer of at most 1 MiB. Ask for fewer hits with --limit.")
        if self._expired:
            raise TimedOut(f"{self._name} did not answer in time. Try again, or give it longer with --timeout SECONDS.")
        raise self._end()

    def _end(self) -> AgentMissing | ConnectionLost:
        """Why the far side ended without an answer."""
        code = self._streams.exit_code(_EXIT_WAIT)
        if is_missing(code, self._streams.stderr_tail()):
            return AgentMissing(f"There is no agent on {self._name}. {self._remedy}")
        ending = "" if code is None else f" (exit code {code})"
        return ConnectionLost(
            f"{self._name} ended before it answered{ending}. See what it says with"
            f" `relay hosts test {shlex.quote(self._name)}`."
        )


def is_missing(code: int | None, stderr: bytes) -> bool:
    """Whether a command ended because there is no such program on the host, whatever shell says so."""
    said = stderr.lower()
    return code in _NO_PROGRAM_CODES or (code not in (0, None) and any(words in said for words in _NO_PROGRAM_WORDS))


def _answer(line: bytes, request_id: str) -> dict[str, Any] | None:
    """The line as the response to our request, or None when it is anything else."""
    value = _parsed(line)
    if value is None:
        # What a start-up file printed may have ended without a line break. Inside a frame these bytes cannot stand.
        start = line.rfind(b'{"jsonrpc"')
        value = _parsed(line[start:]) if start > 0 else None
    if not isinstance(value, dict) or value.get("id") != request_id:
        return None
    return value if ("result" in value) != ("error" in value) else None


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line, parse_int=_bounded_int, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _bounded_int(digits: str) -> int:
    if len(digits) > 20:  # reading thousands of digits takes time without end on an old Python
        raise ValueError("a number longer than any we know")
    return int(digits)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _raise_error(name: str, error: object) -> NoReturn:
    code = error.get("code") if isinstance(error, dict) else None
    if not isinstance(code, int) or isinstance(code, bool):
        raise ProtocolFault(f"{name} answered with an error that is none. Bring its agent up to date.")
    if code == METHOD_NOT_FOUND:
        raise MethodNotFound(f"The agent on {name} does not know this question.", code)
    # The text of the error is the host's own and may name what must not leave it; the code is enough.
    raise RemoteError(_MEANINGS.get(code, "{} answered with error {}.").format(name, code), code)


_MEANINGS = {
    INVALID_PARAMS: "{0} refused the request as invalid (error {1}); an older agent may not know one of the filters.",
    INTERNAL_ERROR: "{0} failed inside (error {1}). Try again; `relay status --host {0}` shows how it is doing.",
}
