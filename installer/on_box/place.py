"""Puts a version of the agent on the box: upload, verify, unpack, compile, run once, and only then switch to it.

Nothing that serves is touched before the switch, which is one rename of the launcher; an install that ends anywhere
before it puts the box back as it was, and what a killed one left is removed by the next.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import py_compile
import shutil
import signal
import subprocess
import zipfile

from installer.on_box import layout, running
from installer.on_box.talk import Abandoned, Desktop, Refused, refused_by_system

_PIECE = 1 << 16
_PATIENCE = 60


def main(request):
    """Install what ``request`` describes (see installer.deploy); gives 0 when the desktop was told the outcome."""
    desktop = Desktop(request["mark"])
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, _abandon)
    os.umask(0o077)
    install = _Install(desktop, request)
    try:
        desktop.say(done=install.outcome())
    except Abandoned:
        install.put_back()
        return 1
    except Refused as refused:
        install.put_back()
        desktop.say(fault=refused.kind, facts=refused.facts)
    except OSError as error:
        install.put_back()
        reason = refused_by_system(error)
        reason.facts["path"] = _standing(reason.facts["path"])
        desktop.say(fault=reason.kind, facts=reason.facts)
    except BaseException:
        install.put_back()
        raise
    return 0


def _abandon(number, frame):
    raise Abandoned("signal %d" % number)


class _Install:
    def __init__(self, desktop, request):
        self.desktop, self.request = desktop, request
        self.root = layout.folder()
        self.made, self.later = [], []
        self.lock = None
        self.incoming = os.path.join(self.root, layout.INCOMING + request["mark"])
        self.placed = None

    def outcome(self):
        """Do it; gives the state (new, upgraded, downgraded, repaired, unchanged), the agent and the one before."""
        obstacle = layout.in_the_way(self.root)
        if obstacle:
            raise Refused("in-the-way", path=obstacle)
        self.make_folder()
        self.take_lock()
        before = layout.installed(self.root)
        running.sweep(self.root, {before.get("agent"), before.get("previous")})
        newer = _version(before.get("agent", "")) > _version(self.request["agent"])
        state = "downgraded" if newer else "upgraded" if before else "new"
        if newer and not self.request["downgrade"]:
            raise Refused("newer", there=before["agent"], ours=self.request["agent"])
        made = before.get("made", "").split() or self.made + self.later
        same = before.get("digest") == self.request["digest"]
        if same:
            state = "repaired"
        if same and self.stands(before, made):
            return {"state": "unchanged", "agent": before["agent"], "before": before["agent"]}
        self.receive()
        self.desktop.step("uploaded")
        tree = self.unpack()
        self.desktop.step("unpacked")
        agent = self.place(tree)
        self.desktop.step("placed")
        self.prove(self.placed)
        self.desktop.step("proved")
        old = before.get("agent") if self.serves(before.get("agent")) else None
        previous = before.get("previous") if same else old
        self.switch(
            layout.launcher_text(self.root, agent, self.request["digest"], self.request["python"], previous, made)
        )
        self.desktop.say(step="switched")
        running.remove(self.incoming)
        running.sweep(self.root, {agent, previous})
        return {
            "state": state,
            "agent": agent,
            "before": before.get("agent"),
        }

    def make_folder(self):
        home = os.path.expanduser("~")
        # The agent will make these for its index and its policy; uninstall --purge takes them away again.
        self.later = [
            name for name in layout.FOR_THE_AGENT if not os.path.isdir(os.path.join(home, *name.split("/")))
        ]
        path, missing = self.root, []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for path in reversed(missing):
            try:
                os.mkdir(path, 0o700)
            except FileExistsError:
                if not os.path.isdir(path):
                    raise
                continue
            self.made.append(os.path.relpath(path, home))

    def take_lock(self):
        descriptor = os.open(self.root, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.made = []  # the other one's
            raise Refused("busy") from None
        except OSError:  # some network file systems lock no folders; two installs at once are then on their own
            pass
        self.lock = descriptor

    def stands(self, before, made):
        """Whether the installed version is whole, and the launcher is the one we would write."""
        tree = os.path.join(self.root, layout.VERSIONS, before["agent"])
        wanted = layout.launcher_text(
            self.root, before["agent"], before["digest"], self.request["python"], before.get("previous"), made
        )
        try:
            with open(os.path.join(self.root, layout.LAUNCHER), encoding="utf-8") as file:
                if file.read() != wanted:
                    return False
        except OSError:
            return False
        members = self.request["members"]
        return layout.members(tree) == members and layout.damaged(tree, members) is None

    def serves(self, agent):
        return bool(agent) and os.path.isfile(os.path.join(self.root, layout.VERSIONS, agent, "__main__.py"))

    def receive(self):
        """Take the bundle from the desktop and verify what the disk holds of it."""
        size = self.request["size"]
        needed = size + 3 * self.request["unpacked_size"]
        free = shutil.disk_usage(self.root).free
        if free < needed:
            raise Refused("no-space", path=self.root, free=free, needed=needed)
        os.mkdir(self.incoming)
        path = os.path.join(self.incoming, "agent.pyz")
        self.desktop.say(step="send")
        left = size
        with open(path, "wb") as file:
            while left:
                data = self.desktop.read(min(_PIECE, left))
                file.write(data)
                left -= len(data)
            file.flush()
            os.fsync(file.fileno())
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            for data in iter(lambda: file.read(_PIECE), b""):
                digest.update(data)
        if os.path.getsize(path) != size or digest.hexdigest() != self.request["sha256"]:
            raise Refused("damaged", path=path)

    def unpack(self):
        tree = os.path.join(self.incoming, "tree")
        with zipfile.ZipFile(os.path.join(self.incoming, "agent.pyz")) as archive:
            for member in archive.infolist():
                parts = member.filename.split("/")
                if member.filename.startswith("/") or ".." in parts:
                    raise Refused("damaged", path=member.filename)
                path = os.path.join(tree, *parts)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(archive.read(member))
        compiled = {}
        for name in self.request["members"]:
            if name.endswith(".py"):
                # No check against the source at every start: a version's files never change once they are in place.
                made = py_compile.compile(
                    os.path.join(tree, *name.split("/")),
                    dfile=name,
                    doraise=True,
                    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
                )
                compiled[os.path.relpath(str(made), tree)] = layout.digest(made)
        with open(os.path.join(tree, layout.COMPILED), "w", encoding="utf-8") as file:
            json.dump({"files": compiled}, file, indent=1)
        wrong = layout.damaged(tree, self.request["members"])
        if wrong:
            raise Refused("damaged", path=wrong)
        os.sync()
        return tree

    def place(self, tree):
        versions = os.path.join(self.root, layout.VERSIONS)
        os.makedirs(versions, exist_ok=True)
        names = [self.request["agent"]] + ["%s.%d" % (self.request["agent"], number) for number in range(2, 100)]
        agent = next(name for name in names if not os.path.exists(os.path.join(versions, name)))
        self.placed = os.path.join(versions, agent)
        os.rename(tree, self.placed)
        return agent

    def prove(self, tree):
        """Let the new version answer one status request, with an empty home for policy and index: it reads nothing."""
        empty = os.path.join(self.incoming, "empty")
        os.makedirs(empty, exist_ok=True)
        variables = dict(os.environ, XDG_CONFIG_HOME=empty, XDG_STATE_HOME=empty)
        asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "aiVault.searchStatus", "params": {}})
        command = [self.request["python"], "-I", tree, "serve"]
        try:
            ended = subprocess.run(
                command,
                input=asked.encode() + b"\n",
                capture_output=True,
                timeout=_PATIENCE,
                cwd="/",
                env=variables,
                check=False,
            )
        except OSError as error:
            raise Refused("agent-fails", said="%s cannot be started: %s" % (command[0], error.strerror)) from error
        except subprocess.TimeoutExpired as error:
            raise Refused("agent-fails", said="it gave no answer within %d s" % _PATIENCE) from error
        try:
            answer = json.loads(ended.stdout)
            sound = answer["id"] == 1 and answer["result"]["enabled"] is False
        except (ValueError, TypeError, KeyError):
            sound = False
        if not sound or ended.returncode:
            said = ended.stderr.decode("utf-8", "replace").strip()[-1000:]
            raise Refused(
                "agent-fails",
                said=said or "it ended with %d and answered %r" % (ended.returncode, ended.stdout[:200]),
            )

    def switch(self, text):
        path = os.path.join(self.incoming, layout.LAUNCHER)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(path, 0o700)
        os.sync()
        os.rename(path, os.path.join(self.root, layout.LAUNCHER))
        self.placed, self.made = None, []

    def put_back(self):
        """Leave the box as it was found."""
        for number in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        if self.lock is not None:
            running.remove(self.incoming)
            if self.placed:
                running.remove(self.placed)
        versions = os.path.join(self.root, layout.VERSIONS)
        for path in [versions] + [os.path.join(os.path.expanduser("~"), name) for name in reversed(self.made)]:
            try:
                os.rmdir(path)
            except OSError:
                pass


def _standing(path):
    """What is left of ``path`` now that all was put back: a person is to look there."""
    while path and not os.path.lexists(path):
        path = os.path.dirname(path)
    return path


def _version(agent):
    """``0.10.2-abc`` as (0, 10, 2), for comparing; what is no number counts as none."""
    return tuple(int(part) for part in agent.split("-")[0].split(".") if part.isdigit())
