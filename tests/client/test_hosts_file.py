"""The hosts file: what is written, kept, and refused."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys

import pytest

from relay.client.faults import HostsFileBroken, UnknownHost
from relay.client.host_ids import parse
from relay.client.hosts_file import Host, add, find, load, remove

BOX = Host(parse("ssh:me@box"), transport="openssh")
POD = Host(parse("runtime:pod"), command=("kubectl", "exec", "-i", "pod", "--", "relay", "serve"))
LINE = Host(parse("runtime:line"), command="cd /tmp && relay serve")


def test_no_file_is_no_host(tmp_path):
    assert load(str(tmp_path / "none")) == []
    assert not (tmp_path / "none").exists()


def test_hosts_are_kept_in_their_order(tmp_path):
    for host in (POD, BOX, LINE):
        assert add(str(tmp_path), host)
    assert load(str(tmp_path)) == [BOX, POD, LINE]
    assert find(str(tmp_path), "ssh:me%40box") == BOX
    assert remove(str(tmp_path), POD.id)
    assert not remove(str(tmp_path), POD.id)
    assert load(str(tmp_path)) == [BOX, LINE]


def test_only_the_account_reads_the_file(tmp_path):
    folder = tmp_path / "config"
    add(str(folder), BOX)
    assert stat.S_IMODE((folder / "hosts.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sorted(os.listdir(folder)) == ["hosts.json", "hosts.json.lock"]


def test_adding_again_changes_nothing(tmp_path):
    add(str(tmp_path), BOX)
    before = (tmp_path / "hosts.json").stat()
    assert not add(str(tmp_path), BOX)
    assert not add(str(tmp_path), Host(BOX.id))
    assert (tmp_path / "hosts.json").stat().st_ino == before.st_ino
    assert load(str(tmp_path)) == [BOX]


def test_fields_that_are_not_ours_are_kept(tmp_path):
    (tmp_path / "hosts.json").write_text(json.dumps({"version": 1, "theme": "dark", "ssh": {"box": {"colour": "red"}}}))
    add(str(tmp_path), Host(parse("ssh:box"), transport="openssh"))
    written = json.loads((tmp_path / "hosts.json").read_text())
    assert written == {"version": 1, "theme": "dark", "ssh": {"box": {"colour": "red", "transport": "openssh"}}}


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b"\xff",
        b"[" * 100000,
        b'{"ssh": []}',
        b'{"ssh": {"box": 1}}',
        b'{"ssh": {"-x": {}}}',
        b'{"ssh": {"a b": {}}}',
        b'{"ssh": {"box": {"transport": "telnet"}}}',
        b'{"runtimes": {"pod": {}}}',
        b'{"runtimes": {"pod": {"command": []}}}',
        b'{"runtimes": {"pod": {"command": [1]}}}',
        b'{"runtimes": {"pod": {"command": "a\\u0000"}}}',
    ],
)
def test_a_broken_file_is_named_and_left_alone(tmp_path, content):
    (tmp_path / "hosts.json").write_bytes(content)
    with pytest.raises(HostsFileBroken, match="hosts.json"):
        load(str(tmp_path))
    with pytest.raises(HostsFileBroken):
        add(str(tmp_path), BOX)
    assert (tmp_path / "hosts.json").read_bytes() == content


def test_a_folder_in_its_place_is_named(tmp_path):
    (tmp_path / "hosts.json").mkdir()
    with pytest.raises(HostsFileBroken, match="cannot be read"):
        load(str(tmp_path))


def test_a_host_that_is_not_configured_is_unknown(tmp_path):
    add(str(tmp_path), BOX)
    with pytest.raises(UnknownHost, match="relay hosts add ssh:box"):
        find(str(tmp_path), "ssh:box")
    with pytest.raises(UnknownHost, match="COMMAND"):
        find(str(tmp_path), "runtime:pod")


def test_many_programs_add_at_once(tmp_path):
    code = "import sys; from relay.client.hosts_file import *; from relay.client.host_ids import *\n"
    code += "for n in range(5): add(sys.argv[1], Host(HostId('ssh', f'box-{sys.argv[2]}-{n}')))"
    programs = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(number)]) for number in range(4)]
    assert [program.wait(60) for program in programs] == [0] * 4
    assert len(load(str(tmp_path))) == 20


def test_a_link_to_a_folder_of_dot_files_stays_one(tmp_path):
    real = tmp_path / "dotfiles" / "relay-hosts.json"
    real.parent.mkdir()
    real.write_text('{"ssh": {"old": {}}}')
    config = tmp_path / "config"
    config.mkdir()
    (config / "hosts.json").symlink_to(real)
    add(str(config), BOX)
    assert (config / "hosts.json").is_symlink()
    assert set(json.loads(real.read_text())["ssh"]) == {"old", "me@box"}
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert os.listdir(real.parent) == [real.name]


@pytest.mark.parametrize("version", [2, 17, "2026"])
def test_a_file_of_another_version_is_read_and_never_rewritten(tmp_path, version):
    config = str(tmp_path)
    add(config, BOX)
    path = tmp_path / "hosts.json"
    document = {**json.loads(path.read_text()), "version": version, "groups": {"all": []}}
    path.write_text(json.dumps(document))
    assert [host.id for host in load(config)] == [BOX.id]
    assert add(config, BOX) is False
    assert remove(config, parse("ssh:other")) is False
    for change in (lambda: add(config, Host(parse("ssh:other"))), lambda: remove(config, BOX.id)):
        with pytest.raises(HostsFileBroken, match="Upgrade Session Relay"):
            change()
    assert json.loads(path.read_text()) == document


def test_a_pipe_in_its_place_holds_nobody_up(tmp_path):
    os.mkfifo(tmp_path / "hosts.json")
    with pytest.raises(HostsFileBroken, match="not a regular file"):
        load(str(tmp_path))


@pytest.mark.parametrize(
    "name, remedy",
    [
        ("ssh:box", "`relay hosts add ssh:box` or `relay-installer install ssh:box`"),
        ("runtime:my pod", "`relay hosts add 'runtime:my pod' -- COMMAND`"),
        ("local", "always there"),
    ],
)
def test_a_host_that_is_not_in_the_file_is_named_with_what_to_type(tmp_path, name, remedy):
    with pytest.raises(UnknownHost) as raised:
        find(str(tmp_path), name)
    assert remedy in str(raised.value)
