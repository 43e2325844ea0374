"""One user's state of a session: pin, read mark, draft. No other user sees it."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from chat.bus.publisher import stirred
from chat.models import ChatMessage, Session, User, UserSessionState
from chat.queries.session_list import said_by_others
from chat.services.messages.validation import bounded


def pin(*, session: Session, user: User) -> None:
    """Keep the session on top of the person's list; pinning it again changes nothing."""
    _of(session, user).filter(pinned_at=None).update(pinned_at=timezone.now())
    _tell(user)


def unpin(*, session: Session, user: User) -> None:
    """Unpin the session in the user's list."""
    UserSessionState.objects.filter(session=session, user=user).update(pinned_at=None)
    _tell(user)


def mark_read(*, session: Session, user: User, revision: int) -> bool:
    """Remember that the person has seen the messages up to a revision; it never goes back. False: nothing new."""
    seen = min(revision, session.revision)
    before = participation_of(user, session).read_revision
    if seen <= before:
        return False
    moved = bool(_of(session, user).filter(read_revision__lt=seen).update(read_revision=seen))
    news = ChatMessage.objects.filter(said_by_others(user), session=session, revision__gt=before, revision__lte=seen)
    if moved and news.exists():
        _tell(user)
    return moved


def carry_readers(session_id: str, revision: int) -> None:
    """Let messages be changed in nothing but their places: who has read them all will still have by `revision`."""
    news = ChatMessage.objects.filter(
        said_by_others(OuterRef("user")), session=session_id, revision__gt=OuterRef("read_revision")
    )
    readers = UserSessionState.objects.filter(~Exists(news), session=session_id, read_revision__lt=revision)
    readers.update(read_revision=revision)


def save_draft(*, session: Session, user: User, text: str) -> None:
    """Save the text of the user's composer, for their other devices. "" clears it. Raises ServiceError."""
    draft_at = timezone.now() if text else None
    _of(session, user).update(draft=bounded(text), draft_at=draft_at)


def forget_draft(*, session: Session, user: User, sent: str) -> None:
    """Forget the draft that became a message: it is the text that was sent, or how that began."""
    rows = UserSessionState.objects.filter(session=session, user=user).exclude(draft="")
    draft = rows.values_list("draft", flat=True).first()
    if draft and sent.startswith(draft):
        rows.filter(draft=draft).update(draft="", draft_at=None)


def participation_of(user: User, session: Session) -> UserSessionState:
    """What the session is to the person; a fresh one, not stored, where it has been nothing yet."""
    return UserSessionState.objects.filter(session=session, user=user).first() or UserSessionState(
        session=session, user=user
    )


def _tell(user: User) -> None:
    """Their other pages' lists show it too."""
    user_id = user.pk
    transaction.on_commit(lambda: stirred(people=[user_id]))


def _of(session: Session, user: User) -> QuerySet[UserSessionState]:
    """Find the person's row to change it; make it first where there is none, which two requests may do at once."""
    rows = UserSessionState.objects.filter(session=session, user=user)
    if not rows.exists():
        UserSessionState.objects.bulk_create([UserSessionState(session=session, user=user)], ignore_conflicts=True)
    return rows
