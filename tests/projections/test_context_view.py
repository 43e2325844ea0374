"""The context as users see it, compared part by part with the context that is sent."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from agents.messages import File, Message, Text, Thinking, ToolCall, ToolResult
from agents.providers.base import Request
from agents.providers.forms import FORMS, preview, sent_reasoning
from chat.models import ChatMessage, MessageType, Session
from chat.projections.context import context, from_summary, is_in_context
from chat.projections.context_diff import Since, new_rows, rows_before, since
from chat.projections.context_view import Block, ExclusionReason, SentReasoning, blocks
from chat.projections.estimate import of_part, of_text
from chat.projections.measure import correct, measure_request
from chat.projections.requests import request_rows, row_as_sent
from tests.projections.test_context_random import any_rows
from tests.support.effort import cases

Fields = dict[str, object]
NOT_SENT = (ExclusionReason.NOT_GIVEN_BACK,)


def row(number: int, **fields: object) -> ChatMessage:
    return ChatMessage(id=f"m_{number}", session=Session(id="s_1"), sequence=number, revision=number, **fields)


def said(number: int, text: str, **fields: object) -> ChatMessage:
    return row(number, role="user", text=text, sender="Ana", **fields)


def laid(rows: list[ChatMessage]) -> list[tuple[str | None, list[tuple[str, ExclusionReason]]]]:
    return [(block.role, [(line.row.pk, line.why) for line in block.lines]) for block in blocks(rows)]


@settings(max_examples=cases(200), deadline=None)
@given(rows=any_rows())
def test_any_rows_are_shown_as_they_are_sent(rows: list[ChatMessage]) -> None:
    """CTX-01, MSG-09: the blocks are the context's messages, complete and in order.

    Each row except the markers of turns is shown, with a reason if it is not sent.
    """
    shown = blocks(rows, {}, by("anthropic", "scripted", "one"))
    assert [Message(block.role, block.parts) for block in shown if block.role] == context(rows)
    there = {line.row.pk for block in shown for line in block.lines}
    assert there == {
        row.pk for row in from_summary(rows) if row.type not in (MessageType.TURN_START, MessageType.TURN_DONE)
    }
    for block in shown:
        assert block.lines
        for line in block.lines:
            assert line.parts or line.why != ExclusionReason.SENT


def by(form: str, provider: str, model: str) -> SentReasoning:
    """Return a function that finds the reasoning that a vendor's form gives back."""
    return lambda messages: sent_reasoning(form, Request(model, tuple(messages)), provider)


@settings(max_examples=cases(100), deadline=None)
@given(rows=any_rows())
def test_reasoning_is_shown_as_sent_where_a_vendor_gets_it(rows: list[ChatMessage]) -> None:
    """MSG-08: reasoning that is shown as not sent is in no form of the request."""
    for form in FORMS:
        shown = [block for block in blocks(rows, {}, by(form, "scripted", "one")) if block.role]
        kept = [
            Message(block.role, tuple(part for line in block.lines for part in line.parts if line.why not in NOT_SENT))
            for block in shown
            if block.role
        ]
        whole, without = Request("one", tuple(context(rows))), Request("one", tuple(kept))
        assert preview(form, whole, "scripted") == preview(form, without, "scripted")


ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
SEALED = {"item": json.dumps(ITEM)}
UNSEALED = {"item": json.dumps({**ITEM, "encrypted_content": None})}
CALL: Fields = {"type": "tool_group", "tool_call_id": "c1", "tool_name": "add", "status": "completed"}
SO: Fields = {"text": "So"}


