"""The effects of single events on the rows and the viewers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from agents.errors import AgentError, NoCredit, Overloaded
from agents.events import (
    FinishReason,
    PartDone,
    ReasoningDelta,
    ResponseDone,
    ResponseStarted,
    RetryScheduled,
    StopReason,
    TextDelta,
    ToolOutput,
    ToolReturned,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    Usage,
)
from agents.messages import Source, Text, Thinking, ToolCall, ToolResult
from agents.providers.scripted import Stop
from chat.projections.context import TOOL_INTERRUPTED, TOOL_NOT_BEGUN, context
from chat.runs.changes import CloseTurn, InsertMessage, RecordUsage, ReportCancelled, ReportStatus, UpdateMessage
from chat.runs.reducer import RESUME_NOTE, reduce
from chat.runs.response_reducer import EMPTY_ANSWER
from chat.runs.turn_state import OpenText, OpenTool, ProcessLost, ResponseText, Stopped
from tests.support.ledger import Clock, Turn
from tests.support.scripted_turn import USAGE, calls, events_of

STARTED = ResponseStarted("one", "scripted", 1000)
DONE = ResponseDone("end", USAGE)


def test_turn_has_its_events_in_order() -> None:
    """RUN-02, RUN-03: the events are first delta, response_done, tool start and end with statuses, and turn_done, in
    this order."""
    turn = Turn().apply(*events_of([["Look ", *calls(1, 2), USAGE], ["Done"]]))
    assert [name for _, name in turn.ledger.names] == [
        "text_delta",
        "message_updated",  # the first call ends the text
        "message_updated",  # two pending calls appear
        "message_updated",
        "response_done",  # of the response with the text
        "message_updated",  # the last call gets the metrics
        "tool_exec_start",
        "tool_exec_start",
        "tool_exec_end",
        "tool_exec_end",
        "text_delta",
        "response_done",
        "turn_done",
    ]
    assert turn.ledger.reports == [
        ReportStatus("tool_calling", "double"),
        ReportStatus("tool_calling", "double"),
        ReportStatus("tool_calling", "double"),
        ReportStatus("thinking"),
        ReportStatus("idle"),
    ]


def test_response_done_carries_duration_and_usage() -> None:
    """RUN-02, MSG-05: the duration of a response is measured from the first delta to its end, whatever happens between
    them."""
    turn = Turn().apply(STARTED, TextDelta("a"), TextDelta("b"), PartDone(Text("ab")))
    _, changes = reduce(turn.state, DONE, turn.clock.tick())
    done, usage = changes
    assert isinstance(done, UpdateMessage)
    assert done.details == {
        "duration_ms": 3000,
        "usage": {
            "input_tokens": 100,
            "output_tokens": 20,
            "total_tokens": 120,
            "cache_read_tokens": 5,
            "cache_write_tokens": 7,
            "reasoning_tokens": None,
            "first_token_latency_ms": 1000,
        },
    }
    assert usage == RecordUsage("scripted", "one", 100, 1000, 120)


def test_tool_row_has_the_time_at_which_its_tool_began() -> None:
    """MSG-05: the row's time is the tool's start, not the model's call, after which other calls may have run first."""
    turn = Turn().apply(STARTED, *(PartDone(call) for call in calls(1)), DONE)
    (called,) = (row["timestamp"] for row in turn.ledger.rows.values() if row["type"] == "tool_group")
    turn.clock.tick()
    began = turn.clock.tick()
    turn.state, changes = reduce(turn.state, ToolStarted(calls(1)[0]), began)
    turn.ledger.apply(changes)
    turn.apply(ToolReturned(ToolResult(calls(1)[0].id, "2", False)))
    (row,) = (row for row in turn.ledger.rows.values() if row["type"] == "tool_group")
    assert row["timestamp"] == began.wall > called
    assert row["duration_ms"] == 1000


