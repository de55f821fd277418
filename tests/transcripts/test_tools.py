"""What every reader uses: times, titles, text without base64, quoting, and patterns of paths."""

from __future__ import annotations

import base64
import os
import subprocess
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.transcripts import content, globs, resume, times, titles
from relay.transcripts.registry import Env

T = 1_777_708_800_000  # 2026-05-02T08:00:00Z


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (T, T),
        (T / 1000, T),
        (T // 1000, T),
        (str(T // 1000), T),
        (f"{T // 1000}.5", T + 500),
        (T * 1000, T),
        (T * 1_000_000, T),
        ("2026-05-02T08:00:00Z", T),
        ("2026-05-02T08:00:00.1Z", T + 100),
        ("2026-05-02T08:00:00.123456789Z", T + 123),
        ("2026-05-02T10:00:00.123+02:00", T + 123),
        ("2026-05-02T03:30:00-0430", T),
        ("2026-05-02 08:00:00", T),
        ("2026-05-02T08:00Z", T),
        ("2026-05-02", T - 8 * 3_600_000),
        ("1970-01-01T00:00:00Z", None),
        ("2999-01-01T00:00:00Z", None),
        ("2026-13-40T08:00:00Z", None),
        ("2026-05-02T08:xx:00.000Z", None),
        ("soon", None),
        ("", None),
        (0, None),
        (-5, None),
        (True, None),
        (None, None),
        ([], None),
        (float("nan"), None),
        (float("inf"), None),
        (10**400, None),
    ],
)
def test_times(value: Any, expected: Optional[int]) -> None:
    assert times.millis(value) == expected
    assert times.millis(value) == expected  # what was learnt of a day changes nothing


def test_local_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-2")
    time.tzset()
    try:
        assert times.millis("2026-05-02 10:00:00", local=True) == T
        assert times.millis("2026-05-02T08:00:00Z", local=True) == T
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("  a\n b\tc ", "a b c"),
        ("x" * 200, "x" * 95 + "…"),
        ("a\0b", "a b"),
        ("", ""),
        (None, ""),
    ],
)
def test_titles(text: Optional[str], shown: str) -> None:
    assert titles.title(text) == shown


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("plain", "plain"),
        ("\ufeff <system-reminder>a\nb</system-reminder> typed", "typed"),
        ("typed <goal_context x='1'>never closed", "typed"),
        ("# AGENTS.md instructions for /w", ""),
        ("<INSTRUCTIONS>x", ""),
        ("<env>x</env><env>y</env> typed", "typed"),
        ("about the <env> tag", "about the <env> tag"),
        ("1 < 2", "1 < 2"),
    ],
)
def test_what_was_typed(text: str, typed: str) -> None:
    assert titles.visible(text, titles.leading("env")) == typed


PNG = base64.b64encode(bytes(range(256)) * 40).decode()


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ("as it is", "as it is"),
        ({"type": "text", "text": "one"}, "one"),
        ([{"type": "input_text", "text": "one"}, "two", {"text": "three"}], "one\ntwo\nthree"),
        ({"type": "thinking", "thinking": "no"}, ""),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            "[image image/png 10240]",
        ),
        ({"type": "input_image", "image_url": f"data:image/jpeg;base64,{PNG}"}, "[image image/jpeg 10240]"),
        ({"type": "image_url", "image_url": {"url": "https://a/b.png"}}, "[image image]"),
        ({"type": "image", "data": "QUJDRA==", "mimeType": "image/gif"}, "[image image/gif 4]"),
        ({"inlineData": {"mimeType": "image/webp", "data": "QUJD"}}, "[image image/webp 3]"),
        ({"type": "document", "source": {"type": "text", "data": "a page"}}, "a page"),
        (f"see data:image/png;base64,{PNG} here", "see [image image/png 10240] here"),
        (f"key: {PNG} end", "key: [base64 10240] end"),
        (base64.encodebytes(bytes(range(256)) * 2).decode().replace("\n", "\r\n") + "end", "[base64 512]\r\nend"),
        ("\n".join("0123456789abcdef" * 4 for _ in range(9)), "\n".join("0123456789abcdef" * 4 for _ in range(9))),
        ("a" * 400, "a" * 400),
        ("0123456789abcdef" * 30, "0123456789abcdef" * 30),
        ("half \ud83d of a pair", "half ? of a pair"),
        ("\ud83d\ude00", "\U0001f600"),
        ([None, 3, {"type": 7}], ""),
        (None, ""),
    ],
)
def test_text_of_blocks(block: Any, text: str) -> None:
    assert content.text_of(block) == text


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("Bash", {"command": "ls -l"}, "Bash command: ls -l"),
        ("shell", '{"command": ["rg", "-n", "x y"]}', "shell command: rg -n x y"),
        ("Edit", {"path": "a", "edits": [{"old": "x\ty", "new": None}], "all": True}, "Edit\npath: a\nold: x\ty"),
        ("patch", "*** Begin\n+ line", "patch\n*** Begin\n+ line"),
        ("none", {}, "none"),
        (None, None, ""),
        ("Write", {"image": f"data:image/png;base64,{PNG}"}, "Write image: [image image/png 10240]"),
    ],
)
def test_tool_calls(name: Any, arguments: Any, text: str) -> None:
    assert content.call_text(name, arguments) == text


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("plain", "plain"),
        ('[{"type":"text","text":"inside"}]', "inside"),
        ('{"stdout":"a","exit":0}', "stdout: a\nexit: 0"),
        ("{not json", "{not json"),
        ([{"type": "text", "text": ""}], ""),
        (
            [{"type": "search_result", "url": "https://a", "title": "A"}],
            "type: search_result\nurl: https://a\ntitle: A",
        ),
        (None, ""),
    ],
)
def test_tool_outputs(output: Any, text: str) -> None:
    assert content.output_text(output) == text


