"""Boxes as they are: login shells, start-up files, restricted accounts, old Pythons, homes that take nothing."""

from __future__ import annotations

import glob
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from installer import box as far_side
from installer import check, consent, deploy, faults, probe, removal
from relay.client import faults as client
from relay.client.launcher import remote_command
from relay.client.streams import Connection
from tests.support import agents, boxes, sshd
from tests.support.boxes import SYSTEM_PATH, python_folder, script

Connect = Callable[..., Connection]
STATUS = b'{"jsonrpc": "2.0", "id": 1, "method": "aiVault.searchStatus"}\n'
SHELLS = [
    path for name in ("bash", "dash", "zsh", "fish", "tcsh", "nu", "ksh", "busybox") if (path := shutil.which(name))
]
MOUNTS = pytest.mark.skipif(not sshd.own_namespaces(), reason="mounts need root")

#: What start-up files print, for whichever shell reads them.
NOISE = 'echo \'Welcome to box!\'; echo \'{"jsonrpc": "2.0", "id": 1, "result": 5}\'; echo trouble >&2\n'


def answers(connection: Connection) -> bool:
    ended = connection.run(remote_command("serve"), STATUS)
    return b'"version": "1.0.0"' in ended.stdout.splitlines()[-1]


def whole_life(connection: Connection, box: sshd.Sshd) -> None:
    """Install, answer, again, check, remove."""
    connection.run("true")  # fish makes folders of its own
    before = boxes.tree(box.home)
    assert deploy.install(connection, "box", agents.agent()).state == "new"
    assert answers(connection)
    assert deploy.install(connection, "box", agents.agent()).state == "unchanged"
    assert [
        finding for finding in check.examine(connection, "box", agents.agent()) if finding.level == "problem"
    ] == []
    removal.uninstall(connection, "box", purge=True)
    assert boxes.tree(box.home) == before


@pytest.mark.parametrize("shell", SHELLS, ids=os.path.basename)
def test_every_login_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect, transport: str, shell: str
) -> None:
    if shell.endswith("busybox"):
        shell = str(script(tmp_path / "ash", f'exec {shell} ash "$@"'))
    with boxes.box(tmp_path, monkeypatch, shell=shell) as box:
        whole_life(connect(transport), box)


@pytest.mark.parametrize(
    "shell", [shell for shell in SHELLS if os.path.basename(shell) in ("bash", "zsh", "fish", "tcsh")]
)
def test_noisy_start_up_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect, shell: str) -> None:
    home = tmp_path / "home"
    noise = NOISE if "tcsh" not in shell else "echo 'Welcome to box'\n"
    for name in (".bashrc", ".zshenv", ".config/fish/config.fish", ".tcshrc"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(noise)
    with boxes.box(tmp_path, monkeypatch, shell=shell, variables={"SSH_CLIENT": "1 2 3"}) as box:
        connection = connect()
        facts = probe.look(connection, "box")
        assert facts.noise > len("Welcome to box")
        assert "noisy-shell" in {finding.name for finding in check.examine(connection, "box", None)}
        whole_life(connection, box)


@pytest.mark.parametrize("noise", [b"no line break", b"\x00\xff\n\x1b[2J \x80" * 30_000], ids=["short", "bytes"])
def test_noise_that_ends_without_a_line_break(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect, noise: bytes
) -> None:
    file = tmp_path / "noise"
    file.write_bytes(noise)
    talkative = script(tmp_path / "talkative", f'cat {file}; cat {file} >&2; exec /bin/sh "$@"')
    with boxes.box(tmp_path, monkeypatch, shell=str(talkative)) as box:
        connection = connect()
        whole_life(connection, box)
        deploy.install(connection, "box", agents.agent())
        assert consent.is_enabled(connection, "box") is False


@pytest.mark.parametrize(
    "body", ["sleep 1000", "exec yes", "exec cat /dev/zero", "exit 3"], ids=["hangs", "yes", "zeros", "fails"]
)
def test_a_python3_that_is_none_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect, body: str
) -> None:
    trap = script(tmp_path / "bin/python3", body)
    python_folder(tmp_path / "bin", "python3.12")
    with boxes.box(tmp_path, monkeypatch, path=f"{tmp_path / 'bin'}:{SYSTEM_PATH}"):
        facts = probe.look(connect(), "box")
        assert facts.python is not None
        assert any(text.startswith(str(trap)) for text in facts.refused)


