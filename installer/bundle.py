"""The agent as one file: a zipapp of ``relay/`` without its client and of the pure-Python packages it needs."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import relay
from installer.faults import NoLocalBundle

#: Distribution and the top-level names of it that belong into the bundle.
DEPENDENCIES = {"click": ("click",), "peewee": ("peewee", "playhouse"), "watchdog": ("watchdog",)}
#: Packages of which only the modules somebody imports are taken: playhouse holds drivers for every database there is.
SELECTED = ("playhouse",)
#: Our own packages that stay on the desktop.
DESKTOP_ONLY = ("relay/client/",)
MANIFEST = "manifest.json"

_MAIN = '''"""Start of the agent, from the bundle or from its unpacked copy."""

import sys

if __name__ == "__main__":
    from relay.__main__ import main

    sys.exit(main())
'''
_SHEBANG = b"#!/usr/bin/env python3\n"
_LICENSES = ("LICENSE", "COPYING", "LICENCE", "NOTICE")


class Bundle(NamedTuple):
    """The file's bytes, the agent's version, the digest of its content, and the names and SHA-256 of its members.

    ``digest`` (SHA-256, hex) depends on names and contents alone, so that another zlib makes the same agent.
    """

    data: bytes
    version: str
    digest: str
    members: Mapping[str, str]

    @property
    def name(self) -> str:
        """What a box calls this agent: its version and the head of its digest."""
        return f"{self.version}-{self.digest[:12]}"

    @property
    def sha256(self) -> str:
        """SHA-256 of the file, in hex."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def unpacked_size(self) -> int:
        """Bytes of all members together."""
        with zipfile.ZipFile(io.BytesIO(self.data)) as archive:
            return sum(member.file_size for member in archive.infolist())


def build() -> Bundle:
    """The bundle of the code and the dependencies that are installed here. Raises NoLocalBundle."""
    files = dict(_own_files())
    files["__main__.py"] = _MAIN.encode()
    for distribution, tops in DEPENDENCIES.items():
        files.update(_dependency(distribution, tops))
    for package in SELECTED:
        _keep_imported(files, package)
    return pack(relay.__version__, files)


def pack(version: str, files: Mapping[str, bytes]) -> Bundle:
    """The bundle of these members (name to content), a ``__main__.py`` among them."""
    members = {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)}
    digest = hashlib.sha256(json.dumps([version, members], sort_keys=True).encode()).hexdigest()
    manifest = {"version": version, "digest": digest, "files": members}
    whole = {**files, MANIFEST: json.dumps(manifest, indent=1, sort_keys=True).encode() + b"\n"}
    return Bundle(_zipped(whole), version, digest, members)


def _own_files() -> Iterator[tuple[str, bytes]]:
    root = Path(relay.__file__).parent
    for path in sorted(root.rglob("*")):
        name = f"relay/{path.relative_to(root).as_posix()}"
        if path.suffix in (".py", ".typed", ".sql") and not name.startswith(DESKTOP_ONLY):
            yield name, path.read_bytes()


def _dependency(distribution: str, tops: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    try:
        found = importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        raise NoLocalBundle(
            f"{distribution} is not installed here. Install session-relay anew, with its dependencies."
        ) from None
    listed = found.files
    if not listed:
        raise NoLocalBundle(
            f"{distribution} was installed without a list of its files. Install it with pip in a virtual environment."
        )
    for file in listed:
        name = file.as_posix()
        top = name.split("/")[0]
        if name.endswith(".py") and (top in tops or top.removesuffix(".py") in tops):
            yield name, _content(found, file)
        elif ".dist-info/" in name and os.path.basename(name).upper().startswith(_LICENSES):
            yield f"licenses/{distribution}/{os.path.basename(name)}", _content(found, file)


def _content(found: importlib.metadata.Distribution, file: importlib.metadata.PackagePath) -> bytes:
    try:
        return Path(str(found.locate_file(file))).read_bytes()
    except OSError as error:
        raise NoLocalBundle(
            f"{file} of {found.metadata['Name']} cannot be read: {error.strerror}. Install it anew."
        ) from error


def _keep_imported(files: dict[str, bytes], package: str) -> None:
    """Drop the modules of ``package`` that neither the rest of the bundle nor one that stays imports."""
    prefix = f"{package}/"
    wanted: set[str] = set()
    queue = [content for name, content in files.items() if name.endswith(".py") and not name.startswith(prefix)]
    while queue:
        for module in _imports(queue.pop()):
            name = module.replace(".", "/") + ".py"
            if name.startswith(prefix) and name in files and name not in wanted:
                wanted.add(name)
                queue.append(files[name])
    if wanted:
        wanted.add(f"{package}/__init__.py")
    for name in [name for name in files if name.startswith(prefix) and name not in wanted]:
        del files[name]


def _imports(source: bytes) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _zipped(files: Mapping[str, bytes]) -> bytes:
    """The zipapp: names sorted, every time and mode the same."""
    output = io.BytesIO()
    output.write(_SHEBANG)
    with zipfile.ZipFile(output, "a", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = 3
            member.external_attr = 0o100644 << 16
            archive.writestr(member, files[name])
    return output.getvalue()