@pytest.mark.parametrize(
    ("form", "data", "maker", "following", "sent"),
    [
        ("anthropic", {"signature": "sig"}, ("own", "one"), SO, True),
        ("anthropic", {"redacted": "sig"}, ("own", "one"), SO, True),
        ("anthropic", {"signature": "sig"}, ("own", "two"), SO, False),
        ("anthropic", {"signature": "sig"}, ("other", "one"), SO, False),
        ("anthropic", {}, ("own", "one"), SO, False),
        ("anthropic", SEALED, ("own", "one"), SO, False),
        ("anthropic", {"field": "reasoning"}, ("own", "one"), CALL, False),
        ("openai", {"field": "reasoning"}, ("own", "one"), CALL, True),
        ("openai", {"field": "reasoning"}, ("own", "one"), SO, False),
        ("openai", {"field": "reasoning"}, ("other", "one"), CALL, False),
        ("openai", {"signature": "sig"}, ("own", "one"), CALL, False),
        ("openai", SEALED, ("own", "one"), CALL, False),
        ("responses", SEALED, ("own", "one"), {**SO, "provider_data": {"item_id": "msg_1", "after": "rs_1"}}, True),
        ("responses", SEALED, ("own", "one"), SO, False),
        ("responses", SEALED, ("own", "two"), SO, False),
        ("responses", UNSEALED, ("own", "one"), {**SO, "provider_data": {"item_id": "msg_1", "after": "rs_1"}}, False),
        ("responses", {"signature": "sig"}, ("own", "one"), SO, False),
    ],
)
def test_reasoning_is_sent_if_the_body_contains_it(
    form: str, data: dict[str, str], maker: tuple[str, str], following: Fields, *, sent: bool
) -> None:
    """MSG-08, CTX-02: the panel shows which reasoning each vendor's form drops."""
    made: Fields = {"role": "assistant", "response_id": "r_1", "provider": maker[0], "model": maker[1]}
    rows = [said(1, "Hi"), row(2, type="reasoning", text="Ponder", provider_data=data, **made)]
    rows += [row(3, **{**made, **following})]
    lines = [line for block in blocks(rows, {}, by(form, "own", "one")) for line in block.lines]
    assert [line.why for line in lines if line.row.pk == "m_2"] == [
        ExclusionReason.SENT if sent else ExclusionReason.NOT_GIVEN_BACK
    ]
    whole = json.dumps(preview(form, Request("one", tuple(context(rows))), "own").messages)
    assert any(words in whole for words in ("Ponder", "sig", "sealed")) == sent


def test_thinking_at_the_end_of_an_answer_is_not_sent() -> None:
    """MSG-08: Anthropic refuses an answer that ends with thinking, so the request drops it."""
    made: Fields = {"role": "assistant", "response_id": "r_1", "provider": "own", "model": "one"}
    rows = [said(1, "Hi"), row(2, text="So", **made)]
    rows += [row(3, type="reasoning", text="Ponder", provider_data={"signature": "sig"}, **made)]
    lines = [line for block in blocks(rows, {}, by("anthropic", "own", "one")) for line in block.lines]
    assert [line.why for line in lines] == [ExclusionReason.SENT, ExclusionReason.SENT, ExclusionReason.NOT_GIVEN_BACK]


def test_what_is_not_sent_says_why() -> None:
    """CTX-01, CTX-04, MSG-09: the rows that are not sent are shown in their places, with a reason."""
    rows = [
        row(1, role="system", text="Be kind."),
        row(2, type="turn_start"),
        said(3, "Hi"),
        row(4, type="reasoning", role="assistant", response_id="r_1", text="Hm", provider="own"),
        row(5, role="assistant", response_id="r_1", text="So", include_in_context=False),
        row(6, type="tool_group", role="assistant", response_id="r_1", tool_call_id="c1", result="2"),
        row(7, type="error", status="failed", text="No."),
        row(8, type="reasoning", role="assistant", response_id="r_2", text="Lost"),
        said(9, ""),
        row(10, type="tool_group", role="assistant", response_id="r_3", tool_call_id="c2", status="running"),
        row(11, type="turn_done"),
    ]
    assert laid(rows) == [
        (None, [("m_1", ExclusionReason.PROMPT)]),
        ("user", [("m_3", ExclusionReason.SENT)]),
        (
            "assistant",
            [("m_4", ExclusionReason.NOT_GIVEN_BACK), ("m_5", ExclusionReason.LEFT_OUT), ("m_6", ExclusionReason.SENT)],
        ),
        ("user", [("m_6", ExclusionReason.SENT)]),
        (None, [("m_7", ExclusionReason.ERROR)]),
        (None, [("m_8", ExclusionReason.LED_NOWHERE)]),
        (None, [("m_9", ExclusionReason.EMPTY)]),
        ("assistant", [("m_10", ExclusionReason.AT_WORK)]),
        ("user", [("m_10", ExclusionReason.AT_WORK)]),
    ]


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 0, 0),
        ("Why is checkout slow on Fridays? It was quick last week.", 10, 16),
        ("为什么周五结账很慢？上周还很快。", 11, 18),
        ("Почему оплата медленная по пятницам?", 9, 25),
        ("👍" * 8, 8, 24),
        ("\ud800", 1, 1),
    ],
)
def test_estimates_are_of_the_right_size(text: str, least: int, most: int) -> None:
    """MSG-12: letters, characters and emoji are estimated, and lone surrogates cause no error."""
    assert least <= of_text(text) <= most