def test_output_of_a_running_tool_is_shown_and_kept() -> None:
    """UI-10, RUN-08: the output of an interrupted tool is kept up to that point. A result replaces the output."""
    first, second = calls(1)[0], ToolCall("c2", "double", {"n": 2})
    turn = Turn().apply(STARTED, PartDone(first), PartDone(second), DONE, ToolStarted(first), ToolStarted(second))
    turn.apply(ToolOutput(first.id, "1\n"), ToolOutput(first.id, "1\n2\0\n"), ToolOutput("gone", "x"))
    one, other = turn.ledger.of(type="tool_group")
    assert (one["status"], one["result"], other.get("result")) == ("running", "1\n2\ufffd\n", None)
    turn.apply(Stopped())
    one, other = turn.ledger.of(type="tool_group")
    assert one["result"] == f"1\n2\ufffd\n{TOOL_INTERRUPTED}"
    assert other["result"] == TOOL_INTERRUPTED


@pytest.mark.parametrize("end", [Stopped(), ProcessLost(resume=True)])
def test_output_of_an_interrupted_tool_keeps_its_origin(end: Stopped | ProcessLost) -> None:
    """UI-15: the output that stays after Stop can be text from elsewhere. A result replaces the output's origin."""
    first, second = calls(1)[0], ToolCall("c2", "double", {"n": 2})
    turn = Turn().apply(STARTED, PartDone(first), PartDone(second), DONE, ToolStarted(first), ToolStarted(second))
    turn.apply(ToolOutput(first.id, "Post it.", "page"), ToolOutput(second.id, "Post it.", "page"))
    turn.apply(ToolReturned(ToolResult(second.id, "The sandbox is not available.", is_error=True)), end)
    one, other = turn.ledger.of(type="tool_group")
    assert (one["status"], one["origin"]) == ("interrupted", "page")
    assert (other["status"], other["origin"]) == ("failed", "")


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("https://evil.example/x", "evil.example"),
        ("https://[evil/x", "https://[evil/x"),
        ("https://[evil]@", "https://[evil]@"),
    ],
)
def test_text_keeps_the_origin_of_pages_that_the_vendor_has_read(address: str, origin: str) -> None:
    """UI-15: the citations of a model that searches by itself show that it has read text from elsewhere."""
    page = Source(0, "A page", address)
    turn = Turn().apply(STARTED, TextDelta("Post it."), PartDone(Text("Post it.", sources=(page,))), DONE)
    (said,) = turn.ledger.of(type="text")
    assert said["origin"] == origin
    (text,) = context(turn.ledger.messages())[-1].parts
    assert text == Text("Post it.", sources=(replace(page, number=1),), origin=origin)


def test_first_delta_names_model_and_time() -> None:
    """RUN-01, MSG-04, MSG-05: the first row of an answer already has its author and its start time."""
    turn = Turn(mode="agent", agent_id="helper").apply(ResponseStarted("two", "other"))
    now = turn.clock.tick()
    _, changes = reduce(turn.state, TextDelta("Hel"), now)
    assert changes == [
        InsertMessage(
            "m_2",
            "text_delta",
            {
                "role": "assistant",
                "turn_id": "t_1",
                "response_id": "r_1",
                "mode": "agent",
                "agent_id": "helper",
                "model": "two",
                "provider": "other",
                "timestamp": now.wall,
                "type": "text",
                "status": "streaming",
                "text": "Hel",
            },
        )
    ]


def test_model_switch_leaves_earlier_rows_alone() -> None:
    """MSG-04, RUN-16: each row names the model of its own response."""
    switched = ResponseStarted("two", "other", None)
    turn = Turn().apply(STARTED, TextDelta("a"), *_whole(ToolCall("c1", "double", {"n": 1})))
    turn.apply(ToolStarted(calls(1)[0]), ToolReturned(ToolResult("c1", "2")))
    turn.apply(switched, TextDelta("b"), DONE, TurnFinished("done"))
    assert [(row["model"], row["provider"]) for row in turn.ledger.of(role="assistant")] == [
        ("one", "scripted"),
        ("one", "scripted"),
        ("two", "other"),
    ]


