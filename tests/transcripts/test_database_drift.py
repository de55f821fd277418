"""Whatever a later version, a bug or a bad disk puts into a database costs a record or a reason, never the reader."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator, List, Type

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.transcripts import foreign_database, rows
from relay.transcripts.ai_sdk import AiSdk
from relay.transcripts.crush import Crush
from relay.transcripts.devin import Devin
from relay.transcripts.fold import Fold
from relay.transcripts.goose import Goose
from relay.transcripts.hermes import Hermes
from relay.transcripts.opencode import OpenCode
from relay.transcripts.types import Message, Source, Unreadable
from tests.support.transcript_sources import read, sources
from tests.transcripts import test_goose as goose

SOURCE = Source(rows.GOOSE.stores[0], "/h", "/h", "/h/x.db")
#: Names and values that the readers look at, where they belong and where they do not.
NAMES = (
    "role type content text message parts data info time created start end state input output error tool name toolCall"
    " value arguments function tool_calls tool_use toolResult tool_result observation results source metadata"
    " is_user_input at summary url mime filename toolName toolCallId image mediaType status thinking command"
    " content_json timestamp display_kind step_id userVisible MIMEType Data mime_type prompt description agent"
).split()
WORDS = (
    "user assistant tool system session_meta text tool-call tool-result toolRequest toolResponse tool_call file image"
    " binary shell_command subtask synthetic agent human [{ {} data:image/png;base64,QUJD"
).split()

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=25,
)
objects = st.dictionaries(st.sampled_from(NAMES), values, max_size=5)
blocks = st.builds(lambda kind, rest: {**rest, "type": kind}, st.sampled_from(WORDS) | values, objects)
said = st.sampled_from(WORDS) | st.lists(blocks, max_size=3)
records = st.builds(
    lambda role, said, at, rest: {
        **rest,
        "role": role,
        "info": {"role": role},
        "content": said,
        "parts": said,
        "at": at,
    },
    st.sampled_from(WORDS[:5]),
    said,
    values,
    objects,
)


@pytest.mark.parametrize("fold", [OpenCode, Goose, Hermes, Devin, Crush, AiSdk])
@settings(deadline=None, max_examples=60)
@given(found=st.lists(records, max_size=4))
def test_any_record_is_read_or_passed_over(fold: Type[Fold], found: List[Dict[str, Any]]) -> None:
    reader = fold(SOURCE)
    messages = [event for record in found for event in reader.feed(record)]
    assert [message.seq for message in messages if isinstance(message, Message)] == list(range(len(messages)))
    for message in messages:
        assert isinstance(message, Message) and message.text.strip()
        assert message.role in ("user", "assistant", "tool", "system")
        message.text.encode()
    head = reader.session()
    assert (head is None) == (reader.count == 0)


@pytest.fixture(scope="module")
def sound() -> Iterator[bytes]:
    """The bytes of a sound database."""
    with tempfile.TemporaryDirectory() as folder:
        prompt = goose.message(1, "s1", "user", goose.T, goose.said("hello"))
        yield goose.store(Path(folder), [goose.session("s1", "One")], [prompt]).read_bytes()


@settings(deadline=None, max_examples=100)
@given(where=st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=30)), min_size=1, max_size=6))
def test_any_damage_gives_sessions_or_a_reason(sound: bytes, where: "list[tuple[float, bytes]]") -> None:
    damaged = bytearray(sound)
    for place, data in where:
        start = min(int(place * len(damaged)), len(damaged) - len(data))
        damaged[start : start + len(data)] = data
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(foreign_database, "FRESH", 0)
        path = Path(folder) / ".local/share/goose/sessions/sessions.db"
        path.parent.mkdir(parents=True)
        path.write_bytes(damaged)
        (source,) = sources("goose", Path(folder))
        try:
            for head, messages in read(source).values():
                assert head.message_count > 0 and messages
        except Unreadable as reason:
            assert reason.reason.endswith(".") and folder not in reason.reason
