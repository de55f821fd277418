"""Moments and hosts as people type them."""

from __future__ import annotations

import importlib
import time

import click
import pytest
from click.testing import CliRunner

from relay.cli.options import HostType, Moment
from relay.client.host_ids import parse
from relay.client.hosts_file import Host, add
from relay.paths import config_folder


def moment(text):
    return Moment().convert(text, None, None)


@pytest.mark.parametrize(
    "text, seconds", [("30m", 1800), ("12h", 43200), ("7d", 604800), ("2w", 1209600), ("7 D", 604800)]
)
def test_how_long_ago(text, seconds):
    before = time.time()
    assert (before - seconds) * 1000 - 1 <= moment(text) <= (time.time() - seconds) * 1000 + 1


def test_a_moment_with_its_offset():
    assert moment("2026-03-01T09:30:00Z") == moment("2026-03-01T10:30+01:00") == 1772357400000


def test_a_moment_without_offset_is_local(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert moment("2026-03-01T18:30") == moment("2026-03-01 18:30:00") == 1772357400000
        assert moment("2026-03-01") == 1772290800000
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "text", ["", "yesterday", "7", "d", "-7d", "2026-13-01", "1900-01-01T00:00Z", "999999w", "2026-03-01T09:30x"]
)
def test_no_moment(text):
    with pytest.raises(click.BadParameter):
        moment(text)


def test_hosts_are_completed(home):
    for text in ("ssh:me@box", "ssh:other"):
        add(config_folder(), Host(parse(text)))
    context = click.Context(click.Command("x"))

    def words(typed):
        return [item.value for item in HostType("all").shell_complete(context, click.Argument(["x"]), typed)]

    assert words("") == ["local", "all", "ssh:me@box", "ssh:other"]
    assert words("ssh:m") == ["ssh:me@box"]
    (home / ".config/session-relay/hosts.json").write_text("{")
    assert words("") == ["local", "all"]


@pytest.mark.parametrize("text", ["nan", "-nan", "inf", "-1", "0", "1e9", "soon"])
@pytest.mark.parametrize(
    "module, arguments",
    [
        ("relay.cli.search", ["word"]),
        ("relay.cli.status", []),
        ("relay.cli.resume", ["claude", "x"]),
        ("relay.cli.hosts", ["test"]),
        ("installer.__main__", ["check", "box"]),
    ],
)
def test_a_time_limit_is_a_number_of_seconds_within_bounds(module, arguments, text):
    loaded = importlib.import_module(module)
    command = loaded.main if module == "installer.__main__" else loaded.command
    result = CliRunner().invoke(command, [*arguments, "--timeout", text])
    assert (result.exit_code, "--timeout" in result.output) == (2, True)