@pytest.mark.parametrize("shell", ["/bin/sh", *[shell for shell in SHELLS if "fish" in shell or "tcsh" in shell]])
def test_a_home_with_an_odd_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect, shell: str
) -> None:
    path = f"{python_folder(tmp_path / 'bin')}:{SYSTEM_PATH}"
    with sshd.running(tmp_path / "sshd", tmp_path / "Ada's $HOME", shell=shell, path=path) as box:
        monkeypatch.setenv("SESSION_RELAY_SSH_CONFIG", str(box.write_config()))
        whole_life(connect(), box)


ENDLESS = pytest.mark.parametrize(
    "body", ["exec sleep 30", "exec yes", "exec cat /dev/zero"], ids=["hangs", "yes", "zeros"]
)


@ENDLESS
def test_a_login_shell_without_end_costs_a_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect, transport: str, body: str
) -> None:
    with boxes.box(tmp_path, monkeypatch, shell=str(script(tmp_path / "endless", body))) as box:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(client.TimedOut, match="box did not finish within 2 s"):
            probe.look(connect(transport), "box", 2.0)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB, and it wrote far more
        assert boxes.tree(box.home) == {}


@ENDLESS
def test_a_login_shell_that_has_no_end_the_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect, transport: str, body: str
) -> None:
    first = tmp_path / "first"
    shell = script(tmp_path / "moody", f'[ ! -e {first} ] || {body}\ntouch {first}; exec /bin/sh "$@"')
    monkeypatch.setattr(far_side, "SILENCE", 2.0)
    with boxes.box(tmp_path, monkeypatch, shell=str(shell)) as box:
        with pytest.raises((client.TimedOut, faults.StoppedHalfway)):
            deploy.install(connect(transport), "box", agents.agent())
        assert boxes.tree(box.home) == {}


def test_a_box_that_takes_no_more_of_the_upload_is_given_up(
    box: sshd.Sshd, connect: Connect, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    text_of = far_side.text_of

    def stuck(name: str) -> str:
        sleeps = "\nDesktop.read = lambda *_: __import__('time').sleep(6)\n"
        return text_of(name) + (sleeps if name == "place.py" else "")

    monkeypatch.setattr(far_side, "text_of", stuck)
    monkeypatch.setattr(far_side, "SILENCE", 4.0)
    with pytest.raises(client.TimedOut, match="nothing for 4 s"):
        deploy.install(connect(transport), "box", agents.agent(filling=16_000_000))
    assert boxes.until(lambda: boxes.tree(box.home) == {})


def test_a_forced_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect, transport: str
) -> None:
    with boxes.box(tmp_path, monkeypatch, forced_command="echo 'git only, please'; exit 1"):
        connection = connect(transport)
        with pytest.raises(faults.NoShell, match="git only, please"):
            deploy.install(connection, "box", agents.agent())
        assert [finding.name for finding in check.examine(connection, "box", None)] == ["no-shell"]


def test_a_restricted_shell_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect) -> None:
    rbash = script(tmp_path / "rbash", 'exec bash --restricted "$@"')
    with boxes.box(tmp_path, monkeypatch, shell=str(rbash)):
        with pytest.raises(faults.NoShell, match="restricted"):
            deploy.install(connect(), "box", agents.agent())


def test_an_account_without_login_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect) -> None:
    nologin = script(tmp_path / "nologin", "echo 'This account is currently not available.'; exit 1")
    with boxes.box(tmp_path, monkeypatch, shell=str(nologin)):
        with pytest.raises(faults.NoShell, match="not available"):
            deploy.install(connect(), "box", agents.agent())


def test_a_path_that_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect) -> None:
    python_folder(tmp_path / "home/.local/bin")
    with boxes.box(tmp_path, monkeypatch, path="/nonexistent"):
        assert deploy.install(connect(), "box", agents.agent()).state == "new"
        assert answers(connect())


OLD = "case \"$*\" in *version_info*) echo 'old 3.6.8 /old/python3' ;; *) exit 1 ;; esac"


