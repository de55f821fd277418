"""Lines of JSON from any bytes: what ends a line, what is given, what is counted, and how little is held."""

from __future__ import annotations

import io
import json
import tracemalloc
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.transcripts import jsonl
from relay.transcripts.jsonl import Lines


def taken(raw: bytes, offset: int = 0, limit: Optional[int] = None) -> List[Dict[str, Any]]:
    return list(Lines(io.BytesIO(raw), offset, limit))


@pytest.mark.parametrize(
    ("raw", "records"),
    [
        (b"", []),
        (b'{"a":1}\n{"b":2}\n', [{"a": 1}, {"b": 2}]),
        (b'{"a":1}\r\n\r\n  \n{"b":2}\r\n', [{"a": 1}, {"b": 2}]),
        (b'\xef\xbb\xbf{"a":1}\n', [{"a": 1}]),
        ('{"a":"x\u0085y\u2028z"}\n'.encode(), [{"a": "x\u0085y\u2028z"}]),
        (b'{"a":"\x00\x1f\x0b"}\n', [{"a": "\x00\x1f\x0b"}]),
        (b'{"a":"\xff\xc3"}\n', [{"a": "\ufffd\ufffd"}]),
        (b'{"a":1}{"b":2} [3] {"c":4}\n', [{"a": 1}, {"b": 2}, {"c": 4}]),
        (b'{"a":1}{"torn":\n{"b":2}\n', [{"a": 1}, {"b": 2}]),
        (b'[1]\n7\n"x"\nnull\nno\n{"a":1}\n', [{"a": 1}]),
        (b'\x00\x00\x00{"a":1}\n', [{"a": 1}]),
        (b'  {"a":1}\n', [{"a": 1}]),
        (b'{"a":Infinity}\n', [{"a": float("inf")}]),
        (b'{"a":1}\n{"whole":2}', [{"a": 1}, {"whole": 2}]),
        (b'{"a":1}\n{"torn":{}', [{"a": 1}]),
    ],
)
def test_what_is_given(raw: bytes, records: List[Any]) -> None:
    assert taken(raw) == records


def test_what_is_counted_and_where_it_stops() -> None:
    lines = Lines(io.BytesIO(b'no\n{"a":1}\n[]\n\n{"b":'))
    assert (list(lines), lines.skipped, lines.offset, lines.torn) == ([{"a": 1}], 2, 15, True)
    lines = Lines(io.BytesIO(b'{"a":1}\n'))
    assert (list(lines), lines.skipped, lines.offset, lines.torn) == ([{"a": 1}], 0, 8, False)


TORN = '{"type":"user","m":{"role":"user","text":"a \\\\ \\" {\\"b\\": x"},"n":[{"c":1},{"c":2}],"end":true}'


@pytest.mark.parametrize("cut", range(1, len(TORN)))
def test_a_whole_record_behind_a_torn_one_is_read(cut: int) -> None:
    whole = '{"type":"user","n":{"d":[{"e":"{"}]}}'
    lines = Lines(io.BytesIO(f'{TORN[:cut]}{whole}\n{{"b":2}}\n'.encode()))
    found = list(lines)
    # Behind a sign that calls for a value, the whole record reads like a part of the torn one.
    if TORN[cut - 1] in ":,[" and not TORN.index("a ") < cut <= TORN.index(" x"):
        assert found == [{"b": 2}]
    else:
        assert (found, lines.skipped) == ([json.loads(whole), {"b": 2}], 1)


@pytest.mark.parametrize("cut", range(1, len(TORN)))
def test_a_part_of_a_torn_record_is_no_record(cut: int) -> None:
    lines = Lines(io.BytesIO(f'{TORN[:cut]}\n{{"b":2}}\n'.encode()))
    assert (list(lines), lines.skipped) == ([{"b": 2}], 1)
    lines = Lines(io.BytesIO(TORN[:cut].encode()))
    assert (list(lines), lines.torn, lines.offset) == ([], True, 0)


def test_a_line_of_many_glued_records_is_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "_DIRECT", 512)
    monkeypatch.setattr(jsonl, "_LINE_BUDGET", 512)
    monkeypatch.setattr(jsonl, "_KEPT_CAP", 1024)
    records = [{"n": n, "text": "é" * (n % 40)} for n in range(200)]
    raw = "".join(json.dumps(record, ensure_ascii=False) for record in records).encode()
    for behind in (b"\n", b"", b'{"torn": \n'):
        lines = Lines(io.BytesIO(raw + behind))
        assert (list(lines), lines.skipped, lines.oversized, lines.torn) == (records, int(len(behind) > 1), 0, False)
        assert lines.offset == len(raw + behind)
    lines = Lines(io.BytesIO(raw + b'{"torn": '))
    first = list(lines)
    assert lines.torn and 150 < len(first) < 200  # those near the torn one wait for it
    assert first + taken(raw + b'{"torn": 1}', lines.offset) == [*records, {"torn": 1}]
    gathered: List[Any] = []
    offset = 0
    while offset < len(raw):
        lines = Lines(io.BytesIO(raw), offset, 300)
        gathered += list(lines)
        offset = lines.offset
    assert gathered == records


