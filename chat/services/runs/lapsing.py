"""Mark approvals as lapsed, on the cards of waiting calls, when their users lose the right to approve (UI-20)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from django.db import transaction
from django.db.models import F, Q

from chat.access import still_may_approve
from chat.errors import NoSuchSession
from chat.models import ChatMessage, MessageStatus, QuestionKind, RunState, Session
from chat.queries import subsessions
from chat.runs.approvals import Standing, column_of, standing_of
from chat.services.runs import delegation
from chat.services.transaction import SessionTransaction, notify_session_lists


def lapse_in_session_later(session_id: str) -> None:
    """Check a session and those below it when the caller's transaction, which changes its users, commits."""
    _later(lambda: Q(session__in=[session_id, *subsessions.below(session_id)]))


def lapse_in_workspace_later(workspace_id: int) -> None:
    """Check the sessions of a workspace when the caller's transaction, which changes a role in it, commits.

    All of them are checked, because a session is no longer open to the workspace if its owner leaves.
    """
    _later(lambda: Q(session__workspace=workspace_id))


def _later(where: Callable[[], Q]) -> None:
    """Lapse on commit.

    The maintenance job finds the other cases: rights that end in another way, and processes that end before the check.
    """
    transaction.on_commit(lambda: lapse(where()), robust=True)


def lapse(where: Q | None = None) -> int:
    """Mark the approvals that their users could not give now as lapsed. Return the number of changed sessions.

    `where` is as in `outdated`.
    """
    return sum(map(_lapse_in, outdated(where)))


def outdated(where: Q | None = None) -> list[str]:
    """Return the ids of the sessions with a waiting call that has an approval which no longer counts.

    `where` is a condition on the messages. None means all sessions of the installation.
    """
    turns = {"session__run__state": RunState.WAITING, "turn_id": F("session__run__turn_id")}
    rows = ChatMessage.objects.filter(
        where or Q(), status=MessageStatus.WAITING, question=QuestionKind.APPROVAL, approval__isnull=False, **turns
    )
    found = rows.select_related("session").only("approval", "session__workspace_id")
    return list(dict.fromkeys(row.session_id for row in found if _after(row, row.session) is not None))


def _after(row: ChatMessage, session: Session) -> Standing | None:
    """Return the standing of a call without the lapsed approvals, or None if no approval has lapsed."""
    standing = standing_of(row.approval)
    if standing is None or not standing.approvals:
        return None
    after = standing.only_of(still_may_approve(standing.approved_by, session, standing.needs.approvers))
    return after if after != standing else None


def _lapse_in(session_id: str) -> bool:
    with suppress(NoSuchSession), transaction.atomic():
        tx = SessionTransaction.lock(session_id)
        rows = tx.messages().filter(status=MessageStatus.WAITING, question=QuestionKind.APPROVAL).order_by("sequence")
        found = [(row, after) for row in rows if (after := _after(row, tx.session)) is not None]
        for row, after in found:
            tx.update("message_updated", row, {"approval": column_of(after)})
        if found:
            tx.save(is_activity=False)
            # The call can wait for these users again, if they regain the right.
            notify_session_lists(sessions=[session_id])
            delegation.report_to_caller_on_commit(tx.session.caller_session_id)
        return bool(found)
    return False