def test_python3_is_too_old_but_a_newer_one_stands_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect
) -> None:
    script(tmp_path / "bin/python3", OLD)
    python_folder(tmp_path / "bin", "python3.12")
    with boxes.box(tmp_path, monkeypatch, path=f"{tmp_path / 'bin'}:{SYSTEM_PATH}"):
        facts = probe.look(connect(), "box")
        assert facts.python is not None
        assert any("3.6.8" in text and "too old" in text for text in facts.refused)
        deploy.install(connect(), "box", agents.agent())
        assert answers(connect())


@pytest.mark.parametrize(
    "place",
    [
        ".pyenv/versions/3.12.1/bin",
        "miniconda3/bin",
        "miniforge3/bin",
        ".local/bin",
        ".local/share/uv/python/cpython-3.12/bin",
    ],
)
def test_a_python_of_the_home_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect, place: str
) -> None:
    python_folder(tmp_path / "home" / place)
    script(tmp_path / "bin/python3", OLD)
    with boxes.box(tmp_path, monkeypatch, path=f"{tmp_path / 'bin'}:{SYSTEM_PATH}"):
        assert probe.look(connect(), "box").python is not None


def hidden_pythons() -> list[str]:
    """Commands that make the Pythons of this machine, which are looked at wherever PATH leads, look like none."""
    places = (
        "/usr/bin",
        "/usr/local/bin",
        "/opt/*/bin",
        "/opt/python/*/bin",
        "/usr/local/*/bin",
        "/run/current-system/sw/bin",
    )
    found = sorted({os.path.realpath(path) for place in places for path in glob.glob(f"{place}/python3*")})
    return [f"mount --bind /dev/null {path}" for path in found if os.path.isfile(path)]


@MOUNTS
@pytest.mark.parametrize(
    ("verdict", "why"),
    [
        ("old 3.8.18", "too old"),
        ("no-fts5 3.11.2", "FTS5"),
        ("no-sqlite 3.11.2", "sqlite3"),
        ("old-sqlite 3.9.2", "3.31"),
        ("not-cpython 3.10.14", "CPython"),
    ],
)
def test_no_usable_python_names_each_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect, verdict: str, why: str
) -> None:
    script(tmp_path / "bin/python3", f"echo '{verdict} /some/python3'")
    script(tmp_path / "bin/python3.13", "echo nonsense >&2; exit 127")
    with boxes.box(tmp_path, monkeypatch, path=str(tmp_path / "bin"), mounts=hidden_pythons()) as box:
        with pytest.raises(faults.NoPython, match=why) as caught:
            deploy.install(connect(), "box", agents.agent())
        assert "python3.13" in str(caught.value)
        assert "Install Python" in str(caught.value)
        assert boxes.tree(box.home) == {}


def test_a_python_of_a_virtual_environment_stands_for_the_one_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    with boxes.box(tmp_path, monkeypatch, path=f"{tmp_path / 'venv/bin'}:{SYSTEM_PATH}"):
        python = probe.look(connect(), "box").python
        assert python is not None
        assert str(tmp_path) not in python


def test_a_home_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect) -> None:
    with boxes.box(tmp_path, monkeypatch) as box:
        account = box.folder / "account"
        account.write_text(account.read_text().replace(str(box.home), "/nonexistent-home"))
        with pytest.raises(faults.HomeMissing, match="/nonexistent-home"):
            deploy.install(connect(), "box", agents.agent())


@pytest.mark.parametrize("home", ["", "/", "//", "/usr/..", "relative"])
def test_a_home_that_is_none_is_refused_and_nothing_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect, home: str
) -> None:
    before = sorted(os.listdir("/"))
    with boxes.box(tmp_path, monkeypatch, variables={"HOME": home}) as box:
        with pytest.raises(faults.HomeMissing, match="usermod -d"):
            deploy.install(connect(), "box", agents.agent())
        findings = check.examine(connect(), "box", agents.agent())
        assert [finding.name for finding in findings if finding.level == "problem"] == ["home-missing"]
        assert boxes.tree(box.home) == {}
    assert sorted(os.listdir("/")) == before
    assert not os.path.exists("/.local/share/session-relay")


def with_mount(tmp_path: Path, monkeypatch: Any, options: str, *more: str) -> Any:
    home = tmp_path / "home"
    return boxes.box(tmp_path, monkeypatch, mounts=[f"mount -t tmpfs -o {options} tmpfs {home}", *more])