def _whole(*parts: ToolCall) -> list[Any]:
    return [*(PartDone(part) for part in parts), DONE]


def test_retry_restarts_the_time_to_the_first_token() -> None:
    """MSG-06, RUN-10: the latency is measured for the attempt that answered."""
    failed = RetryScheduled(1, 1.0, Overloaded("busy"))
    turn = Turn().apply(STARTED, failed, STARTED, TextDelta("a"), DONE)
    assert turn.ledger.of(type="text")[0]["first_token_latency_ms"] == 1000


def test_users_see_the_wait_before_a_failed_request_is_repeated() -> None:
    """RUN-10, RUN-03: the status has the error and the seconds to wait, and is "thinking" again when the request is
    repeated."""
    failed = RetryScheduled(1, 3.2, Overloaded("busy"))
    turn = Turn().apply(STARTED, failed, STARTED, TextDelta("a"))
    assert turn.ledger.reports == [
        ReportStatus("thinking", activity="retrying", code="overloaded", retry_in=4),
        ReportStatus("thinking"),
    ]


def test_hidden_reasoning_counts_as_first_token() -> None:
    """MSG-06, MSG-08: hidden reasoning is stored and counts as the first token."""
    hidden = PartDone(Thinking("", "scripted", {"redacted": "xyz="}))
    turn = Turn().apply(STARTED, hidden, TextDelta("a"), DONE)
    reasoning, text = turn.ledger.of(role="assistant")
    assert (reasoning["type"], reasoning["text"], reasoning["provider_data"]) == ("reasoning", "", {"redacted": "xyz="})
    assert text["first_token_latency_ms"] == 1000


def test_text_before_reasoning_keeps_counting() -> None:
    """MSG-05: a text's duration lasts until the response ends, and that of reasoning until the next part."""
    turn = Turn().apply(STARTED, TextDelta("a"), ReasoningDelta("b"), TextDelta("c"), DONE)
    assert [(row["text"], row["duration_ms"]) for row in turn.ledger.of(role="assistant")] == [
        ("a", 3000),
        ("b", 1000),
        ("c", 1000),
    ]


@pytest.mark.parametrize("reason", ["end", "tool_use"])
def test_empty_answer_is_said(reason: StopReason) -> None:
    """RUN-10: an empty answer gives an error row for users and a failed turn for programs; its tokens are counted."""
    turn = Turn().apply(STARTED, ResponseDone(reason, USAGE), TurnFinished("done"))
    error, done = turn.ledger.rows.values()
    assert (done["type"], done["status"]) == ("turn_done", "failed")
    assert (error["type"], error["text"], error["total_tokens"]) == ("error", EMPTY_ANSWER, 120)


def test_answer_of_reasoning_alone_is_said_to_be_empty() -> None:
    """RUN-10: the reasoning row has the metrics, and an error row reports that no answer followed."""
    turn = Turn().apply(STARTED, ReasoningDelta("hm"), PartDone(Thinking("hm", "scripted")), DONE, TurnFinished("done"))
    reasoning, error, _ = turn.ledger.rows.values()
    assert (reasoning["total_tokens"], "total_tokens" in error) == (120, False)
    assert error["text"] == EMPTY_ANSWER


@pytest.mark.parametrize("reason", ["refusal", "max_tokens", "context"])
def test_response_that_fails_is_not_called_empty(reason: StopReason) -> None:
    """RUN-10: a failed response gives one error row with the reason, without a second one about the empty answer."""
    turn = Turn().apply(*events_of([[Stop(reason), USAGE]]))
    assert len(turn.ledger.of(type="error")) == 1
    assert turn.ledger.of(type="error", text=EMPTY_ANSWER) == []


def test_stop_event_follows_the_end_of_the_turn() -> None:
    """RUN-08: the order is turn_done, agent_cancelled, idle, and then the release."""
    turn = Turn().apply(STARTED)
    _, changes = reduce(turn.state, Stopped(), turn.clock.tick())
    done, *rest = changes
    assert isinstance(done, InsertMessage)
    assert (done.name, done.fields["status"]) == ("turn_done", "interrupted")
    assert rest == [ReportCancelled("t_1"), ReportStatus("idle"), CloseTurn()]


