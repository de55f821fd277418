"""What names a host, and what does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.client.faults import UnknownHost
from relay.client.host_ids import HostId, parse


@pytest.mark.parametrize(
    "text, host",
    [
        ("local", HostId("local")),
        ("ssh:box", HostId("ssh", "box")),
        ("ssh:me@box.example:2222", HostId("ssh", "me@box.example:2222")),
        ("ssh:me%40box", HostId("ssh", "me@box")),
        ("ssh://me@box:22", HostId("ssh", "me@box:22")),
        ("ssh://box/", HostId("ssh", "box")),
        ("ssh:[::1]:22", HostId("ssh", "[::1]:22")),
        ("runtime:my%20pod", HostId("runtime", "my pod")),
        ("runtime:Gerät", HostId("runtime", "Gerät")),
    ],
)
def test_a_text_names_its_host(text, host):
    assert parse(text) == host


def test_an_id_is_written_as_other_clients_write_it():
    assert str(parse("ssh:me@box:22")) == "ssh:me%40box%3A22"
    assert parse("ssh:me%40box").label == "ssh:me@box"
    assert parse("runtime:50%25").label == "runtime:50%25"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "all",
        "box",
        "LOCAL",
        "local ",
        "ssh",
        "ssh:",
        "SSH:box",
        "ssh:-oProxyCommand=x",
        "ssh:me@-x",
        "ssh:a b",
        "ssh:me@",
        "ssh:@box",
        "ssh:box:0",
        "ssh:box:65536",
        "ssh://",
        "ssh:////box",
        "ssh:a%zz",
        "ssh:a%4",
        "ssh:%ff",
        "runtime:",
        "runtime:%00",
        "runtime:a%0Ab",
        "runtime:%20a",
        "runtime:\x1b[31m",
        "http://box",
        "ssh:" + "x" * 600,
        "local:x",
    ],
)
def test_any_other_text_is_refused(text):
    with pytest.raises(UnknownHost):
        parse(text)


@given(st.sampled_from(["ssh", "runtime"]), st.text(min_size=1, max_size=40))
def test_an_id_reads_back_as_the_same_host(kind, name):
    host = HostId(kind, name)
    try:
        read = parse(str(host))
    except UnknownHost:
        return
    assert read == host
    assert parse(read.label) == host


@given(st.text(max_size=60))
def test_no_text_breaks_the_reading(text):
    try:
        host = parse(text)
    except UnknownHost:
        return
    assert parse(str(host)) == host
