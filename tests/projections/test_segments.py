"""Segments show the agent's actions, turn by turn."""

from __future__ import annotations

from hypothesis import given, settings

from chat.models import ChatMessage, Session
from chat.projections.segments import ToolSegment, TurnSegments, WordsSegment, segments
from tests.projections.test_context_random import any_rows
from tests.support.effort import cases


def row(number: int, turn: str, **fields: object) -> ChatMessage:
    return ChatMessage(id=f"m_{number}", session=Session(id="s_1"), sequence=number, turn_id=turn, **fields)


def test_segments_are_in_the_order_of_events() -> None:
    """CTX-05: segments are interleaved as the events happened. Each turn has only the agent's part."""
    rows = [
        row(1, "t_1", type="turn_start"),
        row(2, "t_1", role="user", text="Dig here and there"),
        row(3, "t_1", type="reasoning", text="Where?"),
        row(4, "t_1", role="assistant", text="Here."),
        row(5, "t_1", type="tool_group", tool_call_id="c1", tool_name="dig", arguments={"at": "here"}, result="a bone"),
        row(6, "t_1", role="assistant", text="There.", include_in_context=False),
        row(7, "t_1", type="tool_group", tool_call_id="c2", status="failed", is_error=True, result="a rock"),
        row(8, "t_1", type="turn_done"),
        row(9, "t_2", type="turn_start"),
        row(10, "t_2", role="user", text="And?"),
        row(11, "t_2", type="tool_group", tool_call_id="c3", tool_name="dig", status="running"),
    ]
    first = (
        WordsSegment("reasoning", "Where?"),
        WordsSegment("text", "Here."),
        ToolSegment("c1", "dig", {"at": "here"}, "success", "a bone", None),
        WordsSegment("text", "There."),
        ToolSegment("c2", "unknown", {}, "error", None, "a rock"),
    )
    second = (ToolSegment("c3", "dig", {}, "running", None, None),)
    assert segments(rows) == [TurnSegments("t_1", 1, first), TurnSegments("t_2", 9, second)]


@settings(max_examples=cases(60), deadline=None)
@given(rows=any_rows())
def test_any_rows_keep_their_order(rows: list[ChatMessage]) -> None:
    """CTX-05, MSG-10: each row of the agent is one segment in its place, even if a user edited it."""
    agents = [each for each in rows if each.type in ("reasoning", "tool_group")]
    agents += [each for each in rows if each.type == "text" and each.role not in ("user", "system")]
    agents.sort(key=lambda each: each.sequence or 0)
    found = [segment for turn in segments(rows) for segment in turn.segments]
    kinds = ["tool" if each.type == "tool_group" else each.type for each in agents]
    assert [segment.type for segment in found] == kinds
    words = [segment.content for segment in found if isinstance(segment, WordsSegment)]
    assert words == [each.text for each in agents if each.type != "tool_group"]
