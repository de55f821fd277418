"""Pi and the agents made from it: the tree of entries, titles on the first line, archives, subagents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest

from relay.transcripts import tree
from relay.transcripts.types import Message, Session
from tests.support.transcript_sources import lines, read, sources, text, unknown

T = 1_772_449_200_000  # 2026-03-02T11:00:00Z
SID = "7b0e0000-1111-4222-8333-000000000001"
STAMP = "2026-03-02T11-00-00-000Z"
HEADER = {"type": "session", "version": 3, "id": SID, "timestamp": "2026-03-02T11:00:00.000Z", "cwd": "/w/app"}
FILE = f".pi/agent/sessions/--w-app--/{STAMP}_{SID}.jsonl"


def entry(own: str, parent: Optional[str], kind: str = "message", second: int = 1, **more: Any) -> Dict[str, Any]:
    return {"type": kind, "id": own, "parentId": parent, "timestamp": f"2026-03-02T11:00:{second:02}.000Z", **more}


def user(own: str, parent: Optional[str], words: Any, second: int = 1) -> Dict[str, Any]:
    return entry(own, parent, second=second, message={"role": "user", "content": words})


def reply(own: str, parent: Optional[str], *blocks: Any, second: int = 1) -> Dict[str, Any]:
    return entry(own, parent, second=second, message={"role": "assistant", "content": list(blocks), "model": "m"})


def said(words: str) -> Dict[str, str]:
    return {"type": "text", "text": words}


def result(own: str, parent: str, words: str, role: str = "toolResult", **more: Any) -> Dict[str, Any]:
    return entry(own, parent, message={"role": role, "content": [said(words)], **more})


def one(home: Path, *records: Any, agent: str = "pi", file: str = FILE) -> Tuple[Session, List[Message]]:
    path = lines(home / file, *records)
    (source,) = [found for found in sources(agent, home) if found.path == str(path)]
    ((session, messages),) = read(source).values()
    return session, messages


def words(messages: List[Message]) -> List[str]:
    return [message.text for message in messages]


def test_an_ordinary_session(tmp_path: Path) -> None:
    session, messages = one(
        tmp_path,
        HEADER,
        entry("m0", None, "model_change", provider="p", modelId="m"),
        user("u1", "m0", [said("list"), {"type": "image", "data": "QUJDRA==", "mimeType": "image/png"}], 4),
        reply("a1", "u1", {"type": "thinking", "thinking": "hm"}, said("I look."),
              {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}}, second=5),
        result("t1", "a1", "a.py"),
        entry("b1", "t1", message={"role": "bashExecution", "command": "pwd", "output": "/w/app"}),
        entry("k1", "b1", "compaction", summary="We listed."),
        entry("x1", "k1", "custom_message", content="shown", display=True),
        entry("x2", "x1", "custom_message", content="hidden", display=False),
        entry("n1", "x2", "session_info", name="Listing"),
    )  # fmt: skip
    assert session.lineage is not None
    session.lineage = None
    assert session == Session(
        SID,
        "Listing",
        cwd="/w/app",
        created_at=T,
        updated_at=T + 5000,
        message_count=2,
        resume=f"pi --session {tmp_path / FILE}",
    )
    assert messages == [
        Message(0, "user", "list\n[image image/png 4]", T + 4000),
        Message(1, "assistant", "I look.", T + 5000),
        Message(2, "tool", "bash command: ls", T + 5000),
        Message(3, "tool", "a.py", T + 1000),
        Message(4, "tool", "bash pwd\n/w/app", T + 1000),
        Message(5, "system", "We listed.", T + 1000),
        Message(6, "system", "shown", T + 1000),
    ]


TREE = [
    HEADER,
    user("u1", None, "start"),
    reply("a1", "u1", said("Ready.")),
    user("u2", "a1", "left road"),
    reply("a2", "u2", said("Left.")),
    user("u3", "a1", "right road"),
    reply("a3", "u3", said("Right.")),
]


def test_only_the_active_branch_answers(tmp_path: Path) -> None:
    session, messages = one(tmp_path, *TREE)
    assert (words(messages), session.message_count) == (["start", "Ready.", "right road", "Right."], 4)


def test_a_branch_that_was_left_can_be_gone_back_to(tmp_path: Path) -> None:
    session, messages = one(tmp_path, *TREE, user("u4", "a2", "further left"), reply("a4", "u4", said("Far left.")))
    assert words(messages) == ["start", "Ready.", "left road", "Left.", "further left", "Far left."]
    assert session.message_count == 6


def test_a_new_root_begins_anew(tmp_path: Path) -> None:
    session, messages = one(tmp_path, *TREE, user("u9", None, "another start"))
    assert (session.title, words(messages)) == ("another start", ["another start"])


def test_going_back_further_than_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_KEPT", 2)
    chain = [user(f"c{n}", f"c{n - 1}" if n else None, f"turn {n}") for n in range(20)]
    session, messages = one(tmp_path, HEADER, *chain, user("back", "c3", "from the fourth on"))
    assert words(messages) == ["turn 0", "turn 1", "turn 2", "turn 3", "from the fourth on"]
    assert (session.message_count, session.title) == (5, "turn 0")


def test_parents_that_do_not_exist_make_it_a_list(tmp_path: Path) -> None:
    _, messages = one(
        tmp_path, HEADER, user("u1", SID, "one"), user("u2", "toolcall", "two"), user("u3", "u1", "three")
    )
    assert words(messages) == ["one", "two", "three"]


def test_the_first_version_had_no_ids(tmp_path: Path) -> None:
    plain = [{"type": "message", "timestamp": "2026-03-02T11:00:01Z", "message": {"role": "user", "content": text_}}
             for text_ in ("one", "two")]  # fmt: skip
    session, messages = one(tmp_path, {**HEADER, "version": 1}, *plain)
    assert (words(messages), session.lineage) == (["one", "two"], None)


def test_a_fork_shares_its_lineage(tmp_path: Path) -> None:
    fork = {**HEADER, "id": "fork", "parentSession": "/elsewhere.jsonl"}
    other = one(tmp_path, fork, *TREE[1:3], file=FILE.replace(SID, "fork"))[0]
    assert one(tmp_path, *TREE)[0].lineage == other.lineage is not None
    assert other.session_id == "fork"


def test_the_variable_may_name_the_sessions_folder_itself(tmp_path: Path) -> None:
    lines(tmp_path / "kept/--w-app--/x_1.jsonl", HEADER, user("u1", None, "hello"))
    (source,) = sources("pi", tmp_path, {"PI_CODING_AGENT_DIR": str(tmp_path / "kept")})
    ((session, _),) = read(source).values()
    assert session.resume == f"PI_CODING_AGENT_DIR={tmp_path}/kept pi --session {source.path}"


def test_a_broken_file_gives_what_can_be_read(tmp_path: Path) -> None:
    path = lines(
        tmp_path / FILE,
        user("u1", None, "before the header"),
        "{torn",
        entry("m1", "u1", message="no object"),
        entry("m2", "m1", message={"role": "narrator", "content": "?"}),
        entry("m3", "m2", "from_an_extension"),
        reply("a1", "m3", said(""), {"type": "toolCall"}, 7),
    )
    (source,) = sources("pi", tmp_path)
    ((session, messages),) = read(source).values()
    assert (session.session_id, words(messages), source.path) == (SID, ["before the header"], str(path))
    assert unknown(source) == 3


# -- OMP

OMP = f".omp/agent/sessions/-w-app/{STAMP}_{SID}.jsonl"


def slot(title: str, source: str = "auto") -> str:
    record = {
        "type": "title",
        "v": 1,
        "title": title,
        "source": source,
        "updatedAt": "2026-03-02T11:00:00.000Z",
        "pad": "",
    }
    record["pad"] = " " * (255 - len(json.dumps(record)))
    return json.dumps(record)


@pytest.mark.parametrize(
    ("records", "title"),
    [
        ([HEADER], "hello"),
        ([{**HEADER, "title": "In the header"}], "In the header"),
        ([slot("In the slot"), {**HEADER, "title": "In the header"}], "In the slot"),
        ([slot(""), {**HEADER, "title": "Mine", "titleSource": "user"}], "Mine"),
        ([slot("Made"), HEADER, entry("t1", None, "title_change", title="Given", source="user")], "Given"),
        ([HEADER, entry("t1", None, "session_info", name="Named")], "Named"),
    ],
)
def test_where_omp_keeps_the_title(tmp_path: Path, records: List[Any], title: str) -> None:
    session, _ = one(tmp_path, *records, user("u1", None, "hello"), agent="omp", file=OMP)
    assert (session.title, session.session_id) == (title, SID)
    assert session.resume == f"omp --resume {tmp_path / OMP}"


def test_omp_entries_of_its_own_are_known(tmp_path: Path) -> None:
    own = ("model_usage", "service_tier_change", "reset_boundary", "archive", "session_init", "mode_change")
    lines(tmp_path / OMP, HEADER, *(entry(kind, None, kind) for kind in own), user("u1", None, "hello"))
    (source,) = sources("omp", tmp_path)
    assert unknown(source) == 0


def test_omp_subagents_lie_below_their_parent(tmp_path: Path) -> None:
    parent = tmp_path / OMP
    lines(parent, HEADER, user("u1", None, "delegate"))
    below = parent.with_suffix("")
    lines(below / "Searcher.jsonl", {**HEADER, "id": "s1"}, user("u1", None, "search"))
    lines(below / "Searcher/Deeper.jsonl", {**HEADER, "id": "s2"}, user("u1", None, "deeper"))
    text(below / "0.bash.log", "log")
    found = {id_: session for source in sources("omp", tmp_path) for id_, (session, _) in read(source).items()}
    assert {id_: (session.title, session.parent_id) for id_, session in found.items()} == {
        SID: ("delegate", None),
        "s1": ("Searcher", SID),
        "s2": ("Deeper", SID),
    }
    assert found["s2"].resume == f"omp --resume {parent}"


def test_a_broken_omp_title_is_no_title(tmp_path: Path) -> None:
    session, _ = one(
        tmp_path, '{"type":"title","title":"torn', {"type": "title", "title": 7}, HEADER, user("u1", None, "hello"),
        agent="omp", file=OMP,
    )  # fmt: skip
    assert session.title == "hello"


# -- Prime Agent


def test_prime_agent_is_read_as_pi(tmp_path: Path) -> None:
    file = f".prime-agent/sessions/--w-app--/{STAMP}_{SID}.jsonl"
    session, messages = one(tmp_path, *TREE, agent="prime-agent", file=file)
    assert (session.resume, session.message_count) == (f"prime-agent --session {tmp_path / file}", 4)
    assert words(messages) == ["start", "Ready.", "right road", "Right."]


def test_prime_agent_variable_and_broken_lines(tmp_path: Path) -> None:
    lines(tmp_path / "p/sessions/a.jsonl", "[]", "nothing", user("u1", "gone", "still here"), entry("e", "u1", "odd"))
    (source,) = sources("prime-agent", tmp_path, {"PRIME_AGENT_DIR": str(tmp_path / "p")})
    ((session, messages),) = read(source).values()
    assert (session.session_id, words(messages), unknown(source)) == ("a", ["still here"], 1)


# -- OpenClaw

CLAW = f".openclaw/agents/main/sessions/{SID}.jsonl"


def test_openclaw_takes_off_what_the_channel_put_on(tmp_path: Path) -> None:
    session, messages = one(
        tmp_path,
        HEADER,
        user("u1", None, "Conversation info (untrusted metadata):\n```json\n{\"id\": 7}\n```\n\n"
                         "[Wed 2026-02-18 11:21 GMT+1] water the plants"),
        reply("a1", "u1", said("Done."), {"type": "toolCall", "name": "pump", "input": {"litres": 2}}),
        entry("d1", "a1", message={"role": "assistant", "content": [said("Done.")], "model": "delivery-mirror"}),
        result("t1", "d1", "pumped"),
        agent="openclaw", file=CLAW,
    )  # fmt: skip
    assert (session.session_id, session.title, session.message_count) == (SID, "water the plants", 2)
    assert words(messages) == ["water the plants", "Done.", "pump litres: 2", "pumped"]
    assert session.resume == f"openclaw --resume {SID}"


def test_openclaw_ids_belong_to_an_agent_and_archives_rank_behind(tmp_path: Path) -> None:
    for file in (
        "main/sessions/{}.jsonl", "main/sessions/{}.jsonl.reset.2026-01-01",
        "main/sessions/{}.jsonl.deleted.2026-01-02",
        "main/sessions/{}.jsonl.full.bak", "garden/sessions/{}.jsonl", "garden/agent/codex-home/sessions/{}.jsonl",
        "main/sessions/{}.jsonl.lock", "main/sessions/sessions.json",
    ):  # fmt: skip
        lines(tmp_path / ".openclaw/agents" / file.format(SID), HEADER, user("u1", None, "hello"))
    found = [(id_, source.store.rank) for source in sources("openclaw", tmp_path) for id_ in read(source)]
    assert sorted(found) == [(SID, 0), (SID, 0), (SID, 0), (SID, 1), (f"garden/{SID}", 1)]


def test_a_broken_openclaw_session(tmp_path: Path) -> None:
    session, messages = one(
        tmp_path, "{", entry("c", None, "compact", note="old"), user("u1", "c", [{"type": "text"}, said("hi"), None]),
        result("t1", "u1", ""), agent="openclaw", file=CLAW,
    )  # fmt: skip
    assert (session.session_id, words(messages)) == (SID, ["hi"])
