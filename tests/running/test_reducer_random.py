"""Random turns, produced by the real loop and stored by the reducer, which can end at any point."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.errors import AgentError
from agents.events import ResponseStarted, TurnFailed, TurnFinished
from agents.messages import Message, Thinking
from agents.providers.scripted import Reply
from chat.projections.context import context
from chat.runs.turn_state import ProcessLost, Stopped, TurnEvent
from tests.running.test_reducer_prefixes import check_ends, check_texts
from tests.support.effort import cases
from tests.support.ledger import Turn
from tests.support.protocol import check_context
from tests.support.scripted_turn import run_script
from tests.support.scripts import scripts

ENDS: list[TurnEvent] = [
    Stopped(),
    ProcessLost(resume=False),
    ProcessLost(resume=True),
    TurnFailed(AgentError("Something broke.")),
]


@settings(max_examples=cases(150), deadline=None)
@given(script=scripts, data=st.data())
def test_random_turn_can_end_anywhere(script: list[Reply], data: st.DataObject) -> None:
    """RUN-08, RUN-15, CTX-02, CTX-03: the rows are complete after any end, and both vendors accept the context that is
    built from them."""
    events = run_script(*script, max_rounds=3)[0]
    length = data.draw(st.integers(0, len(events)))
    end = data.draw(st.sampled_from(ENDS))
    turn = Turn().apply(*events[:length], end)
    ended = length == len(events) and events[-1] != TurnFinished("waiting")
    goes_on = end == ProcessLost(resume=True) and not ended
    assert turn.ledger.closed == (0 if goes_on else 1)
    check_ends(turn, seconds=length + (0 if ended else 1), may_wait=goes_on)
    check_texts(turn, events[:length], timed=ended or not isinstance(end, ProcessLost))
    check_context(turn.ledger.messages(), may_wait=goes_on)


@settings(max_examples=cases(150), deadline=None)
@given(script=scripts)
def test_context_from_rows_equals_the_history_of_the_loop(script: list[Reply]) -> None:
    """MSG-08, CTX-01: before every request, the context built from the rows equals the loop's own history byte for
    byte."""
    events, provider = run_script(*script, max_rounds=3)
    turn, projected = Turn(), []
    for event in events:
        if isinstance(event, ResponseStarted):
            projected.append(context(turn.ledger.messages()))
        turn.apply(event)
    assert projected == [spoken(request.messages) for request in provider.requests]


def spoken(messages: Sequence[Message]) -> list[Message]:
    """Return the messages without those that contain only reasoning, which no vendor accepts."""
    return [message for message in messages if not all(isinstance(part, Thinking) for part in message.parts)]