def test_numbers_and_depths_that_python_refuses() -> None:
    (record,) = taken(b'{"a":1,"huge":' + b"9" * 100_000 + b"}\n")
    assert record == {"a": 1, "huge": float("inf")}
    deep = b'{"a":' * 200_000 + b"1" + b"}" * 200_000
    lines = Lines(io.BytesIO(deep + b'\n{"b":2}\n'))
    assert (list(lines), lines.skipped) == ([{"b": 2}], 1)


def test_a_limit_ends_behind_a_whole_line() -> None:
    raw = b'{"a":1}{"b":2}\n{"c":3}\n{"d":4}\n'
    lines = Lines(io.BytesIO(raw), 0, 1)
    assert (list(lines), lines.offset) == ([{"a": 1}, {"b": 2}], 15)
    lines = Lines(io.BytesIO(raw), 15, 9)
    assert (list(lines), lines.offset) == ([{"c": 3}, {"d": 4}], 31)


@given(st.lists(st.one_of(st.binary(max_size=40), st.just(b'{"a":1}'), st.just(b'{"b":"\xc3'))), st.integers(1, 60))
def test_portions_make_no_difference(pieces: List[bytes], limit: int) -> None:
    raw = b"\n".join(pieces)
    whole = Lines(io.BytesIO(raw))
    records, offset, skipped = list(whole), 0, 0
    gathered: List[Any] = []
    while True:
        lines = Lines(io.BytesIO(raw), offset, limit)
        gathered += list(lines)
        skipped += lines.skipped
        if lines.offset == offset:
            break
        offset = lines.offset
    assert (gathered, offset, skipped) == (records, whole.offset, whole.skipped)


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=30))), st.booleans())
def test_what_json_wrote_is_read(records: List[Dict[str, str]], ascii_only: bool) -> None:
    raw = "".join(json.dumps(record, ensure_ascii=ascii_only) + "\n" for record in records)
    assert taken(raw.encode("utf-8", "surrogatepass")) == json.loads(json.dumps(records)) or "\\ud" in repr(records)


def test_a_line_over_the_cap_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "LINE_CAP", 6 << 20)
    lines = Lines(io.BytesIO(b'{"a":"' + b"x" * (7 << 20) + b'"}\n{"b":2}\n{"c":"' + b"y" * (7 << 20)))
    assert (list(lines), lines.oversized, lines.skipped, lines.torn) == ([{"b": 2}], 1, 0, True)


ESCAPES = ["\\u00e9", "\\\\", '\\"', "é", "a ", "\\n", "\\/"]


@pytest.mark.parametrize("shift", range(7))
def test_a_long_line_keeps_the_start_of_its_strings(shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "_DIRECT", 4096)
    monkeypatch.setattr(jsonl, "_PIECE", 512)
    monkeypatch.setattr(jsonl, "_LINE_BUDGET", 16 << 10)
    monkeypatch.setattr(jsonl, "_PAYLOAD_BUDGET", 1024)
    raw = "x" * shift + "".join(ESCAPES) * 4_000
    line = f'{{"long":"{raw}","payload":"{"QUJD" * 5_000}","short":"kept","n":[1,{{"a":null}}]}}\n'.encode()
    (record,) = taken(line)
    text = json.loads(f'"{raw}"')
    kept, _, rest = record["long"].partition("[")
    assert text.startswith(kept) and len(kept) > 5_000 and rest.endswith(" bytes left out]")
    assert record["payload"].startswith("QUJDQUJD") and len(record["payload"]) < 2048
    assert (record["short"], record["n"]) == ("kept", [1, {"a": None}])


def test_the_longest_line_is_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    with open(path, "wb") as file:
        file.write(b'{"image":"')
        for _ in range(60):
            file.write(b"QUJD" * (1 << 18))
        file.write(b'","text":"after it"}\n{"next":1}\n')
    tracemalloc.start()
    try:
        found = [(sorted(record), record.get("text")) for record in jsonl.records(str(path))]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == [(["image", "text"], "after it"), (["next"], None)]
    assert peak < 32 << 20
