"""The search service of one account: consent decides whether it lives, and it ties the indexer to the search."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any, Callable, Dict, Optional, Tuple

from relay import paths, policy
from relay.contract.requests import SearchRequest
from relay.contract.responses import ABSENT_STATUS, DISABLED, NO_SERVICE, NOT_READY, unavailable
from relay.diagnostics import describe, say
from relay.transcripts.registry import Env

#: Seconds between two looks at the policy file (one stat each).
LOOK = 0.5

#: Seconds a search waits for an index that is just being opened.
OPENING = 2.0

#: Seconds ``wait-until-current`` waits before it searches anyway.
FRESHNESS = 5.0

#: Seconds after which an index that could not be had at all is tried again.
RETRY = 5.0


class NoService(Exception):
    """This Python can have no index."""


class Service:
    """Answers searches and status under full exposure; every method may be called from any thread.

    ``make_indexer(state_folder, env, history_days)`` and ``make_engine(path)`` give the parts; without them they are
    the real ones, whose modules are imported when consent is there and not before.
    """

    def __init__(
        self,
        state_folder: str,
        config_folder: str,
        env: Env,
        make_indexer: Optional[Callable[..., Any]] = None,
        make_engine: Optional[Callable[[str], Any]] = None,
    ) -> None:
        self._state_folder = state_folder
        self._config_folder = config_folder
        self._env = env
        self._make_indexer = make_indexer or _indexer
        self._make_engine = make_engine or _engine
        self._lock = threading.Lock()
        self._policy = policy.Policy()
        self._indexer: Any = None
        self._opened = 0.0
        self._absent = False
        self._why_absent = ""
        self._engine_lock = threading.Lock()
        self._engine: Optional[Tuple[Any, Any]] = None  # with the identity of the file it reads
        self._decided = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="policy", daemon=True)

    @classmethod
    def of_this_account(cls) -> "Service":
        """The service over this account's own transcripts."""
        return cls(paths.state_folder(), paths.config_folder(), Env.of_this_account({}))

    def start(self) -> None:
        """Begin to follow the policy, in a thread of its own; returns at once."""
        self._thread.start()

    def close(self, timeout: float) -> None:
        """Let go of the index, within about ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
        self._let_go(max(0.0, deadline - time.monotonic()))

    # Answers

    def search(self, request: SearchRequest) -> Dict[str, Any]:
        """The response, after the wait for freshness when the request asks for it."""
        return self.answer(request, self.wait_until_current(request))

    def wait_until_current(self, request: SearchRequest) -> bool:
        """Wait as the request's freshness says; False when the index is searched although it may not be current.

        Raises what the reconcile pass raises when it fails in time.
        """
        if request.freshness != "wait-until-current":
            return True
        deadline = time.monotonic() + FRESHNESS
        indexer, _ = self._usable()
        if indexer is None:
            return True
        return bool(indexer.reconcile(max(0.0, deadline - time.monotonic())))

    def answer(self, request: SearchRequest, current: bool) -> Dict[str, Any]:
        """The response, without a wait; ``current`` is what ``wait_until_current`` said."""
        indexer, reason = self._usable()
        if indexer is None:
            return unavailable(reason)
        from relay.index.faults import IndexUnavailable  # needs sqlite3, which a Python may lack

        try:
            try:
                response = self._engine_for(indexer).search(request)
            except IndexUnavailable:  # closed or replaced under the search: the second look is at what stands there now
                self._drop_engine()
                response = self._engine_for(indexer).search(request)
        except IndexUnavailable as fault:
            self._drop_engine()
            if indexer is self._indexer:
                indexer.report_damage()
            return unavailable(fault.reason)
        if response["kind"] == "results":
            response["truncated"]["freshness"] = not current
        return dict(response)

    def status(self) -> Dict[str, Any]:
        """The contract's status, with full exposure."""
        self._decided.wait(OPENING)
        with self._lock:
            enabled, clearing, indexer, absent = (
                self._policy.enabled,
                self._policy.clearing,
                self._indexer,
                self._absent,
            )
        if absent or not enabled:
            return dict(ABSENT_STATUS)
        if indexer is None:
            return {**ABSENT_STATUS, "enabled": True, "phase": "closed" if clearing else "idle"}
        status = {**indexer.status(), "enabled": True}
        return {name: status[name] for name in ABSENT_STATUS}

    def _usable(self) -> Tuple[Any, str]:
        """The indexer when its index can be searched, else None and the contract's reason."""
        if not self._decided.wait(OPENING):
            return None, NOT_READY
        with self._lock:
            enabled, indexer, opened, absent = self._policy.enabled, self._indexer, self._opened, self._absent
        if not enabled:
            return None, DISABLED
        if indexer is None:
            return None, NO_SERVICE if absent else NOT_READY
        while not indexer.ready:
            if indexer.absent:
                return None, NO_SERVICE
            if time.monotonic() - opened > OPENING or self._closing.wait(0.01):
                return None, NOT_READY
        return indexer, ""

    def _engine_for(self, indexer: Any) -> Any:
        """An engine over the file that is the index now. Raises IndexUnavailable."""
        from relay.index.faults import IndexUnavailable
        from relay.index.opening import file_identity

        with self._engine_lock:
            if indexer is not self._indexer:
                raise IndexUnavailable("The index was let go meanwhile.")
            identity = file_identity(indexer.database_path)
            if self._engine is None or self._engine[1] != identity:
                self._close_engine()
                self._engine = (self._make_engine(indexer.database_path), identity)
            return self._engine[0]

    def _drop_engine(self) -> None:
        with self._engine_lock:
            self._close_engine()

    def _close_engine(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine[0].close()

    # Life under the policy

    def _watch(self) -> None:
        seen: policy.Signature = None
        retry = 0.0
        first = True
        while first or not self._closing.wait(LOOK):
            try:
                signature = policy.signature(self._config_folder)
                with self._lock:
                    known, was_open, absent = self._policy, self._indexer is not None, self._absent
                due = (
                    known.enabled and not was_open and not known.clearing and not (absent and time.monotonic() < retry)
                )
                if first or signature != seen or due:
                    seen = signature
                    self._apply(policy.read(self._config_folder))
                    retry = time.monotonic() + RETRY
            except BaseException as fault:  # the thread must outlive whatever it was
                say(f"the policy could not be applied: {describe(fault)}")
            first = False
            self._decided.set()

    def _apply(self, new: policy.Policy) -> None:
        with self._lock:
            old, self._policy = self._policy, new
            was_open = self._indexer is not None
        if was_open and not new.clearing and replace(new, clearing_until=0.0) == replace(old, clearing_until=0.0):
            return
        if was_open:
            self._let_go(FRESHNESS)
        if new.enabled and not new.clearing:
            self._open(new)

    def _open(self, new: policy.Policy) -> None:
        try:
            env = replace(self._env, extra_homes=new.roots)
            indexer = self._make_indexer(self._state_folder, env, new.history_days)
            indexer.start()
        except Exception as fault:
            why = f"there can be no index now: {fault if isinstance(fault, NoService) else describe(fault)}"
            if why != self._why_absent:
                say(why)
            with self._lock:
                self._absent, self._why_absent = True, why
            return
        with self._lock:
            self._indexer, self._opened, self._absent = indexer, time.monotonic(), False

    def _let_go(self, timeout: float) -> None:
        with self._lock:
            indexer, self._indexer = self._indexer, None
        self._drop_engine()
        if indexer is not None:
            indexer.close(timeout)


def obstacle() -> Optional[str]:
    """Why this Python can have no index, as a sentence; None when it can."""
    try:
        from relay.index.opening import fts5_available
    except ImportError:
        return "This Python was built without sqlite3."
    return None if fts5_available() else "The SQLite of this Python has no FTS5."


def _indexer(state_folder: str, env: Env, history_days: Optional[int]) -> Any:
    reason = obstacle()
    if reason is not None:
        raise NoService(reason)
    from relay.indexer.indexer import Indexer

    return Indexer(state_folder, env, history_days)


def _engine(path: str) -> Any:
    from relay.search.engine import Engine

    return Engine(path)
