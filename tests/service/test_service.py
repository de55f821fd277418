"""The service under its policy, with parts that can be told how to behave."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest

from relay import policy
from relay.contract.requests import SearchRequest
from relay.contract.responses import ABSENT_STATUS, parse_response, parse_status
from relay.index.faults import IndexUnavailable
from relay.policy import Policy
from relay.service import NoService, Service
from relay.transcripts.registry import Env

RESULTS = {
    "kind": "results",
    "hits": [],
    "page": {"cursor": None, "hasMore": False},
    "generation": 1,
    "truncated": {"candidates": False, "snippets": 0, "query": False, "freshness": False},
    "durationMs": 1.0,
}
FRESH = SearchRequest("q", freshness="wait-until-current")


class World:
    """Stands for the indexer and the engine, and remembers what was done with them."""

    def __init__(self, folder: Path) -> None:
        self.state, self.config = str(folder / "state"), str(folder / "config")
        os.makedirs(self.state)
        self.log: List[str] = []
        self.ready = True
        self.absent = False
        self.made: List[Any] = []
        self.reconcile: Callable[[float], bool] = lambda timeout: True
        self.engine: Callable[[SearchRequest], Dict[str, Any]] = lambda request: dict(
            RESULTS,
            truncated=dict(RESULTS["truncated"]),  # type: ignore[call-overload]
        )
        self.no_indexer: Optional[Exception] = None
        self.file = os.path.join(self.state, "index.db")
        Path(self.file).touch()

    def make_indexer(self, state_folder: str, env: Env, history_days: Optional[int]) -> Any:
        if self.no_indexer is not None:
            raise self.no_indexer
        self.made.append((state_folder, env, history_days))
        return Indexer(self)

    def make_engine(self, path: str) -> Any:
        self.log.append("engine opened")
        return Engine(self)

    def service(self) -> Service:
        env = Env("/home/me", {}, "linux")
        return Service(self.state, self.config, env, self.make_indexer, self.make_engine)

    def set(self, new: Policy) -> None:
        policy.write(self.config, new)


class Indexer:
    def __init__(self, world: World) -> None:
        self.world = world
        self.database_path = world.file

    @property
    def ready(self) -> bool:
        return self.world.ready

    @property
    def absent(self) -> bool:
        return self.world.absent

    def start(self) -> None:
        self.world.log.append("indexer started")

    def reconcile(self, timeout: float) -> bool:
        return self.world.reconcile(timeout)

    def report_damage(self) -> None:
        self.world.log.append("damage reported")

    def status(self) -> Dict[str, Any]:
        return {name: value for name, value in ABSENT_STATUS.items() if name != "enabled"} | {"phase": "current"}

    def close(self, timeout: float) -> None:
        self.world.log.append("indexer closed")


class Engine:
    def __init__(self, world: World) -> None:
        self.world = world

    def search(self, request: SearchRequest) -> Dict[str, Any]:
        return self.world.engine(request)

    def close(self) -> None:
        self.world.log.append("engine closed")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def start(world: World) -> Iterator[Callable[..., Service]]:
    services: List[Service] = []

    def start(first: Optional[Policy] = None) -> Service:
        if first is not None:
            world.set(first)
        services.append(world.service())
        services[-1].start()
        return services[-1]

    yield start
    for service in services:
        service.close(5)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def reason(service: Service) -> Optional[str]:
    return service.search(SearchRequest("q")).get("reason")


def test_without_consent_nothing_is_even_made(world: World, start: Callable[..., Service]) -> None:
    service = start()
    assert service.search(SearchRequest("q")) == {"kind": "unavailable", "reason": "disabled"}
    assert service.search(FRESH) == {"kind": "unavailable", "reason": "disabled"}
    assert service.status() == ABSENT_STATUS
    assert world.log == [] and world.made == []


def test_the_first_search_waits_for_the_index_to_be_opened(world: World, start: Callable[..., Service]) -> None:
    world.ready = False
    threading.Timer(0.1, lambda: setattr(world, "ready", True)).start()
    assert parse_response(start(Policy(enabled=True)).search(SearchRequest("q")))["kind"] == "results"


def test_enabled_it_answers_searches_and_status(world: World, start: Callable[..., Service]) -> None:
    service = start(Policy(True, 30, {"claude": ("/srv",)}))
    assert service.search(SearchRequest("q")) == RESULTS
    assert parse_status(service.status()) == {**ABSENT_STATUS, "enabled": True, "phase": "current"}
    ((state, env, days),) = world.made
    assert (state, env, days) == (world.state, Env("/home/me", {}, "linux", {"claude": ("/srv",)}), 30)


def test_an_index_that_is_not_ready_is_not_waited_for_twice(world: World, start: Callable[..., Service]) -> None:
    world.ready = False
    service = start(Policy(enabled=True))
    assert reason(service) == "not-ready"
    assert reason(service) == "not-ready"
    world.ready = True
    assert reason(service) is None


def test_freshness_is_waited_for_only_when_asked(world: World, start: Callable[..., Service]) -> None:
    waits: List[float] = []
    world.reconcile = lambda timeout: waits.append(timeout) or True  # type: ignore[func-returns-value]
    service = start(Policy(enabled=True))
    service.search(SearchRequest("q"))
    assert waits == []
    assert service.search(FRESH)["truncated"]["freshness"] is False
    assert len(waits) == 1 and 4 < waits[0] <= 5


def test_a_pass_that_is_late_is_told_on_results(world: World, start: Callable[..., Service]) -> None:
    world.reconcile = lambda timeout: False
    service = start(Policy(enabled=True))
    assert service.search(FRESH)["truncated"]["freshness"] is True
    world.engine = lambda request: {"kind": "malformed-cursor"}
    assert service.search(FRESH) == {"kind": "malformed-cursor"}


def test_a_pass_that_fails_is_an_error(world: World, start: Callable[..., Service]) -> None:
    def fail(timeout: float) -> bool:
        raise OSError("the pass failed")

    world.reconcile = fail
    with pytest.raises(OSError):
        start(Policy(enabled=True)).search(FRESH)


def test_a_running_service_follows_the_policy(world: World, start: Callable[..., Service]) -> None:
    service = start()
    assert reason(service) == "disabled"
    world.set(Policy(enabled=True))
    until(lambda: reason(service) is None)
    world.set(Policy(enabled=False))
    until(lambda: reason(service) == "disabled")
    until(lambda: "indexer closed" in world.log)
    assert world.log == ["indexer started", "engine opened", "engine closed", "indexer closed"]
    world.set(Policy(enabled=True, history_days=7))
    until(lambda: len(world.made) == 2)
    assert world.made[1][2] == 7
    world.set(Policy(enabled=True, history_days=9))
    until(lambda: len(world.made) == 3)
    assert world.made[2][2] == 9


def test_a_broken_policy_file_takes_consent_away(world: World, start: Callable[..., Service], capfd: Any) -> None:
    service = start(Policy(enabled=True))
    assert reason(service) is None
    Path(world.config, "policy.json").write_text("{")
    until(lambda: reason(service) == "disabled")
    assert "search is off" in capfd.readouterr().err


def test_writing_the_same_policy_again_changes_nothing(world: World, start: Callable[..., Service]) -> None:
    service = start(Policy(enabled=True))
    assert reason(service) is None
    world.set(Policy(enabled=True))
    time.sleep(1.2)
    assert world.log == ["indexer started", "engine opened"]


def test_a_clear_makes_it_let_go_and_begin_anew(world: World, start: Callable[..., Service]) -> None:
    service = start(Policy(enabled=True, epoch="one"))
    assert reason(service) is None
    world.set(Policy(enabled=True, epoch="two", clearing_until=time.time() + 30))
    until(lambda: "indexer closed" in world.log)
    assert reason(service) == "not-ready"
    assert service.status() == {**ABSENT_STATUS, "enabled": True, "phase": "closed"}
    world.set(Policy(enabled=True, epoch="two"))
    until(lambda: reason(service) is None)
    assert len(world.made) == 2


def test_a_clear_that_was_killed_holds_it_up_for_a_while_only(world: World, start: Callable[..., Service]) -> None:
    service = start(Policy(enabled=True, clearing_until=time.time() + 0.7))
    assert reason(service) == "not-ready"
    until(lambda: reason(service) is None)


def test_a_python_without_full_text_search_has_no_service(
    world: World, start: Callable[..., Service], capfd: Any
) -> None:
    world.no_indexer = NoService("the SQLite of this Python has no FTS5.")
    service = start(Policy(enabled=True))
    assert service.search(SearchRequest("q")) == {"kind": "unavailable", "reason": "no-service"}
    assert service.status() == ABSENT_STATUS
    assert "no FTS5" in capfd.readouterr().err


def test_an_index_that_cannot_be_had_is_tried_again(
    world: World, start: Callable[..., Service], monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setattr("relay.service.RETRY", 0.1)
    world.no_indexer = OSError(13, "Permission denied", "/home/SECRET")
    service = start(Policy(enabled=True))
    assert reason(service) == "no-service"
    world.no_indexer = None
    until(lambda: reason(service) is None)
    assert "SECRET" not in capfd.readouterr().err


def test_a_replaced_file_gets_a_new_engine(world: World, start: Callable[..., Service]) -> None:
    service = start(Policy(enabled=True))
    service.search(SearchRequest("q"))
    service.search(SearchRequest("q"))
    Path(world.file + ".new").touch()
    os.replace(world.file + ".new", world.file)
    service.search(SearchRequest("q"))
    assert world.log == ["indexer started", "engine opened", "engine closed", "engine opened"]


def test_an_engine_that_fails_once_is_opened_again(world: World, start: Callable[..., Service]) -> None:
    failures = [IndexUnavailable("gone")]

    def search(request: SearchRequest) -> Dict[str, Any]:
        if failures:
            raise failures.pop()
        return {"kind": "malformed-cursor"}

    world.engine = search
    assert start(Policy(enabled=True)).search(SearchRequest("q")) == {"kind": "malformed-cursor"}
    assert "damage reported" not in world.log


def test_an_engine_that_keeps_failing_is_reported_and_answered_with_its_reason(
    world: World, start: Callable[..., Service]
) -> None:
    def search(request: SearchRequest) -> Dict[str, Any]:
        raise IndexUnavailable("broken")

    world.engine = search
    assert start(Policy(enabled=True)).search(SearchRequest("q")) == {"kind": "unavailable", "reason": "not-ready"}
    assert "damage reported" in world.log


def test_closing_lets_go_of_everything(world: World, start: Callable[..., Service]) -> None:
    service = start(Policy(enabled=True))
    service.search(SearchRequest("q"))
    service.close(5)
    assert world.log == ["indexer started", "engine opened", "engine closed", "indexer closed"]
    assert reason(service) == "not-ready"


def test_an_index_that_cannot_be_had_at_all_is_no_service(world: World, start: Callable[..., Service]) -> None:
    world.ready, world.absent = False, True
    service = start(Policy(enabled=True))
    assert reason(service) == "no-service"
    world.ready, world.absent = True, False
    assert reason(service) is None
