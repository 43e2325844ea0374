"""Pin, archive, delete and leave sessions, and undo these actions; for one session or many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.access import deleted_session_for, session_for
from chat.bus.events import AccessChanged
from chat.errors import NoSuchSession, ServiceError
from chat.models import RunState, Session, SessionRole, Share, User, UserSessionState
from chat.queries import subsessions
from chat.runs import lease
from chat.services.people import guests
from chat.services.people.following import copy_people_below, require_own_people
from chat.services.people.security_log import Kind, record
from chat.services.runs import delegation
from chat.services.runs.lapsing import lapse_in_session_later
from chat.services.runs.turns import deliver_queued, hold_queued
from chat.services.sessions import replies, user_state
from chat.services.transaction import SessionTransaction, notify_session_lists, publish_on_commit

# A session whose deletion is undone within this time keeps its place in lists.
UNDO_TIME = timedelta(minutes=10)


class SessionAction(StrEnum):
    """An action on sessions in a list."""

    PIN = "pin"
    UNPIN = "unpin"
    ARCHIVE = "archive"
    RESTORE = "restore"
    DELETE = "delete"
    UNDELETE = "undelete"
    LEAVE = "leave"


UNDOES = {
    SessionAction.PIN: SessionAction.UNPIN,
    SessionAction.UNPIN: SessionAction.PIN,
    SessionAction.ARCHIVE: SessionAction.RESTORE,
    SessionAction.RESTORE: SessionAction.ARCHIVE,
    SessionAction.DELETE: SessionAction.UNDELETE,
    SessionAction.UNDELETE: SessionAction.DELETE,
}


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The ids of the sessions that were changed, and the number `left_out` because the user lacks the right."""

    ids: list[str]
    left_out: int


def apply_action(*, user: User, action: SessionAction, session_ids: Iterable[str]) -> ActionResult:
    """Apply an action to all given sessions for which the user has the right.

    Raise the ServiceError of the first session if the user has the right for none.
    """
    done: list[str] = []
    refused: list[ServiceError] = []
    for session_id in dict.fromkeys(session_ids):
        try:
            _FUNCTIONS[action](user=user, session_id=session_id)
            done.append(session_id)
        except ServiceError as refusal:
            refused.append(refusal)
    if refused and not done:
        raise refused[0]
    return ActionResult(done, len(refused))


def pin(*, user: User, session_id: str) -> None:
    """Pin a session in the user's own list."""
    user_state.pin(session=session_for(user, session_id)[0], user=user)


def unpin(*, user: User, session_id: str) -> None:
    """Unpin a session in the user's own list."""
    user_state.unpin(session=session_for(user, session_id)[0], user=user)


@transaction.atomic
def archive(*, user: User, session_id: str) -> None:
    """Archive a session for all users. They can read it, and can continue it after it is restored."""
    session, _role = session_for(user, session_id, SessionRole.OWNER)
    set_archived(session=session, author=user, archived=True)


@transaction.atomic
def restore(*, user: User, session_id: str) -> None:
    """Restore a session from the archive."""
    session, _role = session_for(user, session_id, SessionRole.OWNER)
    set_archived(session=session, author=user, archived=False)


@transaction.atomic
def set_archived(*, session: Session, author: User, archived: bool) -> None:
    """Archive a session, or restore it from the archive. The caller has checked the user's rights."""
    if archived:
        _change(session, status=Session.Status.ARCHIVED, archived_at=timezone.now(), archived_by=author)
    else:
        _change(session, status=Session.Status.ACTIVE, archived_at=None, archived_by=None)


@transaction.atomic
def delete(*, user: User, session_id: str) -> None:
    """Delete a session for all users immediately (LIVE-06). Its rows stay, so that `undelete` restores all of it.

    A running turn is stopped, and queued messages wait.
    """
    session, _role = session_for(user, session_id, SessionRole.OWNER)
    set_deleted(session=session)
    record(Kind.SESSION_DELETED, actor=user, person=session.owner_id, target=session)
    lease.ask_to_stop(session.pk, user.pk)
    delegation.stop(session.pk, user.pk)
    delegation.report_to_caller_on_commit(session.caller_session_id)


