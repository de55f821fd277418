"""Every command of both programs has a page that shows how it is used; completion offers what the command takes."""

from __future__ import annotations

import importlib

import click
import pytest
from click.testing import CliRunner

from relay import paths
from relay.cli import options
from relay.client import hosts_file
from relay.client.host_ids import parse
from relay.client.hosts_file import Host


def pages(command, *path):
    yield path
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from pages(command.get_command(click.Context(command), name), *path, name)


@pytest.mark.parametrize(
    "module, program", [("installer.__main__", "relay-installer"), ("relay.cli.hosts", "relay hosts")]
)
def test_every_help_has_an_example(module, program):
    loaded = importlib.import_module(module)
    main = loaded.main if program == "relay-installer" else loaded.command
    for path in pages(main):
        page = CliRunner().invoke(main, [*path, "--help"]).output
        assert not path or f"  {' '.join([program, *path])}" in page, page
        assert "Commands:" in page or not path or "--json" in page, page
        assert "...\n" not in page.partition("Commands:")[2], page


def test_completion_offers_the_hosts_a_command_takes():
    for name in ("ssh:box", "runtime:pod"):
        hosts_file.add(paths.config_folder(), Host(parse(name), command=("relay",) if name == "runtime:pod" else None))

    def offered(kind):
        return {item.value for item in kind.shell_complete(None, None, "")}

    assert offered(options.HostType("all")) == {"local", "all", "ssh:box", "runtime:pod"}
    assert offered(options.HostType(without="local")) == {"ssh:box", "runtime:pod"}
    assert offered(options.HostType(without="runtime:")) == {"local", "ssh:box"}
