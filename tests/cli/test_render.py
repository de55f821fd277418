"""Answers as people see them."""

from __future__ import annotations

import io

import pytest

from relay.cli import render
from relay.cli.render import Style
from relay.contract.fields import epoch_ms
from tests.client.fake_agent import hit, results, status

NOW = epoch_ms("2026-03-01T12:30:00Z") / 1000
PLAIN = Style(False, 80, NOW)
COLOR = Style(True, 80, NOW)


@pytest.fixture(autouse=True)
def utc(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def shown(*hits, style=PLAIN):
    return list(render.hits(results(list(hits)), style))


def test_a_hit_of_a_remote_host():
    assert shown(hit(1, executionHostId="ssh:me%40box")) == [
        " 1 Session 1",
        "   claude · 3 h ago (2026-03-01 09:30) · /src/app (main) · ssh:me@box · 3 messages",
        "   user: the [[word]] here",
        "   relay resume --host ssh:me@box --agent claude session-1",
        "",
    ]


def test_a_hit_of_this_machine_shows_all(home):
    folder = home / "it's here"
    folder.mkdir()
    lines = shown(
        hit(1, cwd=str(folder), branch=None, duplicateCount=3, resumeCommand="cd /x && claude --resume session-1",
            source={"presence": "present", "filePath": "/x/1.jsonl"})
    )  # fmt: skip
    assert lines[1] == "   claude · 3 h ago (2026-03-01 09:30) · ~/it's here · 3 messages · 2 more forks"
    assert lines[3:5] == ["   /x/1.jsonl", "   cd /x && claude --resume session-1"]


def test_what_is_unknown_is_left_out():
    lines = shown(
        hit(1, None, cwd=None, branch=None, title=" ", evidence=None, messageCount=1, source={"presence": "missing"})
    )
    assert lines == [
        " 1 (no title)",
        "   claude · at an unknown time · 1 message · its file is gone",
        "   relay resume --agent claude session-1",
        "",
    ]


def test_marks_are_coloured_on_a_terminal_only():
    assert "   user: the \x1b[1;33mword\x1b[0m here" in shown(hit(1), style=COLOR)
    long = {"snippet": "go " * 20 + "[[" + "far " * 12 + "away]] from here", "role": "unknown", "timestamp": None}
    lines = shown(hit(1, evidence=long), style=COLOR)
    marked = [text for text in lines if "far" in text]
    assert len(marked) == 2
    assert all(text.count("\x1b[1;33m") == text.count("\x1b[0m") == 1 for text in marked)


def test_escapes_of_a_host_are_gone():
    evil = "\x1b]0;owned\x07\x1b[2Jx\u202e\nnew line"
    lines = shown(
        hit(1, title=evil, cwd=evil, branch=evil, sessionId=evil, executionHostId="runtime:a",
            evidence={"snippet": evil, "role": "tool", "timestamp": None})
    )  # fmt: skip
    assert all(text.isprintable() for text in lines)
    assert len(lines) == 5
    assert lines[3] == "   relay resume --host runtime:a --agent claude 'x new line'"


@pytest.mark.parametrize(
    "seconds, text",
    [
        (1, "now"),
        (42, "42 s ago"),
        (300, "5 min ago"),
        (7200, "2 h ago"),
        (86400, "1 d ago"),
        (20 * 86400, "3 weeks ago"),
        (200 * 86400, ""),
        (-3600, ""),
    ],
)
def test_how_long_ago(seconds, text):
    assert render.ago((NOW - seconds) * 1000, NOW) == text


def test_a_time_no_calendar_has():
    assert render.moment(1e30, NOW) == render.moment(None, NOW) == "at an unknown time"


def test_a_status():
    answer = status(
        degradedRoots=[{"root": "/x/\x1b[1my", "reason": "gone"}, {"reason": "Source root could not be verified."}],
        lastReconcileAt=(NOW - 120) * 1000,
        filesIndexed=12345,
    )
    assert list(render.status(answer, "ssh:box", PLAIN)) == [
        "ssh:box: on, up to date",
        "   transcripts: 12,345 indexed, 0 waiting, 1 failed",
        "   last look for changes: 2 min ago (2026-03-01 12:28)",
        "   last full sweep: never",
        "   not verified: /x/y: gone",
        "   not verified: Source root could not be verified.",
    ]
    assert render.state(status(enabled=False)) == "off"
    assert render.state(status(phase="indexing")) == "on, indexing"


@pytest.mark.parametrize("reason", ["disabled", "not-ready", "no-service"])
@pytest.mark.parametrize("host", ["local", "ssh:me@box:22", "runtime:pod"])
def test_every_refusal_says_what_to_do(reason, host):
    assert "relay" in render.unavailable(reason, host).lower()


def test_the_line_that_turns_search_on_over_there():
    assert render.unavailable("disabled", "ssh:box").endswith(
        "ssh box '/bin/sh ~/.local/share/session-relay/relay enable'"
    )


def test_colour_needs_a_terminal_and_no_objection(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    assert Style.of(Terminal()).color
    assert not Style.of(io.StringIO()).color
    monkeypatch.setenv("NO_COLOR", "1")
    assert not Style.of(Terminal()).color
    monkeypatch.setenv("NO_COLOR", "")
    assert Style.of(Terminal()).color
    monkeypatch.setenv("TERM", "dumb")
    assert not Style.of(Terminal()).color


def test_flags_are_explained():
    answer = results([])
    answer["truncated"] = {"candidates": True, "snippets": 1, "query": True, "freshness": True}
    answer["debug"] = {"route": "typo+or", "repairedTerms": [{"from": "wrod", "to": "word"}],
                       "plannerReport": {"route": "typo+or", "scope": "all"}}  # fmt: skip
    assert len(list(render.notes(answer))) == 4
    assert list(render.debug(answer)) == ["route typo+or, scope all, generation 7", "0 hits in 2.0 ms"]
