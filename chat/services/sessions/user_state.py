"""One user's state of a session: pin, read mark, draft. No other user sees it."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from chat.models import ChatMessage, Session, User, UserSessionState
from chat.queries.session_list import said_by_others
from chat.services.messages.validation import validate_text
from chat.services.transaction import notify_session_lists


def pin(*, session: Session, user: User) -> None:
    """Pin the session in the user's list. Pinning it again changes nothing."""
    _of(session, user).filter(pinned_at=None).update(pinned_at=timezone.now())
    notify_session_lists(users=[user.pk])


def unpin(*, session: Session, user: User) -> None:
    """Unpin the session in the user's list."""
    UserSessionState.objects.filter(session=session, user=user).update(pinned_at=None)
    notify_session_lists(users=[user.pk])


def mark_read(*, session: Session, user: User, revision: int) -> bool:
    """Store that the user has read the session up to a revision. Return False if it was read so far before."""
    seen = min(revision, session.revision)
    before = state_of(user, session).read_revision
    if seen <= before:
        return False
    moved = bool(_of(session, user).filter(read_revision__lt=seen).update(read_revision=seen))
    unread = ChatMessage.objects.filter(said_by_others(user), session=session, revision__gt=before, revision__lte=seen)
    if moved and unread.exists():
        notify_session_lists(users=[user.pk])
    return moved


def keep_read(session_id: str, revision: int) -> None:
    """Keep the session read, up to `revision`, for users who have read all messages: the change has no new text."""
    unread = ChatMessage.objects.filter(
        said_by_others(OuterRef("user")), session=session_id, revision__gt=OuterRef("read_revision")
    )
    readers = UserSessionState.objects.filter(~Exists(unread), session=session_id, read_revision__lt=revision)
    readers.update(read_revision=revision)


def save_draft(*, session: Session, user: User, text: str) -> None:
    """Save the text of the user's composer for their other devices; "" clears it. Raises ServiceError."""
    draft_at = timezone.now() if text else None
    _of(session, user).update(draft=validate_text(text), draft_at=draft_at)


def delete_sent_draft(*, session: Session, user: User, sent: str) -> None:
    """Delete the draft if it is the text that was sent, or its beginning."""
    rows = UserSessionState.objects.filter(session=session, user=user).exclude(draft="")
    draft = rows.values_list("draft", flat=True).first()
    if draft and sent.startswith(draft):
        rows.filter(draft=draft).update(draft="", draft_at=None)


def state_of(user: User, session: Session) -> UserSessionState:
    """Return the user's state of the session; a new one that is not stored if there is none."""
    return UserSessionState.objects.filter(session=session, user=user).first() or UserSessionState(
        session=session, user=user
    )


def _of(session: Session, user: User) -> QuerySet[UserSessionState]:
    """Return the user's row for an update. Create it if it is missing, which two requests may do at the same time."""
    rows = UserSessionState.objects.filter(session=session, user=user)
    if not rows.exists():
        UserSessionState.objects.bulk_create([UserSessionState(session=session, user=user)], ignore_conflicts=True)
    return rows
