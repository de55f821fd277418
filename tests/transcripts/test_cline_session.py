"""Sessions of the Cline CLI: the manifest, the agents' messages, forks."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Dict, Optional

import pytest

from relay.transcripts.types import Message, Session, Unreadable
from tests.support.transcript_sources import document, read, sources, text, unknown

SID = "1784094124598_rruoq"
T = 1_784_094_000_000


def said(role: str, after: int, *blocks: Any, **more: Any) -> Dict[str, Any]:
    content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
    return {"id": f"m{after}", "role": role, "ts": T + after, "content": content, **more}


def messages(home: Path, *records: Any, name: Optional[str] = None, session: str = SID) -> Path:
    folder = home / ".cline/data/sessions" / session
    path = folder / f"{name or session}.messages.json"
    return document(path, {"version": 1, "agent": "lead", "sessionId": session, "messages": list(records)})


def manifest(home: Path, session: str = SID, **more: Any) -> None:
    document(
        home / ".cline/data/sessions" / session / f"{session}.json",
        {"version": 1, "session_id": session, "cwd": "/w/app", "started_at": "2026-07-15T05:39:00Z", **more},
    )


def test_an_ordinary_session(tmp_path: Path) -> None:
    picture = base64.b64encode(b"x" * 300).decode()
    messages(
        tmp_path,
        said(
            "user",
            0,
            '<user_input mode="act">look at the sidebar</user_input>',
            {"type": "file", "path": "/w/app/side.py", "content": "class Sidebar"},
            {"type": "image", "data": picture, "mediaType": "image/png"},
        ),
        said(
            "assistant",
            1,
            {"type": "thinking", "thinking": "secret"},
            "I look.",
            {"type": "tool_use", "id": "t", "name": "read_files", "input": {"path": "a.py"}},
        ),
        said("user", 2, {"type": "tool_result", "tool_use_id": "t", "content": '{"query":"a.py","result":"x = 1"}'}),
        said("assistant", 3, "Fine."),
        said("user", 4, '<user_command slash="/deploy">to staging</user_command>'),
        said("user", 5, "Context summary", metadata={"displayRole": "system"}),
        said("user", 6, "<SYSTEM_NOTICE>\ncompacted\n</SYSTEM_NOTICE>"),
    )
    manifest(tmp_path, metadata={"title": "Sidebar"}, ended_at="2026-07-15T05:42:04.865Z")
    document(tmp_path / ".cline/data/sessions" / SID / f"{SID}.compaction.json", {"messages": [said("user", 1, "x")]})
    (source,) = sources("cline", tmp_path)
    assert read(source) == {
        SID: (
            Session(
                SID,
                "Sidebar",
                cwd="/w/app",
                created_at=1_784_093_940_000,
                updated_at=1_784_094_124_865,
                message_count=4,
                resume=f"cline --id {SID}",
            ),
            [
                Message(0, "user", "look at the sidebar\n[image image/png 300]", T),
                Message(1, "tool", "/w/app/side.py class Sidebar", T),
                Message(2, "assistant", "I look.", T + 1),
                Message(3, "tool", "read_files path: a.py", T + 1),
                Message(4, "tool", "query: a.py\nresult: x = 1", T + 2),
                Message(5, "assistant", "Fine.", T + 3),
                Message(6, "user", "/deploy to staging", T + 4),
            ],
        )
    }
    assert unknown(source) == 0


def test_agents_of_a_session_name_it(tmp_path: Path) -> None:
    messages(tmp_path, said("user", 0, "go"))
    messages(tmp_path, said("user", 1, "explore"), name="agent_7")
    manifest(tmp_path)
    found = {name: session for one in sources("cline", tmp_path) for name, (session, _) in read(one).items()}
    child = found[f"{SID}/agent_7"]
    assert (child.parent_id, child.title, child.cwd, child.resume) == (SID, "explore", "/w/app", f"cline --id {SID}")
    assert found[SID].parent_id is None


def test_forks_share_their_lineage(tmp_path: Path) -> None:
    for name, origin in (("a", None), ("b", "a"), ("c", "b")):
        messages(tmp_path, said("user", 0, "go"), session=name)
        manifest(tmp_path, name, metadata={"fork": {"forkedFromSessionId": origin}} if origin else {})
    found = {name: session for one in sources("cline", tmp_path) for name, (session, _) in read(one).items()}
    assert [found[name].lineage for name in "abc"] == [None, "a", "a"]


def test_the_prompt_of_the_manifest_is_the_last_resort(tmp_path: Path) -> None:
    messages(tmp_path, said("assistant", 0, "Hello."))
    manifest(tmp_path, prompt="say hello")
    (source,) = sources("cline", tmp_path)
    ((session, _),) = read(source).values()
    assert session.title == "say hello"
    assert source.store.files is not None
    assert list(source.store.files(source)) == [source.path.replace(".messages.json", ".json")]


@pytest.mark.parametrize(("variable", "below"), [("CLINE_SESSION_DATA_DIR", ""), ("CLINE_DATA_DIR", "sessions/")])
def test_another_home_is_named_in_the_command(tmp_path: Path, variable: str, below: str) -> None:
    home = tmp_path / "my data"
    document(home / f"{below}s1/s1.messages.json", {"messages": [said("user", 0, "hello")]})
    (source,) = sources("cline", tmp_path, {variable: str(home)})
    ((session, _),) = read(source).values()
    assert session.resume == f"{variable}='{home}' cline --id s1"


def test_a_broken_session(tmp_path: Path) -> None:
    path = messages(
        tmp_path,
        7,
        said("oracle", 1, "?"),
        said("user", 2, "hello", {"type": "hologram"}),
        {"role": "assistant"},
        said("user", 3, {"type": "tool_result", "content": None}),
    )
    text(path.parent / f"{SID}.json", "{torn")
    (source,) = sources("cline", tmp_path)
    ((session, found),) = read(source).values()
    assert [one.text for one in found] == ["hello"]
    assert (session.cwd, unknown(source)) == (None, 2)
    text(path, '{"messages": [{"role": "user", "content": [')
    with pytest.raises(Unreadable, match="ends early"):
        read(source)
