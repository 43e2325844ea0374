"""Every frame of a client either becomes a command or is malformed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat.command_frames import MAX_EXPLANATION_LENGTH, MalformedCommand, parse
from chat.commands import (
    COMMANDS,
    MAX_KNOWN,
    MAX_SYSTEM_PROMPT_LENGTH,
    AcceptSuggestion,
    AddAgent,
    Answer,
    CancelRun,
    Compact,
    Configure,
    ContinueAnswer,
    DismissSuggestion,
    Edit,
    Editing,
    EditQueued,
    Exclude,
    ExcludeBefore,
    Fork,
    Include,
    IncludeBefore,
    Known,
    MarkRead,
    Ping,
    Remove,
    RemoveAgent,
    Rename,
    Restore,
    RestoreAttempt,
    Retry,
    RunTools,
    SaveDraft,
    SendMessage,
    SendNow,
    SessionCommand,
    SetAgent,
    SetModel,
    SetSystemPrompt,
    SuggestEdit,
    SwitchAttempt,
    Sync,
    Typing,
    Withdraw,
)
from chat.dispatch import HANDLERS
from tests.support.agreement import agree
from tests.support.effort import cases

GOOD: list[tuple[dict[str, Any], Any]] = [
    ({"type": "sync"}, Sync(type="sync")),
    (
        {"type": "sync", "since": 7, "have": {"m_1": 5, "m_2": {"blocks": 2, "rev": 1}}},
        Sync(type="sync", since=7, have={"m_1": 5, "m_2": Known(blocks=2, rev=1)}),
    ),
    ({"type": "ping"}, Ping(type="ping")),
    ({"type": "send", "text": "Hi"}, SendMessage(type="send", text="Hi")),
    (
        {"type": "send", "text": "a\ud800", "key": "k", "ref": "r", "more": 1},
        SendMessage(type="send", text="a\ud800", key="k", ref="r"),
    ),
    ({"type": "edit_queued", "id": "m_1", "text": "Ho"}, EditQueued(type="edit_queued", id="m_1", text="Ho")),
    ({"type": "answer", "id": "m_1", "value": [1]}, Answer(type="answer", id="m_1", value=[1])),
    ({"type": "withdraw", "id": "m_1"}, Withdraw(type="withdraw", id="m_1")),
    ({"type": "typing"}, Typing(type="typing")),
    ({"type": "editing", "id": "m_1"}, Editing(type="editing", id="m_1", open=True)),
    ({"type": "editing", "id": "m_1", "open": False}, Editing(type="editing", id="m_1", open=False)),
    ({"type": "compact"}, Compact(type="compact")),
    ({"type": "cancel"}, CancelRun(type="cancel")),
    ({"type": "retry", "id": "m_1"}, Retry(type="retry", id="m_1")),
    ({"type": "edit", "id": "m_1", "text": "Ho"}, Edit(type="edit", id="m_1", text="Ho")),
    (
        {"type": "edit", "id": "m_1", "text": "Ho", "revision": 7},
        Edit(type="edit", id="m_1", text="Ho", revision=7),
    ),
    ({"type": "send_now"}, SendNow(type="send_now")),
    ({"type": "continue"}, ContinueAnswer(type="continue")),
    ({"type": "run_tools", "id": "m_1"}, RunTools(type="run_tools", id="m_1")),
    (
        {"type": "restore_attempt", "attempt": "r_1"},
        RestoreAttempt(type="restore_attempt", attempt="r_1"),
    ),
    (
        {"type": "switch_attempt", "id": "m_1", "number": 2},
        SwitchAttempt(type="switch_attempt", id="m_1", number=2),
    ),
    ({"type": "suggest_edit", "id": "m_1", "text": "Ho"}, SuggestEdit(type="suggest_edit", id="m_1", text="Ho")),
    (
        {"type": "accept_suggestion", "id": "g_1", "revision": 7},
        AcceptSuggestion(type="accept_suggestion", id="g_1", revision=7),
    ),
    ({"type": "dismiss_suggestion", "id": "g_1"}, DismissSuggestion(type="dismiss_suggestion", id="g_1")),
    ({"type": "exclude", "id": "m_1"}, Exclude(type="exclude", id="m_1")),
    ({"type": "include", "id": "m_1"}, Include(type="include", id="m_1")),
    ({"type": "exclude_before", "id": "m_1"}, ExcludeBefore(type="exclude_before", id="m_1")),
    ({"type": "include_before", "id": "m_1", "since": 3}, IncludeBefore(type="include_before", id="m_1", since=3)),
    ({"type": "remove", "id": "m_1"}, Remove(type="remove", id="m_1")),
    ({"type": "restore", "id": "m_1"}, Restore(type="restore", id="m_1")),
    ({"type": "fork", "id": "m_1"}, Fork(type="fork", id="m_1")),
    (
        {"type": "fork", "id": "m_1", "text": "Ho", "run": False, "key": "k"},
        Fork(type="fork", id="m_1", text="Ho", run=False, key="k"),
    ),
    ({"type": "set_model", "provider": "p", "model": "m"}, SetModel(type="set_model", provider="p", model="m")),
    ({"type": "add_agent", "agent": "a"}, AddAgent(type="add_agent", agent="a")),
    ({"type": "remove_agent", "agent": "a"}, RemoveAgent(type="remove_agent", agent="a")),
    ({"type": "set_agent", "agent": "a"}, SetAgent(type="set_agent", agent="a")),
    (
        {"type": "configure", "tools": ["calculator"], "max_rounds": 3},
        Configure(type="configure", tools=["calculator"], max_rounds=3),
    ),
    (
        {"type": "configure", "reasoning_effort": "low", "thinking_budget": 0},
        Configure(type="configure", reasoning_effort="low", thinking_budget=0),
    ),
    ({"type": "rename", "title": ""}, Rename(type="rename", title="")),
    ({"type": "set_system_prompt", "system_prompt": "x"}, SetSystemPrompt(type="set_system_prompt", system_prompt="x")),
    ({"type": "read", "revision": 7}, MarkRead(type="read", revision=7)),
    ({"type": "draft", "text": ""}, SaveDraft(type="draft", text="")),
]
BAD: list[tuple[str, str]] = [
    ("", "JSON"),
    ("{", "JSON"),
    ("[" * 200_000, "JSON"),
    ('{"a":' * 100_000, "Only text fields may be long"),
    ('{"type":"sync","since":' + "9" * 5000 + "}", "JSON"),
    ("[]", "object"),
    ("1", "object"),
    ("null", "object"),
    ('"ping"', "object"),
    ("{}", "type"),
    ('{"type":null}', "type"),
    ('{"type":["ping"]}', "type"),
    ('{"type":{"a":1}}', "type"),
    ('{"type":"typing_badly"}', "type"),
    ('{"type":"' + "x" * 1_000_000 + '"}', "type"),
    ('{"type":"ping","ref":1}', "ref"),
    ('{"type":"ping","ref":"' + "x" * 201 + '"}', "ref"),
    ('{"type":"ping","ref":"\\ud800"}', "ref"),
    ('{"type":"sync","since":-1}', "since"),
    ('{"type":"sync","since":1.5}', "since"),
    ('{"type":"sync","since":"1"}', "since"),
    ('{"type":"sync","since":true}', "since"),
    ('{"type":"sync","since":NaN}', "since"),
    ('{"type":"sync","since":1e400}', "since"),
    ('{"type":"sync","since":99999999999999999999}', "since"),
    ('{"type":"sync","have":[]}', "have"),
    ('{"type":"sync","have":{"a b":1}}', "have"),
    ('{"type":"sync","have":{"\\u0000":1}}', "have"),
    ('{"type":"sync","have":{"\\ud800":1}}', "have"),
    ('{"type":"sync","have":{"m_1":"1"}}', "have"),
    ('{"type":"sync","have":{"m_1":{"blocks":-1}}}', "have"),
    ('{"type":"sync","have":{"' + "x" * 100_000 + '":1}}', "have"),
    (json.dumps({"type": "sync", "have": {f"m_{n}": 1 for n in range(MAX_KNOWN + 1)}}), "have"),
    ('{"type":"send"}', "text"),
    ('{"type":"send","text":1}', "text"),
    ('{"type":"send","text":null}', "text"),
    ('{"type":"send","text":"a","key":""}', "key"),
    ('{"type":"send","text":"a","key":"\\u0000"}', "key"),
    ('{"type":"send","text":"a","key":"\\ud800"}', "key"),
    ('{"type":"send","text":"a","key":"' + "k" * 101 + '"}', "key"),
    ('{"type":"retry"}', "id"),
    ('{"type":"retry","id":"m_1\\n"}', "id"),
    ('{"type":"withdraw","id":"m_\\u0000"}', "id"),
    ('{"type":"edit_queued","id":"m_1"}', "text"),
    ('{"type":"edit","id":"m_1","text":"a","revision":-1}', "revision"),
    ('{"type":"fork","id":"m_1","run":1}', "run"),
    ('{"type":"set_model","provider":"p"}', "model"),
    ('{"type":"set_model","provider":"' + "p" * 81 + '","model":"m"}', "provider"),
    ('{"type":"configure","reasoning_effort":"' + "x" * 11 + '"}', "reasoning_effort"),
    ('{"type":"configure","thinking_budget":-1}', "thinking_budget"),
    ('{"type":"configure","thinking_budget":true}', "thinking_budget"),
    ('{"type":"configure","thinking_budget":128001}', "thinking_budget"),
    ('{"type":"set_agent"}', "agent"),
    ('{"type":"configure","mode":"fast"}', "mode"),
    ('{"type":"configure","max_rounds":0}', "max_rounds"),
    ('{"type":"configure","tools":"calculator"}', "tools"),
    ('{"type":"set_agent","agent":"' + "a" * 81 + '"}', "agent"),
    ('{"type":"rename"}', "title"),
    ('{"type":"set_system_prompt","system_prompt":"' + "x" * (MAX_SYSTEM_PROMPT_LENGTH + 1) + '"}', "system_prompt"),
]


@pytest.mark.parametrize(("frame", "command"), GOOD, ids=lambda value: getattr(value, "type", ""))
def test_frame_is_read_as_its_command(frame: dict[str, Any], command: Any) -> None:
    """RUN-01, LIVE-02: every command of the protocol; what is unknown in it is passed over."""
    assert parse(json.dumps(frame)) == command


def test_every_command_is_read_somewhere() -> None:
    """A new command needs a row above."""
    agree(
        [type(command).__name__ for _, command in GOOD],
        [kind.__name__ for kind in COMMANDS],
        missing="Add a frame of {} to GOOD in this file, and frames with wrong values to BAD.",
        extra="Remove {} from GOOD in this file: it is not registered by @command in chat/commands.py.",
    )


def test_every_command_on_a_session_has_a_handler() -> None:
    """RUN-01: a command without one would be read, and fail."""
    agree(
        [kind.__name__ for kind in HANDLERS],
        [kind.__name__ for kind in COMMANDS if issubclass(kind, SessionCommand)],
        missing="Write a function with @handles(commands.{}) in chat/dispatch.py.",
        extra="Register {} by @command in chat/commands.py: no frame is read as it.",
    )


@pytest.mark.parametrize(("frame", "place"), BAD, ids=lambda text: text[:40])
def test_bad_frame_is_malformed_and_says_where(frame: str, place: str) -> None:
    """MSG-12: in a few words, whatever its size."""
    with pytest.raises(MalformedCommand) as caught:
        parse(frame)
    assert place in str(caught.value)
    assert len(str(caught.value)) <= MAX_EXPLANATION_LENGTH


def test_malformed_frame_keeps_its_ref() -> None:
    """MSG-12: so that a user who sent it knows what was refused."""
    with pytest.raises(MalformedCommand) as caught:
        parse('{"type":"send","ref":"mine"}')
    assert caught.value.ref == "mine"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
names = st.sampled_from(["ref", "since", "have", "text", "key", "id", "provider", "model", "title", "system_prompt"])
kinds = st.sampled_from([frame["type"] for frame, _ in GOOD])


@given(st.dictionaries(names, anything), kinds)
@settings(deadline=None, max_examples=cases(150))
def test_any_values_are_read_or_malformed(values: dict[str, Any], kind: str) -> None:
    """MSG-12: no frame raises anything else."""
    try:
        command = parse(json.dumps({**values, "type": kind}))
    except MalformedCommand:
        return
    assert command.type == kind


@given(st.text(st.characters(codec=None), max_size=200))
@settings(deadline=None)
def test_any_text_is_malformed_or_read(frame: str) -> None:
    """MSG-12: likewise what is no JSON at all."""
    with pytest.raises(MalformedCommand):
        parse(frame + "{")
