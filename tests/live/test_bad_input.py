"""Invalid frames of clients: refused by a stable code, without a write, a closed socket or a logged error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat import consumers
from chat.command_frames import longest_frame
from chat.models import ChatMessage, MessageRevision, Session, User
from chat.services.sessions.lifecycle import create_session
from tests.support.socket import Socket, path_of
from tests.support.testing_node import TestNode

pytestmark = pytest.mark.both_databases

NUL, LONE = "a\0b", "a\ud800b"
REFUSED: list[tuple[str, str]] = [
    ("{", "malformed"),
    ("[" * 100_000, "malformed"),
    ('["send"]', "malformed"),
    ('{"type":"nonsense"}', "malformed"),
    ('{"type":"send"}', "malformed"),
    (json.dumps({"type": "send", "text": "a", "key": NUL}), "malformed"),
    (json.dumps({"type": "send", "text": "a", "key": LONE}), "malformed"),
    (json.dumps({"type": "send", "text": "a", "ref": LONE}), "malformed"),
    (json.dumps({"type": "sync", "have": {LONE: 1}}), "malformed"),
    (json.dumps({"type": LONE}), "malformed"),
    (json.dumps({"type": "retry", "id": NUL}), "malformed"),
    (json.dumps({"type": "send", "text": NUL}), "not_storable"),
    (json.dumps({"type": "send", "text": LONE}), "not_storable"),
    (json.dumps({"type": "send", "text": ""}), "empty"),
    (json.dumps({"type": "send", "text": " \n\t"}), "empty"),
    (json.dumps({"type": "send", "text": "x" * 2_000_001}), "too_long"),
    (json.dumps({"type": "rename", "title": NUL}), "not_storable"),
    (json.dumps({"type": "rename", "title": LONE}), "not_storable"),
    (json.dumps({"type": "rename", "title": "x" * 201}), "too_long"),
    (json.dumps({"type": "set_system_prompt", "system_prompt": NUL}), "not_storable"),
    (json.dumps({"type": "set_system_prompt", "system_prompt": LONE}), "malformed"),
    (json.dumps({"type": "set_system_prompt", "system_prompt": "x" * 200_001}), "malformed"),
    (json.dumps({"type": "set_model", "provider": NUL, "model": "m"}), "no_such_model"),
    (json.dumps({"type": "set_model", "provider": "scripted", "model": "other"}), "no_such_model"),
    (json.dumps({"type": "set_agent", "agent": NUL}), "no_such_agent"),
    (json.dumps({"type": "set_agent", "agent": ""}), "no_such_agent"),
    (json.dumps({"type": "retry", "id": "m_none"}), "no_such_message"),
    (json.dumps({"type": "retry", "id": ""}), "no_such_message"),
    (json.dumps({"type": "withdraw", "id": "m_none"}), "no_such_message"),
    (json.dumps({"type": "edit_queued", "id": "m_none", "text": "a"}), "no_such_message"),
    (json.dumps({"type": "edit_queued", "id": "m_none", "text": LONE}), "no_such_message"),
]


def written(session: Session) -> tuple[int, int, int]:
    """Return everything that a command could have changed."""
    revision = Session.objects.get(pk=session.pk).revision
    return revision, ChatMessage.objects.filter(session=session).count(), MessageRevision.objects.count()


@pytest.mark.parametrize("protocol", ["events", "page"])
async def test_bad_frames_are_refused_and_change_nothing(node: TestNode, ana: User, protocol: str) -> None:
    """MSG-12: a socket that has received every kind of bad frame still works."""
    session = await node.session(ana)
    async with Socket(path_of(session, protocol), ana) as socket:
        for count, (frame, code) in enumerate(REFUSED):
            socket.send_text(frame)
            await socket.until(lambda: len(socket.frames) > count)  # noqa: B023  # waits within the round
            answer = socket.frames[count]
            assert (answer["type"], answer["code"]) == ("refused", code), frame[:60]
            assert answer["message"]
        assert await node.do(written, session) == (0, 0, 0)
        assert (await socket.ask(type="rename", title="Still here"))["type"] == "ack"


async def test_frames_that_are_no_text_or_too_long_are_refused(node: TestNode, ana: User) -> None:
    """MSG-12: binary frames and frames longer than any valid text are refused."""
    session = await node.session(ana)
    async with Socket(path_of(session), ana) as socket:
        socket.send_bytes(b'{"type":"ping"}')
        socket.send_text("x" * (longest_frame() + 1))
        await socket.until(lambda: len(socket.frames) == 2)
        assert [frame["code"] for frame in socket.frames] == ["malformed"] * 2
        socket.send(type="ping")
        await socket.next(type="pong")


async def test_ref_is_returned_unchanged(node: TestNode, ana: User) -> None:
    """LIVE-04: a command's `ref` is returned unchanged, whatever characters it contains."""
    session = await node.session(ana)
    async with Socket(path_of(session), ana) as socket:
        for ref in ("", "a\0b", "\u2028😀", "\\", '"'):
            socket.send(type="rename", title="x", ref=ref)
            assert (await socket.next(ref=ref))["type"] == "ack"


