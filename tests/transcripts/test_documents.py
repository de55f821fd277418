"""JSON documents read member by member: the same values as ``json.loads``, in the memory of the largest one."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any, List, Tuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay.transcripts import documents
from relay.transcripts.types import Unreadable

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
any_path = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def members(path: Path, *streamed: str) -> List[Tuple[str, Any]]:
    return list(documents.members(str(path), *streamed))


@any_path
@given(
    st.dictionaries(st.text(), values, max_size=5),
    st.lists(values, max_size=5),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_the_members_are_what_json_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rest: Any, items: Any, indent: Any, ascii_only: bool
) -> None:
    monkeypatch.setattr(documents, "_CHUNK", 3)
    monkeypatch.setattr(documents, "_TORN", 1 << 20)
    path = tmp_path / "a.json"
    rest.pop("items", None)
    path.write_text(json.dumps({**rest, "items": items}, indent=indent, ensure_ascii=ascii_only), encoding="utf-8")
    assert members(path, "items") == [*rest.items(), *(("items", item) for item in items)]


def test_an_array_gives_its_items_without_a_name(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'\xef\xbb\xbf \r\n[1, {"a": [2]}, "\xff"]\n')
    assert members(path) == [("", 1), ("", {"a": [2]}), ("", "\ufffd")]
    assert list(documents.records(str(path))) == [("", {"a": [2]})]
    path.write_text("[]")
    assert members(path) == []
    path.write_text("{}")
    assert members(path) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "The document is empty."),
        (" \n", "The document is empty."),
        ("12", "The document is no JSON object or array."),
        ('{"a": 1', "The document ends early."),
        ('{"a": [1, 2', "The document ends early."),
        ('{"a": "tex', "The document ends early."),
        ('{"a"', "The document ends early."),
        ("{'a': 1, 'some more text that is no JSON at all': 2}", "The document is not valid JSON."),
        ('{"a" 1}', "The document is not valid JSON."),
        ('{"a": 1 "b": 2}', "The document is not valid JSON."),
        ("{1: 2}", "The document is not valid JSON."),
        ('{"a": ' + "[" * 200_000, "The document holds a value that cannot be decoded."),
    ],
)
def test_a_broken_document_says_what_is_wrong(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(Unreadable) as caught:
        members(path, "a")
    assert caught.value.reason == reason


def test_a_value_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "VALUE_LIMIT", 1 << 20)
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"messages": ["x" * 1000] * 5000}))
    assert len(members(path, "messages")) == 5000
    with pytest.raises(Unreadable, match="a value over 1 MiB"):
        members(path)


def test_memory_does_not_follow_the_document(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"messages": [{"text": "word " * 200}] * 20_000}))
    tracemalloc.start()
    try:
        assert sum(1 for _ in documents.members(str(path), "messages")) == 20_000
        assert tracemalloc.get_traced_memory()[1] < 4 << 20 < path.stat().st_size
    finally:
        tracemalloc.stop()


def test_a_sidecar_that_is_absent_or_broken_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    assert documents.sidecar(str(path)) is None
    path.write_text('{"title": "x"')
    assert documents.sidecar_object(str(path)) == {}
    path.write_text('["x"]')
    assert documents.sidecar_object(str(path)) == {}
    path.write_bytes(b'\xef\xbb\xbf{"title": "x"}')
    assert documents.sidecar_object(str(path)) == {"title": "x"}
    monkeypatch.setattr(documents, "SIDECAR_LIMIT", 4)
    assert documents.sidecar(str(path)) is None
