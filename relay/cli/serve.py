"""The agent: the two methods of the contract on this process's standard streams, until they end."""

from __future__ import annotations

import signal
import sys
import threading
from typing import Any, Dict, Mapping

from relay.contract.exposure import for_relay, status_for_relay
from relay.contract.requests import (
    SEARCH_METHOD,
    STATUS_METHOD,
    InvalidParams,
    SearchRequest,
    parse_search,
    parse_status_params,
)
from relay.diagnostics import describe, say
from relay.rpc.lanes import Lane
from relay.rpc.messages import ParamsError
from relay.rpc.server import Handover, Method, Server
from relay.rpc.stdio import take_over
from relay.service import Service

#: Seconds to let go of the index at the end; the kernel releases the writer's lock in any case.
CLOSING = 2.0


def methods(service: Service) -> Mapping[str, Method]:
    """The methods of the contract. What they answer has passed the relay's exposure policy, whatever was asked."""
    searching, waiting, looking = Lane("search", 4), Lane("freshness", 32), Lane("status", 2)

    def search_lane(request: SearchRequest) -> Lane:
        return searching if request.freshness == "indexed" else waiting

    def search(request: SearchRequest) -> Any:
        if request.freshness == "indexed":
            return for_relay(service.answer(request, True))
        current = service.wait_until_current(request)
        return Handover(searching, lambda: for_relay(service.answer(request, current)))

    def search_unwaited(request: SearchRequest) -> Any:
        return for_relay(service.answer(request, request.freshness == "indexed"))

    def status(nothing: None) -> Dict[str, Any]:
        return status_for_relay(service.status())

    return {
        SEARCH_METHOD: Method(search, _checked(parse_search), search_lane, search_unwaited),
        STATUS_METHOD: Method(status, _checked(parse_status_params), lambda nothing: looking),
    }


def run() -> int:
    """Serve until the input ends or a signal comes; the exit code."""
    peer_input, peer_output = take_over()
    _quiet_faults()
    service = Service.of_this_account()
    server = Server(methods(service), peer_input, peer_output)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop())
    service.start()
    server.serve()
    closing = threading.Thread(target=service.close, args=(CLOSING,), daemon=True)
    closing.start()
    closing.join(CLOSING + 0.5)
    return 0


def _checked(parse: Any) -> Any:
    def parsed(params: Any) -> Any:
        try:
            return parse(params)
        except InvalidParams as invalid:
            raise ParamsError(invalid.issues) from None

    return parsed


def _quiet_faults() -> None:
    """What nobody caught is said in one line: a traceback on stderr would name paths of the host."""
    sys.excepthook = lambda kind, fault, trace: say(f"ended by {describe(fault)}")
    threading.excepthook = lambda args: say(f"thread ended by {describe(args.exc_value or args.exc_type())}")
    sys.unraisablehook = lambda args: say(f"ignored {describe(args.exc_value or args.exc_type())}")
