"""A check of what must be true for every idle session, whatever has happened in it."""

from __future__ import annotations

from agents.messages import Message
from chat.models import ChatMessage, MessageDelta, Session, SessionRun
from chat.projections.invariants import is_at_rest, problems_at_rest, problems_of_order, problems_of_run
from chat.queries.verifying import problems_of_workspaces
from tests.support.protocol import check_context


def check_rest(session: Session) -> list[Message]:
    """CTX-03, MSG-03, MSG-07, RUN-08: check an idle session and return its context.

    No message is unfinished, only messages on hold are queued, markers come in pairs, sequences have no gaps, and model
    vendors accept the context.
    """
    run = SessionRun.objects.get(pk=session.pk)
    assert is_at_rest(run), (run.state, run.turn_id, run.owner_id, run.done, run.wanted)
    present = ChatMessage.objects.filter(session=session, removed_at__isnull=True).order_by("sequence")
    rows = [row for row in present if row.sequence is not None]
    queued = [row for row in present if row.sequence is None]
    assert [*problems_of_run(run), *problems_of_order(rows), *problems_at_rest([*rows, *queued])] == []
    assert list(problems_of_workspaces(session=session)) == []
    assert not MessageDelta.objects.filter(message__session=session).exists()
    return check_context(rows)
