"""Editing tool calls: their arguments and results."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django.fixtures import Settings

from agents.messages import ToolCall, ToolResult
from chat.errors import ServiceError
from chat.models import ChatMessage, MessageRevision, Session, SessionRun, User
from chat.services.messages.editing import edit_tool_call, set_included
from chat.services.sessions.lifecycle import create_session
from tests.support.filled import ANSWER, DONE, HI, START, TOOL, Fields, fill, live
from tests.support.protocol import check_context

pytestmark = pytest.mark.django_db
RAW = {"raw_arguments": '{"n":  1}'}
CALL: Fields = {**TOOL, "response_id": "r_1", "arguments": {"n": 1}, "provider_data": RAW}


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana)


def called(session: Session, **fields: Any) -> ChatMessage:
    return fill(session, START, HI, {**CALL, **fields}, {**ANSWER, "response_id": "r_2"}, DONE)[2]


def change(row: ChatMessage, author: User, seen: int | None = None, **wanted: Any) -> ChatMessage:
    present = {"arguments": row.arguments, "result": row.result, "is_error": row.is_error}
    values = {**present, **wanted}
    edit_tool_call(session=row.session, author=author, message_id=row.pk, seen=seen, **values)
    return ChatMessage.objects.get(pk=row.pk)


def refusal(*args: Any, **kwargs: Any) -> ServiceError:
    with pytest.raises(ServiceError) as refused:
        change(*args, **kwargs)
    return refused.value


def in_context(session: Session) -> tuple[ToolCall, ToolResult]:
    """Return the call and its result as the model gets them."""
    messages = check_context(live(session))
    return messages[1].tool_calls[0], messages[2].tool_results[0]


def test_model_gets_the_changed_call(session: Session, ana: User, bo: User) -> None:
    """ADM-02, CTX-03, MSG-11: the model gets the changed call with its result, and the earlier values are on record."""
    row = change(called(session), bo, arguments={"n": 2, "why": "更好"}, result="4")
    assert (row.status, row.sequence, row.edited_at is None) == ("complete", 3, False)
    assert in_context(session) == (ToolCall("c1", "double", {"n": 2, "why": "更好"}), ToolResult("c1", "4", False))
    record = MessageRevision.objects.get()
    assert (record.kind, record.user, record.before["provider_data"]) == ("edit", bo, RAW)
    assert (record.before["tool"]["arguments"], record.before["tool"]["result"]) == ({"n": 1}, "2")


def test_other_result_leaves_the_call_as_the_model_wrote_it(session: Session, ana: User) -> None:
    """MSG-08: if only the result changes, the model gets its own call back byte for byte."""
    change(called(session), ana, result="No.", is_error=True)
    call, result = in_context(session)
    assert (call.raw, result) == ('{"n":  1}', ToolResult("c1", "No.", True))
    assert ChatMessage.objects.get(type="tool_group").status == "failed"


def test_true_is_another_argument_than_one(session: Session, ana: User) -> None:
    """CTX-03: `true` and 1 are different arguments for a model, although they are equal in Python."""
    change(called(session), ana, arguments={"n": True})
    assert in_context(session)[0].arguments == {"n": True}


def test_call_is_interrupted_until_it_has_a_result(session: Session, ana: User) -> None:
    """RUN-08, CTX-03: a call without a result is reported to the model as interrupted, until an edit adds a result."""
    row = change(called(session, status="interrupted", result=""), ana, arguments={"n": 3})
    assert row.status == "interrupted"
    assert in_context(session)[1].content.startswith("[Tool execution interrupted")
    assert change(row, ana, result="6").status == "complete"
    assert in_context(session)[1].content == "6"


def test_change_that_is_none_leaves_no_record(session: Session, ana: User) -> None:
    """MSG-11: an edit without a change makes no revision. A call without arguments equals one with an empty object."""
    change(called(session, arguments=None), ana, arguments={})
    assert not MessageRevision.objects.exists()


def test_second_editor_gets_a_conflict(session: Session, ana: User, bo: User) -> None:
    """MSG-11: the refusal has the present values. Excluding the call in the meantime causes no conflict."""
    row = called(session)
    set_included(session=session, author=bo, message_id=row.pk, included=False)
    row = change(row, ana, result="3", seen=row.revision)
    refused = refusal(row, bo, result="5", seen=row.revision - 1)
    assert refused.code == "stale"
    assert refused.details["current"] == {"arguments": {"n": 1}, "result": "3", "is_error": False}
    assert change(row, bo, result="5", seen=row.revision).result == "5"


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"arguments": []}, "invalid"),
        ({"arguments": "n"}, "invalid"),
        ({"arguments": None}, "invalid"),
        ({"arguments": {"n": float("nan")}}, "invalid"),
        ({"arguments": {"n": float("inf")}}, "invalid"),
        ({"arguments": {"n": object()}}, "invalid"),
        ({"arguments": {"n": "a\0"}}, "not_storable"),
        ({"arguments": {"\ud800": 1}}, "not_storable"),
        ({"arguments": {"n": [["x" * 999]]}}, "too_long"),
        ({"result": "\0"}, "not_storable"),
        ({"result": "x" * 999}, "too_long"),
    ],
)
def test_arguments_that_cannot_be_stored_are_refused(
    session: Session, ana: User, settings: Settings, wanted: dict[str, Any], code: str
) -> None:
    """Tool arguments that can't be stored are refused (MSG-12)."""
    settings.MAX_MESSAGE_CHARS = 500
    assert refusal(called(session), ana, **wanted).code == code
    assert not MessageRevision.objects.exists()


def test_bottomless_arguments_are_refused(session: Session, ana: User) -> None:
    """Too deeply nested tool arguments are refused (MSG-12)."""
    deep: Any = {}
    for _ in range(100_000):
        deep = {"n": deep}
    assert refusal(called(session), ana, arguments=deep).code == "invalid"


def test_only_tool_calls_at_rest(session: Session, ana: User) -> None:
    """ADM-02: texts, calls that the agent works on, and archived sessions are refused."""
    row = called(session)
    text = ChatMessage.objects.get(text="So")
    assert refusal(text, ana, arguments={}).code == "not_a_tool_call"
    SessionRun.objects.filter(pk=session.pk).update(state="running", turn_id="t_1")
    assert refusal(row, ana, result="5").code == "busy"
    SessionRun.objects.filter(pk=session.pk).update(state="running", turn_id="t_9")
    change(row, ana, result="5")
    Session.objects.filter(pk=session.pk).update(status="archived")
    assert refusal(row, ana, result="6").code == "archived"
