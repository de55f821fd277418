"""What a line asks, by the letter of JSON-RPC 2.0."""

from __future__ import annotations

import json
from typing import Any

import pytest

from relay.rpc import messages
from relay.rpc.messages import Call, Message, Refused, parse


def line(value: Any) -> bytes:
    return json.dumps(value).encode()


def request(**changes: Any) -> Any:
    value = {"jsonrpc": "2.0", "id": 1, "method": "m", **changes}
    return {name: part for name, part in value.items() if part is not ...}


def test_a_request() -> None:
    assert parse(line(request(params={"a": 1}))) == Message(False, [Call(1, "m", {"a": 1})], 0)
    assert parse(line(request())) == Message(False, [Call(1, "m", None)], 0)


@pytest.mark.parametrize("id", ["", "a", 0, -7, 10**50, 1.5, None, "\ud800"])
def test_strings_numbers_and_null_are_ids(id: Any) -> None:
    assert parse(line(request(id=id))).calls == [Call(id, "m", None)]


@pytest.mark.parametrize("text", ["true", "[]", "{}", "1e999", "9" * 500])
def test_other_ids_make_no_request(text: str) -> None:
    assert parse(b'{"jsonrpc":"2.0","method":"m","id":%s}' % text.encode()) == Message(False, [], 1)


def test_a_message_without_id_is_a_notification() -> None:
    assert parse(line(request(id=...))) == Message(False, [], 0)


@pytest.mark.parametrize(
    "value",
    [
        1,
        "x",
        None,
        {},
        request(jsonrpc=...),
        request(jsonrpc="1.0"),
        request(jsonrpc=2.0),
        request(method=...),
        request(method=1),
        request(method=None, id=...),
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ],
)
def test_not_a_request(value: Any) -> None:
    assert parse(line(value)) == Message(False, [], 1)


def test_a_batch() -> None:
    batch = [request(), 1, request(id=...), request(id="b"), []]
    assert parse(line(batch)) == Message(True, [Call(1, "m", None), Call("b", "m", None)], 2)


def test_an_empty_batch_is_an_invalid_request() -> None:
    with pytest.raises(Refused) as caught:
        parse(b"[]")
    assert caught.value.code == -32600


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"  ",
        b"{",
        b"hello",
        b"{}{}",
        b'{"a":NaN}',
        b"Infinity",
        b"-Infinity",
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b"\xef\xbb\xbf{}",
        b'"\x01"',
        "{}".encode("utf-16"),
        b"[" * 500_000,
        b'{"a":' * 100_000,
    ],
)
def test_a_line_that_is_no_json(data: bytes) -> None:
    with pytest.raises(Refused) as caught:
        parse(data)
    assert caught.value.code == -32700


def test_a_million_digits_are_read_at_once() -> None:
    assert parse(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"limit":%s}}' % (b"9" * 1_000_000)).calls[
        0
    ].params == {"limit": float("inf")}


def test_responses_are_one_line_of_ascii() -> None:
    frame = messages.result("\u2028\ud800", {"text": "a\nb\x1b[31m\u00e9\U0001f600\ud800"})
    assert b"\n" not in frame and b"\x1b" not in frame and frame.isascii()
    assert json.loads(frame) == {
        "jsonrpc": "2.0",
        "id": "\u2028\ud800",
        "result": {"text": "a\nb\x1b[31m\u00e9\U0001f600\ud800"},
    }


def test_errors_have_a_fixed_message_each() -> None:
    for code, text in messages.MESSAGES.items():
        assert json.loads(messages.error(7, code)) == {
            "jsonrpc": "2.0",
            "id": 7,
            "error": {"code": code, "message": text},
        }


def test_issues_are_data() -> None:
    issues = [{"path": "query", "message": "is required"}]
    answer = json.loads(messages.error(None, -32602, issues))
    assert answer["error"]["data"] == {"issues": issues}


@pytest.mark.parametrize("value", [float("nan"), object(), b"bytes"])
def test_a_result_that_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        messages.result(1, value)