@transaction.atomic
def set_deleted(*, session: Session) -> None:
    """Delete a session for all users, together with the sessions in which agents work for it.

    The caller has checked the user's rights, and stops a running turn.
    """
    now = timezone.now()
    _change(session, status=Session.Status.DELETED, deleted_at=now)
    below = Session.objects.filter(pk__in=subsessions.below(session.pk), building_until=None)
    for child in below.exclude(status=Session.Status.DELETED):
        _change(child, status=Session.Status.DELETED, deleted_at=now)


@transaction.atomic
def undelete(*, user: User, session_id: str) -> None:
    """Restore a deleted session for all its users. Its queued messages are held, as after a stop (RUN-06)."""
    restore_deleted(session=deleted_session_for(user, session_id), author=user)


@transaction.atomic
def restore_deleted(*, session: Session, author: User) -> None:
    """Undo the deletion of a session and of those deleted with it. The caller has checked the user's rights."""
    below = Session.objects.filter(pk__in=subsessions.below(session.pk), building_until=None)
    with_it = list(below.filter(status=Session.Status.DELETED, deleted_at=session.deleted_at))
    for each in (session, *with_it):
        _restore_deleted(each)
    record(Kind.SESSION_RESTORED, actor=author, person=session.owner_id, target=session)


def _restore_deleted(session: Session) -> None:
    """Restore one session, without starting a turn. Users decide whether its queued messages are still to be answered.

    If UNDO_TIME has passed since the deletion, the session counts as used now, so that the next `manage.py prune` does
    not delete it again.
    """
    now = timezone.now()
    is_undone = session.deleted_at is not None and now - session.deleted_at < UNDO_TIME
    used: dict[str, object] = {} if is_undone else {"updated_at": now}
    before = Session.Status.ARCHIVED if session.archived_at else Session.Status.ACTIVE
    tx = _change(session, status=before, deleted_at=None, **used)
    hold_queued(tx)
    if tx.run.state == RunState.IDLE:
        deliver_queued(tx)  # those that are for no agent
    if tx.events:
        tx.save(is_activity=False)


@transaction.atomic
def leave(*, user: User, session_id: str) -> None:
    """Remove the user's own share of a session, and the session from their list.

    Members can still open a session that is open to their workspace. Guests leave its workspace with their last share.
    Owners cannot leave.
    """
    session, role = session_for(user, session_id)
    if role == SessionRole.OWNER:
        raise ServiceError("is_owner", _("You own this session. Archive or delete it instead."))
    require_own_people(session)
    tx = SessionTransaction.lock(session.pk)
    Share.objects.filter(session=session, user=user).delete()
    # A session that is open to the workspace, now or later, is listed for members with a state.
    states = UserSessionState.objects.filter(session__in=[session.pk, *subsessions.below(session.pk)], user=user)
    states.delete()
    notify_session_lists(users=[user.pk])
    copy_people_below(session.pk)
    guests.end_memberships(workspace_id=session.workspace_id, user_ids=[user.pk])
    record(Kind.UNSHARED, actor=user, person=user, target=session)
    replies.follow_people(tx)
    lapse_in_session_later(session.pk)
    publish_on_commit(session.pk, [AccessChanged()])


def _change(session: Session, **values: object) -> SessionTransaction:
    """Change columns of the session itself. It keeps its position in lists, unless `updated_at` is one of them."""
    tx = SessionTransaction.lock(session.pk)
    if tx.session.building_until is not None:
        raise NoSuchSession  # the session is being erased
    if tx.session.status != session.status and Session.Status.DELETED in (tx.session.status, session.status):
        raise NoSuchSession  # deleted or restored since it was read
    for column, value in values.items():
        setattr(tx.session, column, value)
    tx.session_changed()
    tx.events.append(AccessChanged())
    tx.session.save(update_fields=["revision", *values])
    tx.publish_on_commit()
    return tx


class _ActionFunction(Protocol):
    def __call__(self, *, user: User, session_id: str) -> None: ...


_FUNCTIONS: dict[SessionAction, _ActionFunction] = {
    SessionAction.PIN: pin,
    SessionAction.UNPIN: unpin,
    SessionAction.ARCHIVE: archive,
    SessionAction.RESTORE: restore,
    SessionAction.DELETE: delete,
    SessionAction.UNDELETE: undelete,
    SessionAction.LEAVE: leave,
}
