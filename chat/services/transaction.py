"""SessionTransaction, the unit of work in which services change the rows of a session.

All services publish through this module: when the caller's transaction commits, and never when it rolls back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.messages import Json
from chat import ids
from chat.bus import publisher
from chat.bus.events import ChatEvent, MessageChanged, MessageEventName, MessageRemoved, SessionChanged, UsageChanged
from chat.errors import NoSuchMessage, NoSuchSession, ServiceError
from chat.models import ChatMessage, MessageRevision, Session, SessionRun, User
from chat.queries.webhooks import HAS_WEBHOOKS
from chat.row_statements import insert_rows, lock_row_with, lock_rows, update_returning, update_row
from chat.snapshots import MessageSnapshot

# The most characters of text in an event, because the channel layer takes 64 KB. Larger messages are read from their
# row.
MAX_SIZE_IN_EVENT = 12_000
_HAS_WEBHOOKS = HAS_WEBHOOKS.format(session="chat_session")
# Kinds whose revision keeps the content. A withdrawn message loses its files, so its revision lists them.
KEEPS_CONTENT = (MessageRevision.Kind.EDIT, MessageRevision.Kind.WITHDRAW)


class SessionTransaction:
    """A unit of work on one session: its rows are locked, and its changes are published on commit.

    It assigns revisions and sequence numbers, and collects the events. It locks the session's row before the run's row,
    so that transactions cannot deadlock.
    """

    def __init__(
        self,
        session: Session,
        run: SessionRun,
        last_sequence: int | None = None,
        *,
        has_queued: bool = True,
        has_webhooks: bool,
    ) -> None:
        """Wrap rows that are locked already.

        `last_sequence` is the session's last sequence number; None reads it when it is needed. `has_queued` is False if
        the caller knows that no message is queued. `has_webhooks` is read by the statement that locks the session.
        """
        self.session = session
        self.run = run
        self.has_queued = has_queued
        self.has_webhooks = has_webhooks
        self.events: list[ChatEvent] = []
        # Users and the tokens of responses for which `quotas.record_tokens` has to be called.
        self.used: list[tuple[int | None, int]] = []
        self._sequence = last_sequence

    @classmethod
    def lock(cls, session_id: str) -> SessionTransaction:
        """Lock both rows. Raise NoSuchSession if the session no longer exists."""
        found, runs = lock_row_with(Session, session_id, _HAS_WEBHOOKS), lock_rows(SessionRun, [session_id])
        if found is None or not runs:
            raise NoSuchSession
        session, has_webhooks = found
        return cls(session, runs[0], has_webhooks=bool(has_webhooks))

    def require_active(self) -> None:
        """Raise ServiceError if the session is archived, NoSuchSession if it is deleted."""
        require_active(self.session)

    def messages(self) -> QuerySet[ChatMessage]:
        """Return the messages of the conversation, unordered."""
        return ChatMessage.objects.in_conversation(self.session.pk)

    def message(self, message_id: str) -> ChatMessage:
        """Return a message of the conversation. Raise NoSuchMessage, also for queued and removed messages."""
        row = self.messages().filter(pk=message_id).first() if ids.may_be_one(message_id) else None
        if row is None:
            raise NoSuchMessage
        return row

    def next_revision(self) -> int:
        self.session.revision += 1
        return self.session.revision

    def next_sequence(self) -> int:
        if self._sequence is None:
            rows = ChatMessage.objects.filter(session_id=self.session.pk)
            self._sequence = rows.aggregate(last=Max("sequence"))["last"] or 0
        self._sequence += 1
        return self._sequence

    def insert(self, name: MessageEventName, row: ChatMessage, details: Json | None = None) -> None:
        """Add a row and record its event. The row gets the next sequence number unless it is queued."""
        self.add_rows([row])
        self.record_event(name, row, details)

    def add_rows(self, rows: Sequence[ChatMessage]) -> None:
        """Add rows in one statement. The caller records their events after it has added their attachments."""
        for row in rows:
            row.session_id, row.workspace_id = self.session.pk, self.session.workspace_id
            row.revision = self.next_revision()
            if row.status != "queued":
                row.sequence = self.next_sequence()
        insert_rows(rows)

    def update(
        self, name: MessageEventName, row: ChatMessage, fields: Mapping[str, Any], details: Json | None = None
    ) -> None:
        """Change a row's columns and record the event."""
        for column, value in fields.items():
            setattr(row, column, value)
        row.revision = self.next_revision()
        update_row(row, [*fields, "revision"])
        self.record_event(name, row, details)

    def update_by_id(
        self,
        name: MessageEventName,
        message_id: str,
        fields: Mapping[str, Any],
        details: Json | None = None,
        *,
        more_text: str = "",
    ) -> ChatMessage:
        """Change columns of a row without reading it first, and record the event. Return the row.

        `more_text` is appended to its text.
        """
        values = {**fields, "revision": self.next_revision()}
        row = update_returning(ChatMessage, message_id, values, more_text)
        self.record_event(name, row, details)
        return row

    def reset_sequence(self) -> None:
        """Read the last sequence number again, because messages have moved."""
        self._sequence = None

    def withdraw(self, row: ChatMessage, author: User | None) -> None:
        """Remove a queued row. The row and a revision of it stay stored (MSG-11)."""
        save_revision(row, author, MessageRevision.Kind.WITHDRAW)
        row.removed_at = timezone.now()
        row.revision = self.next_revision()
        update_row(row, ["removed_at", "revision"])
        self.events.append(MessageRemoved(row.revision, row.pk))

    def record_event(self, name: MessageEventName, row: ChatMessage, details: Json | None = None) -> None:
        """Record the event of a changed row. Viewers read a large row from the database, so the event leaves it out."""
        arguments = len(str(row.arguments)) if row.arguments else 0
        asked = len(str(row.asked)) if row.asked else 0
        small = len(row.text) + len(row.result) + arguments + asked <= MAX_SIZE_IN_EVENT
        message = MessageSnapshot.from_row(row) if small else None
        self.events.append(MessageChanged(name, row.revision, row.pk, message, details or {}))

    def session_changed(self) -> None:
        self.events.append(SessionChanged(self.next_revision()))

    def usage_changed(self) -> None:
        """Report the session's token counts, its model and that model's limit (RUN-04), which the caller saves."""
        used = self.session.context_used, self.session.context_window, self.session.total_tokens
        self.events.append(UsageChanged(*used, self.session.model))

    def save(self, *columns: str, is_activity: bool = True) -> None:
        """Save the session's revision and other columns, and publish the events on commit.

        Lists are ordered by `updated_at`, the time of the last activity in the conversation. Pass False for
        `is_activity` if only the session's own columns change.
        """
        activity = ["updated_at"] if is_activity else []
        update_row(self.session, ["revision", *activity, *columns])
        self.publish_on_commit()

    def publish_on_commit(self) -> None:
        """Publish the events recorded so far on commit, and clear the list of events."""
        events, self.events = self.events, []
        transaction.on_commit(partial(publisher.publish, self.session.pk, events))