def listing(connection: Connection) -> str:
    return connection.run("find . -mindepth 1").stdout.decode()


@MOUNTS
def test_a_noexec_home_works_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect, transport: str
) -> None:
    with with_mount(tmp_path, monkeypatch, "noexec"):
        connection = connect(transport)
        outcome = deploy.install(connection, "box", agents.agent())
        assert "noexec" in outcome.notes[0]
        assert answers(connection)
        assert "noexec-home" in {finding.name for finding in check.examine(connection, "box", agents.agent())}
        removal.uninstall(connection, "box", purge=True)
        assert listing(connection) == ""


@MOUNTS
def test_a_read_only_home_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect, transport: str
) -> None:
    with with_mount(tmp_path, monkeypatch, "ro"):
        connection = connect(transport)
        with pytest.raises(faults.ReadOnlyHome, match="read-only"):
            deploy.install(connection, "box", agents.agent())
        findings = check.examine(connection, "box", agents.agent())
        assert [finding.name for finding in findings if finding.level == "problem"] == ["read-only-home"]


@MOUNTS
def test_a_home_that_became_read_only_leaves_the_agent_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect
) -> None:
    with with_mount(tmp_path, monkeypatch, "size=8m"):
        connection = connect()
        deploy.install(connection, "box", agents.agent())
        assert connection.run("mount -o remount,ro $HOME").code == 0
        with pytest.raises(faults.ReadOnlyHome):
            deploy.install(connection, "box", agents.agent("1.1.0"))
        assert answers(connection)


@MOUNTS
@pytest.mark.parametrize("size", ["size=4k", "size=120k", "nr_inodes=12"])
def test_a_full_home_is_named_and_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect, size: str
) -> None:
    """No block left, too few for the agent, and too few inodes, which nothing tells of before."""
    agent = agents.agent(filling=100_000)
    with with_mount(tmp_path, monkeypatch, size):
        connection = connect()
        with pytest.raises(faults.NoSpace, match="Free some"):
            deploy.install(connection, "box", agent)
        assert listing(connection) == ""


@MOUNTS
@pytest.mark.parametrize("inodes", ["nr_inodes=1", "nr_inodes=2", "nr_inodes=12"])
def test_check_sees_that_no_more_files_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect, inodes: str
) -> None:
    with with_mount(tmp_path, monkeypatch, inodes):
        findings = check.examine(connect(), "box", agents.agent())
        problems = [finding for finding in findings if finding.level == "problem"]
        assert [finding.name for finding in problems] == ["no-space"]
        assert "df -i" in problems[0].text
        assert listing(connect()) == ""


@pytest.mark.parametrize(
    ("variable", "name"), [("XDG_CONFIG_HOME", "no-policy-folder"), ("XDG_STATE_HOME", "no-index-folder")]
)
def test_check_sees_a_folder_the_agent_cannot_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect, variable: str, name: str
) -> None:
    for base, expected in (("/proc/nothing", [name]), ("/dev/null", [name]), (str(tmp_path / "new"), []), ("odd", [])):
        with boxes.box(tmp_path / str(len(base)), monkeypatch, variables={variable: base}) as box:
            findings = check.examine(connect(), "box", agents.agent())
            problems = [finding for finding in findings if finding.level == "problem"]
            assert [finding.name for finding in problems] == expected
            assert all(variable in finding.text for finding in problems)
            assert boxes.tree(box.home) == {}
    assert not (tmp_path / "new").exists()


@MOUNTS
def test_a_full_home_keeps_the_old_version_serving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect
) -> None:
    with with_mount(tmp_path, monkeypatch, "size=600k"):
        connection = connect()
        deploy.install(connection, "box", agents.agent())
        before = listing(connection)
        connection.run("head -c 500000 /dev/zero > filler; true")
        with pytest.raises(faults.NoSpace):
            deploy.install(connection, "box", agents.agent("1.1.0", filling=100_000))
        connection.run("rm filler")
        assert listing(connection) == before
        assert answers(connection)