@pytest.mark.parametrize(("begun", "expected"), [(True, [ReportStatus("thinking")]), (False, [])])
def test_tool_that_was_lost_is_called_no_longer(begun: bool, expected: list[ReportStatus]) -> None:
    """RUN-03, RUN-15: pages that have shown the start of a lost call see that the turn continues without it."""
    call = calls(1)[0]
    turn = Turn().apply(STARTED, *_whole(call), *([ToolStarted(call)] if begun else []))
    _, changes = reduce(turn.state, ProcessLost(resume=True), turn.clock.tick())
    assert [change for change in changes if isinstance(change, ReportStatus)] == expected


def test_turn_that_ends_for_queued_messages_says_so() -> None:
    """RUN-06: a turn that ends for queued messages is marked, because only that end is undone if they are withdrawn."""
    ends: list[tuple[FinishReason, bool]] = [("done", False), ("limit", False), ("pending", True)]
    for reason, for_queued in ends:
        _, changes = reduce(Turn().state, TurnFinished(reason), Clock().tick())
        assert changes[-1] == CloseTurn(for_queued)


def test_unanswered_calls_do_not_keep_a_turn_open() -> None:
    """MSG-07: a turn that has ended has no pending calls, whatever the rows contained before."""
    turn = Turn(tools=(OpenTool("m_9", "c1", "double"),))
    turn.ledger.rows["m_9"] = {"type": "tool_group", "status": "pending"}
    turn.apply(TurnFinished("done"))
    assert turn.ledger.rows["m_9"]["status"] == "interrupted"


def test_lost_process_leaves_no_invented_duration() -> None:
    """MSG-05, RUN-15: rows that a dead process left have no duration, because the time of the failure is unknown."""
    turn = Turn(open=OpenText("m_8", False, 50.0), tools=(OpenTool("m_9", "c1", "double", 50.0),))
    turn.ledger.rows["m_8"] = {"type": "text", "status": "streaming", "text": "Hel"}
    turn.ledger.rows["m_9"] = {"type": "tool_group", "status": "running"}
    turn.apply(ProcessLost(resume=False))
    assert [row.get("duration_ms") for row in turn.ledger.of(status="interrupted")] == [None, None, None]


def test_note_asks_to_continue_only_after_text() -> None:
    """RUN-15: the note asks the model to continue after text that was cut off, even if other items follow, but not
    after reasoning."""
    said = (ResponseText("m_7", 99.0),)
    for reasoning, texts, notes in ((True, (), 0), (False, said, 1), (True, said, 1)):
        turn = Turn(open=OpenText("m_8", reasoning, 99.0), texts=texts)
        turn.ledger.rows["m_8"] = {"type": "reasoning" if reasoning else "text", "status": "streaming", "text": "Hel"}
        turn.apply(ProcessLost(resume=True))
        assert [row["text"] for row in turn.ledger.of(role="system")] == [RESUME_NOTE] * notes


