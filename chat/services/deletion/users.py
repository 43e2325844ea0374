"""Erase users: their account, their sessions, and their messages in sessions of other users.

The text of their messages is replaced by a placeholder, so that the order of messages and the pairs of tool calls and
results stay valid. Their sessions are erased, unless they are shared with an editor: then the editor with the oldest
share becomes the owner. Titles, system prompts, edits of other users' messages and the summaries that the user
requested belong to the session, and stay without the user's name.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.contrib.admin.models import LogEntry
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models.functions import Length
from django.utils.translation import gettext as _

from chat.bus.events import AccessChanged, MessageRemoved
from chat.errors import NoSuchSession, ServiceError
from chat.models import (
    AgentPreset,
    ApiToken,
    Attachment,
    ChatMessage,
    Membership,
    MessageRevision,
    MessageRole,
    Session,
    SessionRevision,
    SessionRole,
    Share,
    SignInLink,
    Suggestion,
    User,
    Workspace,
)
from chat.queries.attachments import fetch_attachments, stored_name
from chat.services import import_uploads
from chat.services.batches import MAX_ROWS, NO_DEADLINE, Counts, Deadline, Pacer, batches
from chat.services.deletion.log_scrubbing import scrub_session, scrub_user
from chat.services.deletion.names import ERASED_SENDER, erase_names
from chat.services.deletion.purging import delete_messages
from chat.services.deletion.sessions import erase_rows
from chat.services.messages import attachments
from chat.services.people import accounts, knowledge, members, staff
from chat.services.people.security_log import Kind, record
from chat.services.sessions import replies, titles
from chat.services.transaction import SessionTransaction, notify_access_changed

# The placeholder. The model reads it, so it is not translated.
ERASED_TEXT = "[erased]"
# The columns of a message that are cleared with its text.
CLEARED: dict[str, Any] = {
    **dict.fromkeys(("idempotency_key", "key_digest", "provider_data", "edited_at", "edited_by")),
    **dict.fromkeys(("mentions", "arguments")),  # the mentions of agents and the times of a schedule are arguments
    **dict.fromkeys(("edited_by_name", "suggested_by_name"), ""),
    "open_suggestions": 0,
}
# The values of a revision about a message's position, which stay.
PLACE = ("revision", "include_in_context", "after", "anchor", "edited_message")
# How many times an erasure searches for content of the user. Another user's fork can add some in the meantime.
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class UserPlan:
    """The effect of erasing a user: sessions erased, sessions with a new owner, other messages and files erased.

    `workspaces` are those that get a new owner.
    """

    sessions: int
    handed_over: list[tuple[Session, User]]
    messages: int
    files: int
    workspaces: list[tuple[Workspace, User]]


def plan(user: User, leaving: Collection[int] = ()) -> UserPlan:
    """Return what erasing a user would change. Other users who are erased at the same time are in `leaving`."""
    owned = list(Session.objects.filter(owner=user))
    heirs = [(session, heir) for session in owned if (heir := _heir(session)) is not None]
    kept = {session.pk for session, _heir in heirs}
    going = [session.pk for session in owned if session.pk not in kept]
    own_messages = ChatMessage.objects.written_by(user).exclude(session__in=going)
    files = Attachment.objects.filter(user=user).exclude(session__in=going)
    owners = members.owners_after(user, leaving)
    workspaces = [(last.workspace, heir.user) for last, heir in owners if heir is not None]
    return UserPlan(len(going), heirs, own_messages.count(), files.count(), workspaces)


@transaction.atomic
def close_account(user: User, author: User | None) -> None:
    """Remove all of a user's credentials, and close their open pages (LIVE-06). Raise ServiceError.

    If the user is the last owner of a workspace, another member becomes its owner.
    """
    if staff.is_last_administrator(user):
        raise ServiceError(
            "last_administrator",
            _("You can’t remove the last administrator. Make someone else an administrator first."),
        )
    members.hand_over_workspaces(user=user, author=author)
    user.is_active = user.is_staff = user.is_superuser = False
    user.set_unusable_password()
    user.save(update_fields=["is_active", "is_staff", "is_superuser", "password"])
    ApiToken.objects.filter(user=user).delete()
    SignInLink.objects.filter(user=user).delete()
    accounts.sign_out_elsewhere(user=user, keep=None, author=author)
    replies.follow_people_of_later(user.pk)
    notify_access_changed(user.pk)
    for workspace_id in user.memberships.values_list("workspace", flat=True):
        notify_access_changed(user.pk, workspace_id)  # others' pages no longer list the user


def erase_user(user_id: int, counts: Counts | None = None, deadline: Deadline = NO_DEADLINE) -> bool:
    """Erase a user whose account is closed. Return False if the deadline came first."""
    counts = Counts() if counts is None else counts
    user = User.objects.filter(pk=user_id).first()
    if user is None:
        return True
    import_uploads.discard_all(user.pk)
    for _attempt in range(ATTEMPTS):
        for session in Session.objects.filter(owner=user):
            heir = _heir(session)
            if heir is not None and _hand_over(session.pk, user, heir):
                counts["handed_over"] += 1
            elif not erase_rows(session.pk, counts, deadline):
                return False
        if not _erase_words(user, counts, deadline) or not erase_names(user, deadline):
            return False
        _delete_unsent(user)
        if _delete_account(user):
            counts["users"] += 1
            return True
    raise RuntimeError(f"user {user_id} still has sessions or messages")


def _heir(session: Session) -> User | None:
    """Return the editor who becomes the owner of a shared session: the member with the oldest share, not a guest."""
    if session.status == Session.Status.DELETED:
        return None
    editors = Share.objects.filter(session=session, role=SessionRole.EDITOR, user__is_active=True)
    members = Membership.objects.filter(workspace=session.workspace_id).exclude(role=Membership.Role.GUEST)
    share = editors.filter(user__in=members.values("user")).select_related("user").order_by("created_at", "pk").first()
    return share.user if share else None


@transaction.atomic
def _hand_over(session_id: str, user: User, heir: User) -> bool:
    """Make another user of a session its owner. Return False if the session's users have changed since."""
    try:
        tx = SessionTransaction.lock(session_id)
    except NoSuchSession:
        return False
    if tx.session.owner_id != user.pk or not Share.objects.filter(session=session_id, user=heir).delete()[0]:
        return False
    tx.session.owner = heir
    record(Kind.SESSION_HANDED_OVER, actor=None, person=heir.pk, target=tx.session)
    tx.session_changed()
    tx.events.append(AccessChanged())
    tx.session.save(update_fields=["owner", "revision"])
    tx.publish_on_commit()
    replies.follow_people(tx)
    return True