def test_files_calls_and_results_are_estimated() -> None:
    """CTX-02: a picture is estimated by its size, a PDF by its pages, and a call by its name and arguments."""
    assert of_part(File("image", "a.png", "image/png", "", "750×100")) == 100
    assert of_part(File("image", "a.png", "image/png", "", "9000×9000")) < 4000
    assert of_part(File("pdf", "a.pdf", "application/pdf", "", "3 pages")) == 6000
    assert of_part(ToolCall("c1", "double", {"n": 1})) == of_part(ToolCall("c1", "double", {}, '{"n": 1}'))
    assert of_part(ToolResult("c1", "x" * 400)) > of_part(Text("x" * 400)) == of_part(Thinking("x" * 400)) == 100


def answered(**fields: object) -> list[Block]:
    answer: Fields = {"role": "assistant", "text": "So", "provider": "own", "model": "one", "response_id": "r_1"}
    return blocks([said(1, "x" * 384), row(2, **answer, **fields), said(3, "x" * 384)])


def test_estimates_are_set_right_by_what_was_read() -> None:
    """RUN-04: the estimate is corrected by the input tokens of the same model's last response."""
    measure = measure_request(answered(input_tokens=200), 0.0, ("own", "one"))
    assert (measure.factor, measure.read, measure.tokens(50)) == (2.0, 200, 100)
    for unknown in (answered(), answered(input_tokens=10_000)):
        assert measure_request(unknown, 0.0, ("own", "one")).read is None
    assert measure_request(answered(input_tokens=200), 0.0, ("own", "two")).factor == 1.0
    assert correct(10.0, 0.0, 5).factor == 1.0


def test_what_was_changed_since_sets_nothing_right() -> None:
    """RUN-04: if rows were changed since that response, it does not correct the estimate."""
    rows = answered(input_tokens=200)
    rows[0].lines[0].row.revision = 9
    assert measure_request(rows, 0.0, ("own", "one")).factor == 1.0


def test_rows_are_compared_with_what_they_were() -> None:
    """MSG-11: rows are marked as removed, excluded or edited, and as new if they precede the answer and were not
    sent."""
    then = said(1, "Hi")
    assert since(then, said(1, "Hi", edited_at=None)) == Since.SAME
    assert since(then, said(1, "Ho")) == Since.EDITED
    assert since(then, said(1, "Ho", include_in_context=False)) == Since.LEFT_OUT
    gone = said(1, "Hi")
    gone.sequence = None
    assert since(then, gone) == Since.REMOVED
    live = [then, said(2, "Added"), row(3, role="assistant", response_id="r_1", text="So"), said(4, "Later")]
    assert [each.pk for each in new_rows(rows_before(live, "r_1"), {"m_1": then})] == ["m_2"]
    assert [each.pk for each in new_rows(rows_before(live, "r_gone"), {"m_1": then})] == ["m_2", "m_3", "m_4"]


@settings(max_examples=cases(100), deadline=None)
@given(rows=any_rows())
def test_names_are_of_what_speaks(rows: list[ChatMessage]) -> None:
    """MSG-01: known messages are sent as a number up to the first changed one, and the others are named."""
    for number, each in enumerate(rows, 1):
        each.revision = number
    in_context = [(each.pk, each.revision) for each in rows if is_in_context(each)]
    assert request_rows(rows, None).rows == tuple(in_context)
    for known in range(len(rows) + 1):
        some = request_rows(rows, known)
        assert some.shared == sum(revision <= known for _pk, revision in in_context)
        assert some.rows == tuple(in_context[some.shared :])


def test_a_row_without_a_record_is_what_it_is() -> None:
    """MSG-11: a row without a revision was sent with its present content, at the given place and included."""
    was = row_as_sent(said(7, "Hi", include_in_context=False), None, 2)
    assert (was.sequence, was.text, was.include_in_context) == (2, "Hi", True)
