"""The engine finds what the slow model finds, over thousands of generated corpora and queries."""

from __future__ import annotations

import random
from pathlib import Path
from typing import List, Optional

import pytest

from tests.search.corpus import HOUR, START, Library
from tests.search.model import Model, Told

WORDS = (
    "reattach race terminal path resolve config session worker queue timeout retry cache index search merge branch "
    "commit error failed the a of in is and to when"
).split()
LITERAL = (
    "resolveTerminalPath TERMINAL_PATH terminal-path.ts src/terminal/path.rs workerQueue HTTPServer C++ c# .env "
    "--no-verify #1234 v2.1.9 std::queue a->b x!=y ABC-12 TypeError: café Straße naïve x[[0]]"
).split()
RUNS = ("終端路徑", "検索索引", "修复竞态", "テスト", "한국어", "React框架", "ｷｬｯｼｭ", "ทดสอบ")
FOLDERS = ("/home/dev/relay", "/home/dev/relay/client", "/home/dev/other", "/srv/Data_1", None)
AGENTS = ("claude", "codex", "gemini")


def sentence(source: random.Random) -> str:
    """Words, names and runs as people and tools write them."""
    said = []
    for _ in range(source.randint(1, 9)):
        pool = source.choices((WORDS, LITERAL, RUNS), (6, 2, 1))[0]
        said.append(source.choice(pool))
    return source.choice((" ", " ", ", ", "\n")).join(said)


def told(source: random.Random, number: int) -> Told:
    """A session of a few messages; one in ten no longer answers, one in six is a fork."""
    roles = ("user", "assistant", "tool", "system")
    messages = [(source.choice(roles), sentence(source)) for _ in range(source.randint(1, 4))]
    lineage = f"line{source.randrange(3)}" if source.random() < 0.17 else None
    return Told(
        f"s{number}", "claude" if lineage else source.choice(AGENTS), source.choice(FOLDERS),
        source.choice((None, START + source.randrange(50) * HOUR)), messages, source.random() > 0.1, lineage,
    )  # fmt: skip


def misspelt(source: random.Random, word: str) -> str:
    """One letter dropped, doubled or changed."""
    at = source.randrange(len(word))
    return word[:at] + source.choice(("", word[at] * 2, "q")) + word[at + 1 :]


def question(source: random.Random, sessions: List[Told]) -> str:
    """A query made of what is there, of what is not, and of operators."""
    kind = source.random()
    if kind < 0.25:
        text = source.choice(source.choice(sessions).messages)[1].split()
        start = source.randrange(len(text))
        words = text[start : start + source.randint(1, 4)]
    elif kind < 0.45:
        words = [misspelt(source, source.choice(WORDS)) for _ in range(source.randint(1, 2))]
        words.append(source.choice(WORDS + LITERAL))
    else:
        words = [source.choice(source.choice((WORDS, LITERAL, RUNS))) for _ in range(source.randint(1, 4))]
        words = [word[: source.randint(1, len(word))] if source.random() < 0.2 else word for word in words]
    if source.random() < 0.15:
        words = ['"', *words, '"']
    if source.random() < 0.2:
        operators = ("repo:rel", "repo:DATA_", "path:/home/dev/relay", "path:dev/o", 'PATH:"home"', "repo:", "path:%")
        words.insert(0, source.choice(operators))
    return " ".join(words).replace('" ', '"', 1).replace(' "', '"') if words[0] == '"' else " ".join(words)


@pytest.mark.parametrize("seed", range(120))
def test_same_hits_as_the_model(seed: int, tmp_path: Path) -> None:
    source = random.Random(seed)
    library = Library(tmp_path)
    sessions = [told(source, number) for number in range(source.randint(1, 24))]
    for session in sessions:
        key = library.add(
            *session.messages, id=session.id, agent=session.agent, cwd=session.cwd, updated_at=session.updated_at,
            lineage=session.lineage, commit=False,
        )  # fmt: skip
        if not session.live:
            library.writer.hide_sessions("id = ?", (key,))
    library.writer.commit()
    model = Model(sessions)
    by_id = {session.id: session for session in sessions}
    for _ in range(30):
        text = question(source, sessions)
        scope = source.choice(("all", "conversation"))
        agents = tuple(source.sample(AGENTS, 2)) if source.random() < 0.2 else ()
        paths = (source.choice(("/home/dev/relay", "/home/dev/", "/srv")),) if source.random() < 0.2 else ()
        since: Optional[int] = START + 20 * HOUR if source.random() < 0.15 else None
        sort = source.choice(("relevance", "newest"))
        route, expected = model.find(text, scope, agents, paths, since)
        answer = library.search(text, scope=scope, agents=agents, scope_paths=paths, since=since, sort=sort, limit=100)
        found = [by_id[hit["sessionId"]] for hit in answer["hits"]]
        names = [session.lineage or session.id for session in found]
        assert len(set(names)) == len(names), text
        assert (answer["debug"]["route"], set(names)) == (route, expected), (text, scope, agents, paths, since)
    library.close()