def _erase_words(user: User, counts: Counts, deadline: Deadline) -> bool:
    pacer = Pacer()
    own_messages = ChatMessage.objects.written_by(user)
    for session_id in list(own_messages.order_by().values_list("session", flat=True).distinct()):
        while count := _erase_batch(session_id, user):
            counts["messages"] += count
            if deadline.is_over:
                return False
            pacer.pause()
    return True


def _erase_batch(session_id: str, user: User) -> int:
    """Replace the text of some of a user's messages in a session, and delete those that cannot be restored.

    Messages of an attempt keep their row, too, because the attempt can be restored.
    """
    with transaction.atomic():
        try:
            tx = SessionTransaction.lock(session_id)
        except NoSuchSession:
            return 0
        own_messages = ChatMessage.objects.written_by(user).filter(session=session_id)
        sizes = list(own_messages.order_by().annotate(chars=Length("text")).values_list("pk", "chars")[:MAX_ROWS])
        names = [pk for pk, _chars in next(batches(sizes, lambda row: row[1]), [])]
        if not names:
            return 0
        _erase_title(tx, user)
        live = list(own_messages.filter(pk__in=names, sequence__isnull=False).order_by("sequence"))
        _erase_rows(tx, live)
        _erase_rows(tx, list(own_messages.filter(pk__in=names, sequence__isnull=True).exclude(attempt="")))
        others = own_messages.filter(pk__in=names, sequence__isnull=True)
        for message_id in others.filter(removed_at=None).values_list("pk", flat=True):
            tx.events.append(MessageRemoved(tx.next_revision(), message_id))
        others.filter(removed_at=None).update(revision=tx.session.revision)
        delete_messages(session_id, list(others.values_list("pk", flat=True)))
        tx.session.save(update_fields=["revision"])  # not updated_at, because there is no new content
        tx.publish_on_commit()
    return len(names)


