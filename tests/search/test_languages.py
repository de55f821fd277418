"""Identifiers, accents and scripts without spaces are found as people type them."""

from __future__ import annotations

import pytest

from tests.search.corpus import Library, add_all, tool, user

NAMES = ["resolveTerminalPath()", "TERMINAL_PATH=1", "terminal-path.ts", "src/terminal/path.rs", "a path to a terminal"]


@pytest.mark.parametrize("query", ["terminal path", "terminalPath", "terminal_path", "Terminal Path"])
def test_parts_of_identifiers(library: Library, query: str) -> None:
    add_all(library, NAMES)
    found = library.found(query)
    assert {"s1", "s2", "s3", "s4"} <= set(found)


def test_the_whole_identifier_ranks_above_its_parts(library: Library) -> None:
    add_all(
        library,
        ["resolveTerminalPath here", "use terminalPath here", "the terminal path here", "unrelated"] + ["x"] * 6,
    )
    assert library.found("terminalPath")[0] == "s2"


@pytest.mark.parametrize("query", ["terminalPath", "terminal_path", "terminal::path"])
def test_a_name_ranks_above_the_same_words_apart(library: Library, query: str) -> None:
    library.add(user("the terminal path here"))
    library.add(tool("resolveTerminalPath src/terminal-path.ts std::terminal::path and more output around it"))
    add_all(library, ["unrelated"] * 8)
    assert library.found(query) == ["s2", "s1"]


@pytest.mark.parametrize(
    "query, other",
    [
        ("->field", "the field field"),
        ("std::", "std std"),
        ("TODO:", "todo todo"),
        ("<div>", "div div"),
        ("f()", "f f"),
        ("*.py", "py py"),
        ("~/.bashrc", "bashrc bashrc"),
        ("../lib", "lib lib"),
        ("50%", "50 50"),
        ("--foo-bar", "--foo=bar --foo=bar"),
        ("terminal_path", "terminal/path terminal.path"),
        ("terminal/path", "TERMINAL_PATH terminal-path"),
        ("Terminal::path", "terminal->path terminalPath"),
        ("2.1.9", "v2.1.9 2-1-9"),
        ("v2.1.9", "2.1.9 v2/1/9"),
        ("ls ~/lib", "ls lib ls lib"),
    ],
)
def test_what_stands_as_typed_ranks_first_however_long_or_old_its_row(library: Library, query: str, other: str) -> None:
    typed = query.strip('"')
    library.add(tool(f"among much {'other output ' * 30} {typed} {'and more of it ' * 30}"))
    library.add(user(other))
    add_all(library, ["unrelated"] * 8)
    assert library.found(query)[:2] == ["s1", "s2"]


def test_a_version_is_found_with_and_without_its_letter(library: Library) -> None:
    add_all(library, ["release v2.1.9 today", "version 2.1.9 is out", "1 of 9", "v2.1.8"])
    assert library.found("2.1.9") == ["s2", "s1"]
    assert library.found("v2.1.9") == ["s1", "s2"]
    assert library.snippet("2.1.9") == "version [[2.1.9]] is out"


def test_pages_of_two_names_of_the_same_words_stay_apart(library: Library) -> None:
    add_all(library, ["a_b", "a/b", "a_b", "a/b"])
    cursor = library.search("a_b", limit=1)["page"]["cursor"]
    assert library.found("a/b", limit=2) == ["s4", "s2"]
    assert library.found("a_b", limit=1, cursor=cursor) == ["s1"]
    assert library.search("a/b", cursor=cursor) == {"kind": "malformed-cursor"}


@pytest.mark.parametrize(
    "query, text, other",
    [
        ("C++", "written in C++ mostly", "written in C mostly"),
        ("c#", "port it to C#", "the c compiler"),
        (".env", "read the .env file", "the env variable"),
        ("--no-verify", "git commit --no-verify", "verify no commit"),
        ("#1234", "closes #1234", "closes 12345"),
        ("v2.1.9", "release v2.1.9 today", "release v2.1.8 today"),
        ("::", "std::move", "std:move"),
        ("->", "ptr->next", "ptr - > next"),
        ("=>", "x => x + 1", "x = 1"),
        ("src/a/b.py", "open src/a/b.py", "open src/b/a.py"),
        ("package.json", "edit package.json", "the json of a package"),
        ("ABC-12", "see ABC-12", "see ABC-13"),
        ("foo.bar()", "call foo.bar() twice", "bar the foo"),
    ],
)
def test_as_typed(library: Library, query: str, text: str, other: str) -> None:
    add_all(library, [text, other])
    assert library.found(query) == ["s1"]
    assert "[[" in library.snippet(query)


@pytest.mark.parametrize(
    "query, text",
    [
        ("検索", "全文検索を改善する"), ("文検", "全文検索を改善する"), ("索", "全文検索"), ("终端路径",
        "修复终端路径的竞态"),
        ("React", "使用React框架"), ("react框架", "使用React框架"), ("パソコン", "ﾊﾟｿｺﾝで"), ("ﾊﾟｿｺﾝ", "パソコンで"),
        ("api", "ＡＰＩを呼ぶ"), ("ดสอ", "ทดสอบระบบ"), ("국어", "한국어로"), ("ပြည်", "မြန်မာပြည်"), ("が", "か\u3099"),
        ("cafe", "café"), ("café", "cafe\u0301"), ("cafe\u0301", "café"), ("strasse", "Straße"), ("STRAßE", "strasse"),
        ("istanbul", "İSTANBUL"), ("ISTANBUL", "ıstanbul"), ("naive", "naïve"), ("привет", "ПРИВЕТ"), ("שלום", "שָׁלוֹם"),
        ("हिन्दी", "यह हिन्दी है"), ("🚀", "ship it 🚀"), ("👩\u200d💻", "👩\u200d💻 at work"),
    ],
)  # fmt: skip
def test_any_language(library: Library, query: str, text: str) -> None:
    add_all(library, [text, "something else entirely"])
    assert library.found(query) == ["s1"]
    assert "[[" in library.snippet(query)


def test_characters_apart_are_no_match_for_a_run(library: Library) -> None:
    add_all(library, ["検と索", "検索"])
    assert library.found("検索") == ["s2"]


def test_a_run_nobody_wrote_falls_back_to_its_pairs(library: Library) -> None:
    add_all(library, ["修复终端", "路径竞态", "端口"])
    assert sorted(library.found("终端路径")) == ["s1", "s2"]


def test_rows_of_long_messages(library: Library) -> None:
    words = [f"word{number}" for number in range(4000)]
    library.add(user("first message"), user(" ".join(words)))
    for number in (0, 900, 2500, 3999):
        hit = library.search(f"word{number}")["hits"][0]
        assert f"[[word{number}]]" in hit["evidence"]["snippet"]
        assert hit["evidence"]["role"] == "user"
        assert hit["evidence"]["timestamp"] == "2026-03-01T00:00:00.000Z"
