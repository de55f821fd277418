"""The single-file agent: the same bytes every time, nothing of the desktop in it, and every Python here runs it."""

from __future__ import annotations

import glob
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import relay
from installer import bundle
from installer.faults import NoLocalBundle

STATUS = b'{"jsonrpc": "2.0", "id": 1, "method": "aiVault.searchStatus"}\n'


@pytest.fixture(scope="module")
def built() -> bundle.Bundle:
    """The real agent."""
    return bundle.build()


@pytest.fixture(scope="module")
def file(built: bundle.Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real agent as a file."""
    path = tmp_path_factory.mktemp("bundle") / "relay.pyz"
    path.write_bytes(built.data)
    return path


def pythons() -> list[str]:
    """Every CPython from 3.9 on that lies around here, one a minor version."""
    paths = [sys.executable, *glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))]
    # The home of a test is empty; the account's own has what pyenv installed.
    paths += glob.glob("/*/.pyenv/versions/3.*/bin/python3") + glob.glob("/home/*/.pyenv/versions/3.*/bin/python3")
    paths += [found for minor in range(9, 15) if (found := shutil.which(f"python3.{minor}"))]
    paths += glob.glob("/usr/bin/python3")
    ask = "import sys, sqlite3; print('%d %d' % sys.version_info[:2]); sys.exit(sys.version_info < (3, 9))"
    versions: dict[str, str] = {}
    for path in paths:
        said = subprocess.run([path, "-I", "-c", ask], capture_output=True, text=True, check=False)
        if said.returncode == 0:
            versions.setdefault(said.stdout.strip().replace(" ", "."), path)
    return list(versions.values())


def test_the_same_inputs_give_the_same_bytes_in_any_process() -> None:
    code = "import sys; from installer import bundle; sys.stdout.buffer.write(bundle.build().data)"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    command = ["sh", "-c", f'umask 077; exec "$0" -c "{code}"', sys.executable]
    root = Path(relay.__file__).parents[1]
    before = bundle.build().data
    elsewhere = subprocess.run(command, env=environment, cwd=root, capture_output=True, check=True).stdout
    assert elsewhere in (before, bundle.build().data)  # somebody may be editing the agent meanwhile


def test_content_alone_decides_the_digest(built: bundle.Bundle) -> None:
    one = bundle.pack("1.0", {"__main__.py": b"1", "a": b"2"})
    assert one == bundle.pack("1.0", {"a": b"2", "__main__.py": b"1"})
    assert one.digest != bundle.pack("1.0", {"__main__.py": b"1", "a": b"3"}).digest
    assert one.digest != bundle.pack("1.1", {"__main__.py": b"1", "a": b"2"}).digest
    assert one.name.startswith("1.0-")


def test_members_are_sorted_timeless_and_listed_with_their_hashes(built: bundle.Bundle) -> None:
    with zipfile.ZipFile(io.BytesIO(built.data)) as archive:
        members = archive.infolist()
        manifest = json.loads(archive.read("manifest.json"))
    names = [member.filename for member in members]
    assert names == sorted(names)
    assert {member.date_time for member in members} == {(1980, 1, 1, 0, 0, 0)}
    assert {member.external_attr >> 16 for member in members} == {0o100644}
    assert (manifest["version"], manifest["digest"]) == (relay.__version__, built.digest)
    assert set(manifest["files"]) == set(names) - {"manifest.json"}
    assert built.data.startswith(b"#!/usr/bin/env python3\n")


def test_it_holds_the_agent_its_dependencies_and_their_licenses_alone(built: bundle.Bundle) -> None:
    names = set(built.members)
    tops = {name.split("/")[0] for name in names}
    assert tops - {"playhouse"} == {"__main__.py", "relay", "click", "peewee.py", "watchdog", "licenses"}
    assert not [name for name in names if name.startswith("relay/client/") or name.endswith((".pyc", ".so"))]
    assert {name.split("/")[1] for name in names if name.startswith("licenses/")} == {"click", "peewee", "watchdog"}
    source = Path(relay.__file__).parent
    for path in source.rglob("*.py"):
        name = f"relay/{path.relative_to(source).as_posix()}"
        assert (name in names) is not name.startswith("relay/client/")


@pytest.mark.parametrize("python", pythons())
def test_every_python_runs_the_same_file(file: Path, python: str, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": "/nonexistent"}
    command = [python, "-I", str(file), "serve"]
    ended = subprocess.run(command, input=STATUS, env=environment, cwd=tmp_path, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert json.loads(ended.stdout)["result"]["enabled"] is False
    command = [python, "-I", str(file), "--help"]
    ended = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, check=True)
    assert b"search" in ended.stdout


def test_only_what_is_imported_of_playhouse_is_taken() -> None:
    files = {
        "relay/a.py": b"import playhouse.one",
        "playhouse/__init__.py": b"",
        "playhouse/one.py": b"from playhouse import two",
        "playhouse/two.py": b"",
        "playhouse/three.py": b"import playhouse.one",
    }
    bundle._keep_imported(files, "playhouse")
    assert sorted(files) == ["playhouse/__init__.py", "playhouse/one.py", "playhouse/two.py", "relay/a.py"]


def test_a_missing_dependency_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "DEPENDENCIES", {"no-such-distribution": ("x",)})
    with pytest.raises(NoLocalBundle, match="no-such-distribution"):
        bundle.build()