def _erase_rows(tx: SessionTransaction, rows: list[ChatMessage]) -> None:
    """Replace the texts of messages by the placeholder, and delete their files and the content of their revisions."""
    names = [row.pk for row in rows]
    kept = MessageRevision.objects.filter(message__in=names, kind=MessageRevision.Kind.RETRY)
    MessageRevision.objects.filter(message__in=names).exclude(pk__in=kept.values("pk")).delete()
    for pk, before in list(kept.values_list("pk", "before")):  # the revision has the position of an attempt
        flags = {name: value for name, value in before.items() if name in PLACE}
        MessageRevision.objects.filter(pk=pk).update(before=flags)
    Suggestion.objects.filter(message__in=names).delete()
    attached = Attachment.objects.filter(message__in=names)
    files = list(attached.only("file", "size", "created_at"))
    attached.delete()
    attachments.delete_unused(map(stored_name, files))
    attachments.remove_copies_on_commit(tx.session.pk, files)
    fetch_attachments(rows)
    for row in rows:
        values = {"text": ERASED_TEXT, "sender": ERASED_SENDER, "user": None, **CLEARED}
        if row.sequence is None:
            ChatMessage.objects.filter(pk=row.pk).update(**values)
        else:
            tx.update("message_updated", row, values)


def _erase_title(tx: SessionTransaction, user: User) -> None:
    """Clear an automatic title that was made from the user's first message."""
    session = tx.session
    first = ChatMessage.objects.in_conversation(session.pk).filter(role=MessageRole.USER).order_by("sequence").first()
    if first is None or first.user_id != user.pk or not titles.is_title_from(session, first):
        return
    SessionRevision.objects.filter(session=session, kind=SessionRevision.Kind.TITLE, user=None).delete()
    scrub_session(session)
    session.title = ""
    session.config = titles.unmarked(session)
    tx.session_changed()
    session.save(update_fields=["title", "config"])


@transaction.atomic
def _delete_unsent(user: User) -> None:
    unsent = Attachment.objects.filter(user=user, message=None)
    files = list(unsent.values_list("file", flat=True))
    unsent.delete()
    attachments.delete_unused(files)


@transaction.atomic
def _delete_account(user: User) -> bool:
    """Delete the account with all rows that refer to it. Return False if the user still has messages or sessions.

    A staff user's entries in the admin's log stay, under a closed account without a name.
    """
    if ChatMessage.objects.filter(user=user).exists() or Session.objects.filter(owner=user).exists():
        return False
    logged = LogEntry.objects.filter(user=user)
    if logged.exists():
        logged.update(user=_placeholder(user))
    scrub_user(user)
    alone = [each.pk for each in Workspace.objects.filter(members=user) if each.memberships.count() == 1]
    user.picture.delete(save=False)  # before the commit, as with attachments
    delete_row(user)
    left = Workspace.objects.filter(pk__in=alone, sessions=None)
    knowledge.forget(left.values_list("pk", flat=True))
    left.delete()
    return True


@transaction.atomic
def delete_row(user: User) -> None:
    """Delete the row of a user with their picture and their private agents. Shared agents belong to the workspace."""
    AgentPreset.objects.filter(user=user, is_shared=False).delete()
    user.delete()
    if picture := user.picture.name:  # it must exist as long as the caller's transaction can be rolled back
        transaction.on_commit(partial(default_storage.delete, picture))


def _placeholder(user: User) -> User:
    name = f"deleted-{user.pk}"
    while User.objects.filter(username=name).exists():
        name += "-"
    account = User(username=name, display_name=ERASED_SENDER, is_active=False, can_own_workspace=False)
    account.set_unusable_password()
    account.save()
    return account
