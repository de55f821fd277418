"""The server: lines in, calls to their methods, exactly one response to each call, whatever happens."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Set, Union

from relay.diagnostics import describe, say
from relay.rpc import messages
from relay.rpc.flow import Budget, Output, read_some
from relay.rpc.framing import LineDecoder
from relay.rpc.lanes import Lane

#: Bytes of request lines (and a flat share for each call) that may be in flight before the server stops reading.
IN_FLIGHT_BYTES = 4 << 20
CALL_OVERHEAD = 4096

#: Bytes of answers a batch may gather; its calls that are still to run then fail instead.
BATCH_BYTES = 8 << 20

#: Seconds that calls in flight have to finish once the peer is done or a signal came.
GRACE_SECONDS = 2.0


def _as_it_came(params: Any) -> Any:
    return params


class Method(NamedTuple):
    """One method. ``parse`` runs on the reading thread, is quick, and raises ParamsError; ``call`` gets what it gave.

    ``lane`` chooses the workers for a parsed call (None: the server's own). ``call`` returns a JSON value, or a
    Handover when the rest of the work belongs in another lane. ``late`` is a call's second chance to answer in time: it
    runs for one that is not done when half of the grace at the end is over.
    """

    call: Callable[[Any], Any]
    parse: Callable[[Any], Any] = _as_it_came
    lane: Callable[[Any], Optional[Lane]] = lambda request: None
    late: Optional[Callable[[Any], Any]] = None


class Handover(NamedTuple):
    """What a method returns to go on as ``call()`` in ``lane``."""

    lane: Lane
    call: Callable[[], Any]


class Server:
    """Serves ``methods`` on two file descriptors until the input ends, the output breaks or ``stop`` is called.

    Calls run at the same time and are answered as they finish. A method name that is not in ``methods`` is answered
    by the reading thread itself, whatever the workers do. A plain function stands for a Method that only has it.
    """

    def __init__(
        self,
        methods: Mapping[str, Union[Method, Callable[[Any], Any]]],
        input: int,
        output: int,
        grace: float = GRACE_SECONDS,
    ) -> None:
        self._methods = {
            name: method if isinstance(method, Method) else Method(method) for name, method in methods.items()
        }
        self._input = input
        self._grace = grace
        self._lane = Lane("call", 4)
        self._budget = Budget(IN_FLIGHT_BYTES)
        self._open: Set[_Reply] = set()
        self._open_lock = threading.Lock()
        self._stopping = False
        self._stop: SimpleQueue[None] = SimpleQueue()  # its put may be called from a signal handler
        self._output = Output(output, self.stop)

    def serve(self) -> None:
        """Serve until it is time to stop; then finish what is in flight, for at most ``grace`` seconds."""
        threading.Thread(target=self._read, name="input", daemon=True).start()
        self._stop.get()
        self._stopping = True
        deadline = time.monotonic() + self._grace
        self._budget.lift()
        if not self._output.closed and not self._budget.wait_unused(deadline - self._grace / 2):
            self._hurry_open()
            if not self._budget.wait_unused(deadline):
                self._output.lift()
                self._fail_open()
                deadline += self._grace / 10  # for the last answers to get out
        self._output.close(deadline)

    def stop(self) -> None:
        """End ``serve``; may be called from any thread and from a signal handler, any number of times."""
        self._stop.put(None)

    def _read(self) -> None:
        decoder = LineDecoder()
        try:
            while not self._stopping:
                data = read_some(self._input)
                for line in decoder.decode(data) if data else decoder.flush():
                    self._take(line)
                if not data:
                    break
        except OSError:
            pass  # an input that breaks has ended
        finally:
            self.stop()

    def _take(self, line: Optional[bytes]) -> None:
        """Answer a line, or see to it that others will."""
        try:
            if line is None:
                raise messages.Refused(messages.INVALID_REQUEST)
            message = messages.parse(line)
        except messages.Refused as refused:
            self._output.put(messages.error(None, refused.code) + b"\n")
            return
        count = len(message.calls) + message.invalid
        if count == 0:
            return
        answers = _Batch(count, self._output.put) if message.batch else _Single(self._output.put)
        invalid = messages.error(None, messages.INVALID_REQUEST)
        for _ in range(message.invalid):
            answers.add(invalid)
        share = len(line) // count + CALL_OVERHEAD
        for call in message.calls:
            self._start(call, answers, share)

    def _start(self, call: messages.Call, answers: "_Answers", cost: int) -> None:
        method = self._methods.get(call.method)
        if method is None:
            answers.add(messages.error(call.id, messages.METHOD_NOT_FOUND))
            return
        self._budget.take(cost)
        reply = _Reply(call.id, answers, cost)
        with self._open_lock:
            self._open.add(reply)
        if self._stopping or answers.full:
            self._answer(reply, messages.error(call.id, messages.INTERNAL_ERROR))
            return
        try:
            request = method.parse(call.params)
            lane = method.lane(request) or self._lane
            if method.late is not None:
                reply.late = partial(method.late, request)
            lane.submit(partial(self._run, reply, partial(method.call, request)))
        except BaseException as fault:  # whatever it is, the call gets its answer
            self._fault(reply, fault)

    def _run(self, reply: "_Reply", call: Callable[[], Any]) -> None:
        """Run on a worker; never raises."""
        try:
            if reply.answered or reply.answers.full:
                frame = messages.error(reply.id, messages.INTERNAL_ERROR)
            else:
                value = call()
                if isinstance(value, Handover):
                    value.lane.submit(partial(self._run, reply, value.call))
                    return
                frame = messages.result(reply.id, value)
        except BaseException as fault:  # whatever it is, the call gets its answer
            self._fault(reply, fault)
        else:
            self._answer(reply, frame)

    def _fault(self, reply: "_Reply", fault: BaseException) -> None:
        if isinstance(fault, messages.ParamsError):
            self._answer(reply, messages.error(reply.id, messages.INVALID_PARAMS, fault.issues))
        else:
            self._answer(reply, messages.error(reply.id, messages.INTERNAL_ERROR))
            say(f"internal error: {describe(fault)}")

    def _answer(self, reply: "_Reply", frame: bytes) -> None:
        with self._open_lock:
            if reply.answered:
                return
            reply.answered = True
        reply.answers.add(frame)
        with self._open_lock:
            self._open.discard(reply)
        self._budget.give(reply.cost)

    def _unanswered(self) -> List["_Reply"]:
        with self._open_lock:
            return [reply for reply in self._open if not reply.answered]

    def _hurry_open(self) -> None:
        for reply in self._unanswered():
            if reply.late is not None:
                with suppress(RuntimeError):  # no thread to be had: it may still be done in time by itself
                    self._lane.submit(partial(self._run, reply, reply.late))

    def _fail_open(self) -> None:
        for reply in self._unanswered():
            self._answer(reply, messages.error(reply.id, messages.INTERNAL_ERROR))


class _Single:
    """Where the answer to a message goes that is no batch."""

    full = False

    def __init__(self, put: Callable[[bytes], None]) -> None:
        self._put = put

    def add(self, frame: bytes) -> None:
        self._put(frame + b"\n")


class _Batch:
    """Gathers the answers to a batch and sends them as one line when the last has come."""

    def __init__(self, count: int, put: Callable[[bytes], None]) -> None:
        self._missing = count
        self._put = put
        self._frames: List[bytes] = []
        self._size = 0
        self._lock = threading.Lock()

    @property
    def full(self) -> bool:
        """Whether the answers take more memory than a batch may have."""
        return self._size > BATCH_BYTES

    def add(self, frame: bytes) -> None:
        with self._lock:
            self._frames += (b",", frame) if self._frames else (b"[", frame)
            self._size += len(frame)
            self._missing -= 1
            done = self._missing == 0
        if done:
            self._frames.append(b"]\n")
            self._put(b"".join(self._frames))


_Answers = Union[_Single, _Batch]


class _Reply:
    """A call that waits for its answer."""

    __slots__ = ("id", "answers", "cost", "late", "answered")

    def __init__(self, id: messages.Id, answers: _Answers, cost: int) -> None:
        self.id = id
        self.answers = answers
        self.cost = cost
        self.late: Optional[Callable[[], Any]] = None
        self.answered = False
