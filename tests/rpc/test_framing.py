"""Lines out of a byte stream, however it is portioned."""

from __future__ import annotations

from typing import List, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.rpc.framing import LINE_LIMIT, LineDecoder


def lines(*portions: bytes, limit: int = 8) -> List[Optional[bytes]]:
    decoder = LineDecoder(limit)
    found = [line for portion in portions for line in decoder.decode(portion)]
    return found + decoder.flush()


def test_a_line_is_given_when_it_is_whole() -> None:
    decoder = LineDecoder()
    assert decoder.decode(b'{"a"') == []
    assert decoder.decode(b":1}\n{") == [b'{"a":1}']
    assert decoder.flush() == [b"{"]


@pytest.mark.parametrize(
    ("stream", "found"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a\r\nb\n", [b"a", b"b"]),
        (b"a\rb\n", [b"a\rb"]),
        (b"a\r\r\n", [b"a\r"]),
        (b"a\n\nb", [b"a", b"", b"b"]),
        (b"12345678\n", [b"12345678"]),
        (b"12345678\r\n", [b"12345678"]),
        (b"123456789\n", [None]),
        (b"123456789", [None]),
        (b"12345678\r", [b"12345678"]),
        (b"1234567890123\nok\n", [None, b"ok"]),
        (b"1234567890123", [None]),
    ],
)
def test_ends_and_limits(stream: bytes, found: List[Optional[bytes]]) -> None:
    assert lines(stream) == found


def test_the_limit_is_a_mebibyte() -> None:
    assert lines(b"x" * (1 << 20), b"\n", limit=LINE_LIMIT) == [b"x" * (1 << 20)]
    assert lines(b"x" * ((1 << 20) + 1), b"\n", limit=LINE_LIMIT) == [None]


def test_a_line_over_the_limit_is_told_once_and_never_held() -> None:
    decoder = LineDecoder(1000)
    told = [line for _ in range(10_000) for line in decoder.decode(b"x" * 100)]
    assert told == [None]
    assert len(decoder._line) == 0
    assert decoder.decode(b"\nnext\n") == [b"next"]


STREAMS = st.lists(st.sampled_from([b"\n", b"\r", b"a", b"bcd", b"12345678"])).map(b"".join)


@given(STREAMS, st.lists(st.integers(0, 40)))
def test_portions_do_not_matter(stream: bytes, cuts: List[int]) -> None:
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    assert lines(*(stream[start:end] for start, end in zip(places, places[1:]))) == lines(stream)
