"""Check what must hold for every idle session, whatever happened to it."""

from __future__ import annotations

from agents.messages import Message
from chat.models import UNFINISHED, ChatMessage, MessageDelta, RunState, Session, SessionRun
from tests.support.protocol import check_context


def check_rest(session: Session) -> list[Message]:
    """CTX-03, MSG-03, MSG-07, RUN-08: check an idle session and return its context.

    Nothing is unfinished, only messages held by a stop are queued, markers come in pairs, sequences have no gap, and
    model vendors accept the context.
    """
    run = SessionRun.objects.get(pk=session.pk)
    assert (run.state, run.turn_id, run.owner_id, run.done) == (RunState.IDLE, "", None, run.wanted)
    present = ChatMessage.objects.filter(session=session, removed_at__isnull=True).exclude(held=True)
    rows = list(present.order_by("sequence"))
    assert [row.status for row in rows if row.status in (*UNFINISHED, "queued")] == []
    assert [row.sequence for row in rows] == list(range(1, len(rows) + 1))
    assert not MessageDelta.objects.filter(message__session=session).exists()
    _check_turns(rows)
    return check_context(rows)


def _check_turns(rows: list[ChatMessage]) -> None:
    """Check that each turn_start has one turn_done, and that every row lies between the markers of its own turn."""
    open_turn = ""
    for row in rows:
        if row.type == "turn_start":
            assert not open_turn
            open_turn = row.turn_id
        assert row.turn_id == open_turn, f"{row.type} {row.text!r} stands outside its turn"
        if row.type == "turn_done":
            open_turn = ""
    assert not open_turn
