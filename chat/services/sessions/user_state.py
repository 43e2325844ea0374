"""One user's state of a session: pin, read mark, draft. No other user sees it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils import timezone

from chat import access
from chat.models import ChatMessage, Session, User, UserSessionState
from chat.queries.session_list import can_be_unread, is_complete_or_open
from chat.services.messages.validation import validate_text
from chat.services.transaction import notify_session_lists

# The most messages that are read to find users who had unread ones. If there are more, all users are notified.
MAX_CHECKED = 200


def pin(*, session: Session, user: User) -> None:
    """Pin the session in the user's list. Pinning it again changes nothing."""
    _of(session, user).filter(pinned_at=None).update(pinned_at=timezone.now())
    notify_session_lists(users=[user.pk])


def unpin(*, session: Session, user: User) -> None:
    """Unpin the session in the user's list."""
    UserSessionState.objects.filter(session=session, user=user).update(pinned_at=None)
    notify_session_lists(users=[user.pk])


def take_into_list(*, session: Session, user: User) -> None:
    """Add a session to the list of a user who opens it (UI-23). If it is there already, change nothing."""
    if not UserSessionState.objects.filter(session=session, user=user).exists():
        _create(session.pk, [user.pk])
        notify_session_lists(users=[user.pk])


def mark_read(*, session: Session, user: User, revision: int) -> bool:
    """Store that the user has read the session up to a revision. Return False if they had already read that far.

    A read mark does not add a session to the list of a member of its workspace, because it can arrive after the member
    has left the session.
    """
    seen = min(revision, session.revision)
    state = state_of(user, session)
    before = state.read_revision
    if seen <= before:
        return False
    if not session.workspace_role or access.always_listed_for(session.pk, [user.pk]):
        _create(session.pk, [user.pk])
    mine = UserSessionState.objects.filter(session=session, user=user)
    moved = bool(mine.filter(read_revision__lt=seen).update(read_revision=seen))
    unread = ChatMessage.objects.filter(can_be_unread(user), session=session, revision__gt=before, revision__lte=seen)
    if moved and (state.mentioned_revision > before or unread.exists()):
        notify_session_lists(users=[user.pk], read_in=session.pk)
    return moved


@transaction.atomic
def mark_all_read(*, session_id: str, revisions: Mapping[int, int]) -> None:
    """Mark a session as read for many users, as `mark_read` does for one. `revisions` are by the users' ids."""
    session = Session.objects.filter(pk=session_id).only("revision", "workspace_role").first()
    if session is None:
        return
    members = {user_id for user_id, _session in access.roles((user_id, session_id) for user_id in revisions)}
    seen = {user_id: min(revision, session.revision) for user_id, revision in revisions.items() if user_id in members}
    rows = UserSessionState.objects.filter(session=session_id, user__in=seen)
    before, mentioned = dict.fromkeys(seen, 0), dict.fromkeys(seen, 0)
    for user_id, read, mention in rows.values_list("user_id", "read_revision", "mentioned_revision"):
        before[user_id], mentioned[user_id] = read, mention
    moved = {user_id: revision for user_id, revision in seen.items() if revision > before[user_id]}
    if not moved:
        return
    rows = locked_states(
        session_id, moved, create=access.always_listed_for(session_id, moved) if session.workspace_role else moved
    )
    by_revision = defaultdict[int, list[int]](list)
    for user_id, revision in moved.items():
        by_revision[revision].append(user_id)
    for revision, user_ids in by_revision.items():
        rows.filter(user__in=user_ids, read_revision__lt=revision).update(read_revision=revision)
    changed = ChatMessage.objects.filter(
        is_complete_or_open(), session=session_id, revision__gt=min(before[each] for each in moved)
    )
    last = list(changed.order_by("-revision").values_list("revision", "user_id")[:MAX_CHECKED])
    had_unread = [
        user_id
        for user_id, revision in moved.items()
        if len(last) == MAX_CHECKED
        or mentioned[user_id] > before[user_id]
        or any(before[user_id] < at <= revision and user != user_id for at, user in last)
    ]
    notify_session_lists(users=had_unread, read_in=session_id)


def keep_read(session_id: str, revision: int) -> None:
    """Raise the read mark of users who have read all messages to `revision`, because the change has no new text."""
    unread = ChatMessage.objects.filter(
        can_be_unread(OuterRef("user")), session=session_id, revision__gt=OuterRef("read_revision")
    )
    readers = UserSessionState.objects.filter(~Exists(unread), session=session_id, read_revision__lt=revision)
    # Queued messages do not count as unread text yet, but can mention people.
    readers.exclude(mentioned_revision__gt=F("read_revision")).update(read_revision=revision)


def save_draft(*, session: Session, user: User, text: str) -> None:
    """Save the text of the user's composer for their other devices. "" clears it. Raise ServiceError."""
    draft_at = timezone.now() if text else None
    _of(session, user).update(draft=validate_text(text), draft_at=draft_at)


def delete_sent_draft(*, session: Session, user: User, sent: str) -> None:
    """Delete the draft if it is the text that was sent, or its beginning."""
    rows = UserSessionState.objects.filter(session=session, user=user).exclude(draft="")
    draft = rows.values_list("draft", flat=True).first()
    if draft and sent.startswith(draft):
        rows.filter(draft=draft).update(draft="", draft_at=None)


def state_of(user: User, session: Session) -> UserSessionState:
    """Return the user's state of the session, or a new one that is not stored."""
    return UserSessionState.objects.filter(session=session, user=user).first() or UserSessionState(
        session=session, user=user
    )


def _of(session: Session, user: User) -> QuerySet[UserSessionState]:
    """Return the query for the user's row. Create the row if it is missing; two requests may do so at the same time."""
    rows = UserSessionState.objects.filter(session=session, user=user)
    if not rows.exists():
        _create(session.pk, [user.pk])
    return rows


def locked_states(
    session_id: str, user_ids: Collection[int], *, create: Collection[int] | None = None
) -> QuerySet[UserSessionState]:
    """Return the rows of some users, locked in one order, within a transaction.

    Missing rows are created for the users in `create`, or for all users if it is None.
    """
    _create(session_id, user_ids if create is None else create)
    rows = UserSessionState.objects.filter(session=session_id, user__in=user_ids)
    list(rows.order_by("pk").select_for_update().values_list("pk"))
    return rows


@transaction.atomic
def _create(session_id: str, user_ids: Collection[int]) -> None:
    """Create the rows that are missing.

    The session is locked first, because a transaction that sends a message holds that lock and may create the same
    rows. Without the lock, the two could wait for each other: one for the row, and the other's foreign key for the
    session.
    """
    present = UserSessionState.objects.filter(session=session_id, user__in=user_ids).values_list("user_id", flat=True)
    if missing := set(user_ids).difference(present):
        Session.objects.filter(pk=session_id).order_by().select_for_update(no_key=True).values_list("pk").first()
        rows = [UserSessionState(session_id=session_id, user_id=user_id) for user_id in sorted(missing)]
        UserSessionState.objects.bulk_create(rows, ignore_conflicts=True)