@pytest.mark.parametrize("protocol", ["events", "page"])
@pytest.mark.parametrize(
    "have",
    [
        {"m_none": 5},
        {"": 10**15},
        {f"m_{number}": 10**30 for number in range(200)},
        {"m_none": {"length": 10**30, "blocks": 10**30, "rev": 10**30}},
        {"m_none": -5},
    ],
    ids=["unknown", "empty", "many", "giant", "negative"],
)
async def test_sync_takes_any_knowledge(node: TestNode, ana: User, protocol: str, have: dict[str, Any]) -> None:
    """LIVE-02: a sync accepts unknown messages and impossible lengths."""
    node.script([["Hello"]])
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await node.idle(session)
    ids = [row.pk for row in await node.rows(session)]
    known = next(iter(have.values()))
    async with Socket(path_of(session, protocol), ana) as socket:
        socket.send(type="sync", since=0, have={**have, **dict.fromkeys(ids[: 200 - len(have)], known)})
        await socket.until(lambda: any(frame.get("op") == "synced" or "more" in frame for frame in socket.frames))
        assert all(frame.get("type") != "refused" for frame in socket.frames)


async def test_sync_reveals_nothing_of_other_sessions(node: TestNode, ana: User, bo: User) -> None:
    """LIVE-06: messages of other sessions in `have` are treated as unknown."""
    node.script([["Secret"]])
    theirs, mine = await node.session(bo), await node.session(ana)
    await node.send(theirs, bo, "Hi")
    await node.idle(theirs)
    ids = [row.pk for row in await node.rows(theirs)]
    async with Socket(path_of(mine), ana) as socket:
        socket.send(type="sync", since=0, have=dict.fromkeys(ids, 1))
        answer = await socket.next(type="changes")
        assert (answer["messages"], answer["removed"]) == ([], [])
        for kind in ("retry", "withdraw"):
            assert (await socket.ask(type=kind, id=ids[1]))["code"] == "no_such_message"


@pytest.mark.parametrize("frame", ['{"type":"ping"}', "{", '{"type":"send","text":""}'])
async def test_flood_closes_the_socket(node: TestNode, ana: User, frame: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-06: frames beyond the limit close the socket with 4429, whatever they contain."""
    monkeypatch.setattr(consumers, "RATE", 0.0)
    session = await node.session(ana)
    async with Socket(path_of(session), ana) as socket:
        for _ in range(int(consumers.BURST) + 1):
            socket.send_text(frame)
        assert await socket.closed() == 4429


async def test_long_frames_count_for_more(node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-06: long frames count several times, because reading them delays all other clients."""
    monkeypatch.setattr(consumers, "RATE", 0.0)
    session = await node.session(ana)
    async with Socket(path_of(session), ana) as socket:
        socket.send_text(" " * longest_frame())
        assert (await socket.until(lambda: socket.frames))[0]["code"] == "malformed"
        socket.send_text(" " * longest_frame())
        assert await socket.closed() == 4429


KINDS = [json.loads(frame)["type"] for frame, code in REFUSED if code != "malformed"] + [
    "sync",
    "ping",
    "cancel",
    "typing",
    "editing",
]
FIELDS = ["ref", "since", "have", "text", "key", "id", "open", "provider", "model", "title", "system_prompt"]
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
frames = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=50),
    st.builds(
        lambda kind, values: json.dumps({"type": kind, **values}),
        st.sampled_from(KINDS),
        st.dictionaries(st.sampled_from(FIELDS), anything),
    ),
)


@given(st.lists(frames, min_size=5, max_size=40))
@settings(
    deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
async def test_no_frame_breaks_a_socket(node: TestNode, ana: User, sent: list[str]) -> None:
    """MSG-12: a socket answers and stays open after any frame."""
    node.script(lambda request: ["Yes."])
    session = await node.do(create_session, owner=ana)
    async with Socket(path_of(session), ana) as socket:
        for frame in sent:
            socket.send_text(frame)
        answer = await socket.ask(type="rename", title="Still here")
        assert answer["type"] == "ack"
        assert socket.close_code is None
    await node.idle(session)