def test_no_more_is_made_of_a_tools_text_than_is_kept() -> None:
    for output in (
        "x y " * 1_000_000,
        ["x y " * 500_000] * 3,
        {"a": ["x y z"] * 100_000},
        [{"text": "x " * 10_000}] * 99,
    ):
        assert 3_072 <= len(content.output_text(output)) < 10_000


def test_nesting_beyond_the_stack() -> None:
    value: Any = "deep"
    for _ in range(100_000):
        value = {"a": [value]}
    assert content.flatten(value) in ("a: deep", "")


@given(st.text())
def test_any_text_can_be_stored(text: str) -> None:
    content.clean(text).encode("utf-8")


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")), max_size=4))
def test_a_shell_takes_the_words_back(words: List[str]) -> None:
    line = resume.command("printf", "%s\\0", *words, env={"A": "it's"})
    out = subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=True).stdout
    assert out == "".join(word + "\0" for word in words or [""]).encode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("path", "anchor"),
    [
        ("app/s.jsonl", "app/s.jsonl"),
        ("app/s.json", None),
        ("s.jsonl", None),
        ("app/x/s.jsonl", None),
        ("app/workspace.yaml", "app/events.jsonl"),
        ("app/x/deep/y/agent-1.log", "app/x/deep/y/agent-1.log"),
        ("app/x/deep/agent-1.log", "app/x/deep/agent-1.log"),
        ("app/never.jsonl", None),
        ("5e0c0000-1111-4222-8333-000000000001.txt", "5e0c0000-1111-4222-8333-000000000001.txt"),
        ("5e0c0000-1111.txt", None),
        ("c0ff0000111142228333000000000001.hex", "c0ff0000111142228333000000000001.hex"),
        ("state.db-wal", "state.db"),
        ("s1.sqlite", "s1.sqlite"),
    ],
)
def test_paths(path: str, anchor: Optional[str]) -> None:
    paths = globs.Paths(
        "*/*.jsonl", ("*/workspace.yaml", "{0}/events.jsonl"), "*/*/deep/**/agent-?.log", "<uuid>.txt", "<hex>.hex",
        ("*.db-wal", "{0}.db"), "s[0-9].sqlite", never=("*/never.*", "node_modules"),
    )  # fmt: skip
    assert paths.claim(path) == anchor
    assert paths.descend("app") and paths.descend("app/x") and paths.descend("app/x/deep/any/where")
    assert not paths.descend("app/x/other") and not paths.descend("node_modules")


HOMES = globs.homes("$A_HOME", "$A_ROOT/data", "$XDG_DATA_HOME/a", "~/.a", "darwin:~/Library/a")


@pytest.mark.parametrize(
    ("variables", "platform", "found"),
    [
        ({}, "linux", [("/h/.local/share/a", True), ("/h/.a", True)]),
        ({}, "darwin", [("/h/.local/share/a", True), ("/h/.a", True), ("/h/Library/a", True)]),
        ({"XDG_DATA_HOME": "/x"}, "linux", [("/x/a", True), ("/h/.a", True)]),
        ({"A_HOME": "/b/"}, "linux", [("/b", False)]),
        ({"A_HOME": "~/b"}, "linux", [("/h/b", False)]),
        ({"A_HOME": "relative", "A_ROOT": "/r"}, "linux", [("/r/data", False)]),
    ],
)
def test_homes(variables: Dict[str, str], platform: str, found: List[Tuple[str, bool]]) -> None:
    assert HOMES(Env("/h", variables, platform)) == found


def test_the_time_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    os.utime(tmp_path / "a", (T / 1000, T / 1000))
    assert times.modified(str(tmp_path / "a")) == T
    assert times.modified(str(tmp_path / "b")) is None


@pytest.mark.parametrize(
    "typed, title",
    [
        ("fix it\n[image image/png 2058]", "fix it"),
        ("[image image/png 2058]", ""),
        ("[image image] see there", "see there"),
        ("draw an [image of a cat]", "draw an [image of a cat]"),
    ],
)
def test_a_picture_is_no_title(typed: str, title: str) -> None:
    assert titles.prompt(typed) == title