@MOUNTS
def test_a_full_tmp_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect) -> None:
    """The home must lie elsewhere, since the test's own is below /tmp."""
    mounts = [
        "mkdir -p /run/account",
        "mount -t tmpfs -o size=4k tmpfs /run/full",
        "head -c 9000 /dev/zero > /run/full/x || true",
    ]
    mounts = ["mkdir -p /run/account /run/full", *mounts[1:]]
    with boxes.box(tmp_path, monkeypatch, mounts=mounts) as box:
        # The account sees the full file system as /tmp, in a mount namespace of each command's own.
        account = box.folder / "account"
        text = account.read_text().replace(f"HOME={box.home}", "HOME=/run/account")
        bin_folder = str(tmp_path / "bin")
        text = text.replace(bin_folder, "/run/account/bin")
        account.write_text(text)
        os.chmod(account, 0o755)
        connection = connect()
        # Brought over before /tmp goes out of sight.
        made = connection.run(f"mkdir -p bin && cp {bin_folder}/python3 bin/")
        assert made.code == 0
        with_full_tmp = (
            'exec unshare -m sh -c "mount --bind /run/full /tmp && cd && exec sh -c \\"\\$SSH_ORIGINAL_COMMAND\\""\n'
        )
        account.write_text("\n".join(text.splitlines()[:-1]) + "\n" + with_full_tmp)
        connection = connect()
        full = connection.run("head -c 9000 /dev/zero > /tmp/y")
        assert full.code != 0
        assert deploy.install(connection, "box", agents.agent()).state == "new"
        assert answers(connection)
        assert "tmp-full" in {finding.name for finding in check.examine(connection, "box", None)}


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_home_of_somebody_else_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect) -> None:
    with boxes.box(tmp_path, monkeypatch) as box:
        box.home.chmod(0o500)
        try:
            with pytest.raises(faults.HomeNotWritable, match="chmod"):
                deploy.install(connect(), "box", agents.agent())
        finally:
            box.home.chmod(0o700)


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("sh: 1: cannot create /h/.x: Disk quota exceeded", faults.QuotaExceeded),
        ("sh: 1: cannot create /h/.x: Read-only file system", faults.ReadOnlyHome),
        ("sh: /h/.x: Permission denied", faults.HomeNotWritable),
        ("sh: /h/.x: No space left on device", faults.NoSpace),
        ("sh: /h/.x: Input/output error", faults.BoxFault),
    ],
)
def test_what_the_system_says_decides_the_fault(said: str, fault: type[Exception]) -> None:
    assert type(probe.not_writable("box", "/h", said)) is fault


def test_a_quota_that_ends_in_the_middle_is_named_and_nothing_is_left(
    box: sshd.Sshd, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's answer is put in its mouth, since quotas need a file system of their own."""
    text_of = far_side.text_of

    def over_quota(name: str) -> str:
        text = text_of(name)
        if name == "place.py":
            text += "\ndef _full(*_):\n    raise OSError(122, 'Disk quota exceeded', '/home/ada')\nos.fsync = _full\n"
        return text

    monkeypatch.setattr(far_side, "text_of", over_quota)
    with pytest.raises(faults.QuotaExceeded, match="quota -s"):
        deploy.install(connect(), "box", agents.agent())
    assert boxes.tree(box.home) == {}


def test_one_session_a_connection_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect, transport: str
) -> None:
    with boxes.box(tmp_path, monkeypatch, options=["MaxSessions 1"]) as box:
        whole_life(connect(transport), box)


def test_no_session_at_all_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect) -> None:
    with boxes.box(tmp_path, monkeypatch, options=["MaxSessions 0"]) as box:
        with pytest.raises(client.SessionRefused, match="MaxSessions"):
            deploy.install(connect(), "box", agents.agent())
        assert boxes.tree(box.home) == {}


def test_check_changes_nothing_and_knows_a_damaged_agent(box: sshd.Sshd, connect: Connect) -> None:
    connection, agent = connect(), agents.agent()
    check.examine(connection, "box", agent)
    assert boxes.tree(box.home) == {}
    deploy.install(connection, "box", agent)
    names = {finding.name: finding.level for finding in check.examine(connection, "box", agents.agent("2.0.0"))}
    assert names["other-version"] == "note"
    (box.home / boxes.FOLDER / f"versions/{agent.name}/relay/start.py").write_text("harm")
    names = {finding.name: finding.level for finding in check.examine(connection, "box", agent)}
    assert names["damaged"] == "problem"
    assert json.dumps([finding._asdict() for finding in check.examine(connection, "box", agent)])