def require_active(session: Session) -> None:
    """Raise ServiceError if a session is archived, NoSuchSession if it is deleted."""
    if session.status == Session.Status.DELETED:
        raise NoSuchSession
    if session.status == Session.Status.ARCHIVED:
        raise ServiceError("archived", _("This session is archived. Restore it to continue."))


def publish_on_commit(session_id: str, events: Sequence[ChatEvent]) -> None:
    """Send events to the viewers of a session on commit, for changes that need no SessionTransaction."""
    transaction.on_commit(partial(publisher.publish, session_id, events))


def notify_session_lists(*, sessions: Iterable[str] = (), users: Iterable[int] = (), read_in: str = "") -> None:
    """Notify open pages on commit that their list changed: those of users who may see `sessions`, and of `users`.

    `read_in` is the session in which `users` have read, if nothing else is new for them.
    """
    notify = partial(publisher.notify_session_lists, sessions=sessions, users=users, read_in=read_in)
    transaction.on_commit(notify)


def notify_access_changed(user_id: int, workspace_id: int | None = None) -> None:
    """Let every process check a user's rights again on commit, and close connections that are no longer permitted.

    `workspace_id` is the workspace in which the user's role has changed, so that open pages show it.
    """
    transaction.on_commit(partial(publisher.notify_access_changed, user_id, workspace_id))


def notify_login_ended(key_hash: str) -> None:
    """Let every process close the connections of a login on commit. `key_hash` is the hash of the login's key."""
    transaction.on_commit(partial(publisher.notify_login_ended, key_hash))


def save_revision(row: ChatMessage, author: User | None, kind: MessageRevision.Kind) -> None:
    """Save a revision of a message before it changes (MSG-11)."""
    MessageRevision.objects.create(message=row, user=author, kind=kind, before=record_of(row, kind))


def record_of(row: ChatMessage, kind: MessageRevision.Kind, **more: object) -> Json:
    """Return what a revision of this kind keeps of a message.

    Only changes of the content keep the content. The other kinds keep the flags and the revision number, so that a
    small request cannot write a copy of a long message.
    """
    if kind not in KEEPS_CONTENT:
        return {"revision": row.revision, "include_in_context": row.include_in_context, **more}
    return {**MessageSnapshot.from_row(row).to_json(), "provider_data": row.provider_data, **more}
