"""Commands as streams: they end, with their process group, when they are closed."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from relay.client.command import CommandStreams
from relay.client.faults import Unreachable


def gone(pid):
    """Whether a process ends within 5 s (a zombie nobody waits for counts)."""
    for _ in range(500):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def read_line(streams):
    data = b""
    while not data.endswith(b"\n"):
        piece = streams.read1(100)
        assert piece
        data += piece
    return data


def test_an_argument_list_is_run_without_a_shell():
    streams = CommandStreams(("printf", "%s", "$HOME; a  b"))
    assert streams.read1(100) == b"$HOME; a  b"
    assert streams.read1(100) == b""
    assert streams.exit_code(5) == 0
    streams.close()


def test_a_line_is_run_by_the_shell():
    streams = CommandStreams("cat | tr a-z A-Z; exit 4")
    streams.write(b"word\n")
    streams._stdin.close()
    assert read_line(streams) == b"WORD\n"
    assert streams.exit_code(5) == 4
    streams.close()


def test_closing_ends_the_group_of_the_command():
    streams = CommandStreams("trap '' TERM HUP; sleep 60 & echo $!; echo $$; wait; wait; sleep 60")
    pids = read_line(streams)
    while pids.count(b"\n") < 2:
        pids += read_line(streams)
    streams.close()
    streams.close()
    assert all(gone(int(pid)) for pid in pids.split())
    assert streams.read1(10) == b""
    with pytest.raises(OSError):
        streams.write(b"x")


def test_a_child_in_a_session_of_its_own_sees_the_end_of_stdin():
    child = "import os, sys; os.setsid(); print(os.getpid(), flush=True); sys.stdin.read()"
    streams = CommandStreams(
        (sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])")
    )
    pid = int(read_line(streams))
    streams.close()
    assert gone(pid)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at processes through /proc")
def test_no_command_outlives_its_program():
    code = """if True:
        from relay.client.command import CommandStreams
        streams = CommandStreams("trap '' TERM; echo $$; cat >/dev/null; sleep 60")
        print(streams.read1(100).decode())
    """
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    assert gone(int(result.stdout))


def test_stderr_is_kept_to_its_end_only():
    streams = CommandStreams("seq 100000 >&2; echo done")
    assert streams.read1(100) == b"done\n"
    assert streams.stderr_tail().endswith(b"100000\n")
    assert len(streams.stderr_tail()) <= 4096
    streams.close()


def test_a_command_killed_by_a_signal_has_the_shells_code():
    streams = CommandStreams(("sh", "-c", "kill -9 $$"))
    assert streams.read1(10) == b""
    assert streams.exit_code(5) == 137
    streams.close()


@pytest.mark.parametrize("command", [("/no/such/program",), ("/",), ("a\0b",)])
def test_what_cannot_be_started(command):
    with pytest.raises(Unreachable, match="cannot be started"):
        CommandStreams(command)


def test_nothing_stays_open():
    code = """if True:
        import os
        from relay.client.command import CommandStreams
        before = len(os.listdir("/dev/fd"))
        for _ in range(5):
            streams = CommandStreams(("cat",))
            streams.close()
            streams._end()
        print(len(os.listdir("/dev/fd")) - before)
    """
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True).stdout == b"0\n"
