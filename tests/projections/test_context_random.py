"""Random rows give a context that vendors accept."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.messages import Message
from chat.models import ChatMessage, MessageStatus, MessageType, Session
from tests.support.effort import cases
from tests.support.protocol import check_context
from tests.support.scripts import words
from tests.wire.responses import seal

STATUSES = [status for status in MessageStatus if status not in (MessageStatus.QUEUED, MessageStatus.STREAMING)]
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
# A placeholder for an item of OpenAI's Responses API, which depends on the row.
ITEM = {"item": ""}
call_ids = st.sampled_from(["", "c1", "c2", "functions.double:0", "call_m_1", "call_m_2", "call_m_1_"])


def with_item(**columns: Any) -> ChatMessage:
    """Make a row; replace ITEM by the API's data, in which the ids of a response's items have the same tail."""
    tail = columns["response_id"].removeprefix("r_") or "0"
    if columns["provider_data"] is ITEM:
        item_id = f"rs_{tail}"
        item = {"type": "reasoning", "id": item_id, "summary": [], "encrypted_content": seal(columns["model"], item_id)}
        text, call = ({"item_id": f"{kind}_{tail}", "after": item_id} for kind in ("msg", "fc"))
        kinds = {MessageType.REASONING: {"item": json.dumps(item)}, MessageType.TEXT: text}
        columns["provider_data"] = kinds.get(columns["type"], call)
    return ChatMessage(**columns)


@st.composite
def any_rows(draw: st.DrawFn) -> list[ChatMessage]:
    """Rows that a run, an edit, an import or the admin may leave."""
    return [
        with_item(
            id=f"m_{number}",
            session=Session(id="s_1"),
            sequence=number,
            type=draw(st.sampled_from([*MessageType, MessageType.TOOL_GROUP, MessageType.TEXT])),
            role=draw(st.sampled_from(["user", "assistant", "assistant", "system", ""])),
            status=draw(st.sampled_from(STATUSES)),
            text=draw(st.just("") | st.just(" \n") | words),
            sender=draw(st.sampled_from(["", "Ana", "B[o]"])),
            user_id=draw(st.sampled_from([None, 1, 2])),
            provider=draw(st.sampled_from(["scripted", "other"])),
            model=draw(st.sampled_from(["one", "one", "two"])),
            response_id=draw(st.sampled_from(["", "r_1", "r_2"])),
            include_in_context=draw(st.sampled_from([True, True, True, False])),
            tool_call_id=draw(call_ids),
            tool_name=draw(st.sampled_from(["", "double", "näme with ß", "x" * 200])),
            arguments=draw(st.just({"n": 1}) | json_values),
            result=draw(st.just("") | words),
            is_error=draw(st.booleans()),
            summarises=draw(st.sampled_from([None, None, None, None, 3])),
            provider_data=draw(
                st.sampled_from([None, ITEM, {"signature": "abc="}, {"redacted": "x"}, {"raw_arguments": '{"n":1}'}])
                | json_values
            ),
        )
        for number in range(1, draw(st.integers(0, 8)) + 1)
    ]


@settings(max_examples=cases(200), deadline=None)
@given(rows=any_rows())
def test_any_rows_make_a_context_that_vendors_take(rows: list[ChatMessage]) -> None:
    """CTX-02, CTX-03, MSG-10: each call occurs once, with one result directly after it, and only the last calls may
    lack results."""
    check_context(rows, may_wait=True)


@settings(max_examples=cases(50), deadline=None)
@given(rows=any_rows())
def test_excluded_rows_leave_no_trace(rows: list[ChatMessage]) -> None:
    """MSG-09: the context of all rows equals the context of the included ones."""
    included = [row for row in rows if row.include_in_context]
    without: list[Message] = check_context(included, may_wait=True)
    assert check_context(rows, may_wait=True) == without