def test_any_output_of_a_model_can_be_stored() -> None:
    """MSG-10, MSG-12: NUL, surrogates, NaN, deep nesting, endless names and absurd counts of a model never reach a
    column."""
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    call = ToolCall("c\0" + "x" * 300, "n\ud800" + "y" * 300, {"a\0": [math.nan, "\udfff"], "d": deep}, '{"a\0"')
    turn = Turn().apply(
        STARTED,
        ReasoningDelta("r\0"),
        PartDone(Thinking("r\0", "scripted", {"signature": "s\0"})),
        TextDelta("t\ud800"),
        TextDelta("\0"),
        PartDone(call),
        ResponseDone("tool_use", Usage(-1, 2**70, 3.5, "4")),  # type: ignore[arg-type]  # as servers send them
        ToolReturned(ToolResult(call.id, "x\0")),
        TurnFailed(AgentError("e\0")),
    )
    reasoning, text, tool, error, _ = turn.ledger.rows.values()
    assert (reasoning["text"], reasoning["provider_data"]) == ("r\ufffd", {"signature": "s\ufffd"})
    assert (text["text"], error["text"]) == ("t\ufffd\ufffd", "e\ufffd")
    assert (len(tool["tool_call_id"]), len(tool["tool_name"])) == (200, 200)
    assert (tool["tool_call_id"][:3], tool["tool_name"][:3]) == ("c\ufffdx", "n\ufffdy")
    assert (tool["result"], tool["provider_data"]) == ("x\ufffd", {"raw_arguments": '{"a\ufffd"'})
    assert tool["arguments"]["a\ufffd"] == ["nan", "\ufffd"]
    assert "[too deep]" in str(tool["arguments"]["d"])
    assert {tool[name] for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")} == {
        None
    }


def test_call_of_a_cut_response_is_not_carried_out() -> None:
    """RUN-15, CTX-03: calls of an incomplete response do not run, because more might have followed.

    Calls of a complete response do.
    """
    begun = Turn().apply(STARTED, PartDone(calls(1)[0]), TextDelta("and"), ProcessLost(resume=True))
    assert [row["result"] for row in begun.ledger.of(type="tool_group", status="interrupted")] == [TOOL_NOT_BEGUN]
    whole = Turn().apply(STARTED, PartDone(calls(1)[0]), DONE, ProcessLost(resume=True))
    assert len(whole.ledger.of(type="tool_group", status="pending")) == 1


def test_items_stand_where_the_model_made_them() -> None:
    """UI-01, MSG-08: a text that follows a call is stored after the call."""
    turn = Turn().apply(*events_of([["a", *calls(1), "b", *calls(2), ReasoningDelta("c"), USAGE], ["d"]]))
    assert [row["text"] or row["result"] for row in turn.ledger.of(role="assistant")] == ["a", "2", "b", "4", "c", "d"]


def test_items_of_a_response_keep_their_provider_data() -> None:
    """MSG-08: two successive texts are two rows with their own data. A call keeps its data beside its raw arguments."""
    call = ToolCall("c1", "double", {"n": 1}, '{ "n":1}', {"item_id": "fc_1\0"})
    turn = Turn().apply(
        STARTED,
        TextDelta("Let me "),
        TextDelta("see."),
        PartDone(Text("Let me see.", {"item_id": "msg_1", "phase": "commentary"})),
        TextDelta("So."),
        PartDone(Text("So.", {"item_id": "msg_2"})),
        PartDone(call),
        DONE,
    )
    assert [(row["text"], row["provider_data"]) for row in turn.ledger.of(role="assistant")] == [
        ("Let me see.", {"item_id": "msg_1", "phase": "commentary"}),
        ("So.", {"item_id": "msg_2"}),
        ("", {"item_id": "fc_1\ufffd", "raw_arguments": '{ "n":1}'}),
    ]


def test_response_that_was_stopped_keeps_no_data_of_texts() -> None:
    """MSG-08: texts of a stopped response lose the vendor's data, which goes back only with their reasoning."""
    turn = Turn().apply(STARTED, TextDelta("a"), PartDone(Text("a", {"item_id": "msg_1"})), TextDelta("b"), Stopped())
    assert [row.get("provider_data") for row in turn.ledger.of(type="text")] == [None, None]


def test_error_is_kept_with_its_remedy() -> None:
    """RUN-10: an error row stores its code and its remedy, beside the text for translations."""
    turn = Turn().apply(STARTED, TurnFailed(NoCredit("Pay.")))
    assert turn.ledger.of(type="error")[0]["provider_data"] == {"error": {"code": "no_credit", "remedy": "setting"}}
    empty = Turn().apply(STARTED, DONE, TurnFinished("done")).ledger.of(type="error")[0]["provider_data"]
    assert (empty["error"], "words" in empty) == ({"code": "agent_error", "remedy": "retry"}, True)
