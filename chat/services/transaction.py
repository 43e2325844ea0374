"""How a session's rows change: locks, revisions and sequence numbers. For the other services only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.messages import Json
from chat.bus.events import ChatEvent, MessageChanged, MessageEventName, MessageRemoved, SessionChanged
from chat.bus.publisher import publish
from chat.errors import NoSuchSession, ServiceError
from chat.models import ChatMessage, MessageRevision, Session, SessionRun, User
from chat.snapshots import MessageSnapshot

# What may travel in an event, in characters of text; a larger message is read from its row (64 KB on the layer).
LARGEST_IN_EVENT = 12_000
# A withdrawn message loses its files, so its revision names them; a message is withdrawn at most once.
KEEPS_CONTENT = (MessageRevision.Kind.EDIT, MessageRevision.Kind.WITHDRAW)


class SessionTransaction:
    """A locked session inside a transaction: hands out revisions and sequences, collects what to publish.

    Lock order everywhere: the session's row, then its run's.
    """

    def __init__(self, session: Session, run: SessionRun) -> None:
        self.session = session
        self.run = run
        self.events: list[ChatEvent] = []
        self._sequence: int | None = None

    @classmethod
    def lock(cls, session_id: str) -> SessionTransaction:
        """Lock both rows. Raises NoSuchSession when the session has gone meanwhile."""
        session = Session.objects.select_for_update().filter(pk=session_id).first()
        run = SessionRun.objects.select_for_update().filter(pk=session_id).first()
        if session is None or run is None:
            raise NoSuchSession
        return cls(session, run)

    def require_active(self) -> None:
        """Raise ServiceError when the session is archived, or has been deleted meanwhile."""
        if self.session.status == Session.Status.DELETED:
            raise NoSuchSession
        if self.session.status == Session.Status.ARCHIVED:
            raise ServiceError("archived", _("This session is archived. Restore it to continue."))

    def live(self) -> QuerySet[ChatMessage]:
        """What stands in the session, in no order."""
        return ChatMessage.objects.live(self.session.pk)

    def next_revision(self) -> int:
        self.session.revision += 1
        return self.session.revision

    def next_sequence(self) -> int:
        if self._sequence is None:
            rows = ChatMessage.objects.filter(session_id=self.session.pk)
            self._sequence = rows.aggregate(last=Max("sequence"))["last"] or 0
        self._sequence += 1
        return self._sequence

    def insert(self, name: MessageEventName, row: ChatMessage, details: Json | None = None) -> ChatMessage:
        """Add a row; it gets the next place unless it is queued."""
        self.place(row)
        self.tell(name, row, details)
        return row

    def place(self, row: ChatMessage) -> None:
        """Add a row that is told of when all that belongs to it is there."""
        row.session_id = self.session.pk
        row.revision = self.next_revision()
        if row.status != "queued":
            row.sequence = self.next_sequence()
        row.save(force_insert=True)

    def update(
        self, name: MessageEventName, row: ChatMessage, fields: Mapping[str, Any], details: Json | None = None
    ) -> None:
        """Change a row's columns."""
        for column, value in fields.items():
            setattr(row, column, value)
        row.revision = self.next_revision()
        row.save(update_fields=[*fields, "revision"])
        self.tell(name, row, details)

    def forget_places(self) -> None:
        """Count anew: places have changed."""
        self._sequence = None

    def withdraw(self, row: ChatMessage, author: User | None) -> None:
        """Take a queued row back; it has no place yet, but it and what it was stay on record (MSG-11)."""
        save_revision(row, author, MessageRevision.Kind.WITHDRAW)
        row.removed_at = timezone.now()
        row.revision = self.next_revision()
        row.save(update_fields=["removed_at", "revision"])
        self.events.append(MessageRemoved(row.revision, row.pk))

    def tell(self, name: MessageEventName, row: ChatMessage, details: Json | None = None) -> None:
        arguments = len(str(row.arguments)) if row.arguments else 0
        small = len(row.text) + len(row.result) + arguments <= LARGEST_IN_EVENT
        message = MessageSnapshot.from_row(row) if small else None
        self.events.append(MessageChanged(name, row.revision, row.pk, message, details or {}))

    def session_changed(self) -> None:
        self.events.append(SessionChanged(self.next_revision()))

    def save(self, *columns: str) -> None:
        """Write the session's revision and other columns; publish what was collected when all is committed."""
        self.session.save(update_fields=["revision", "updated_at", *columns])
        self.publish_on_commit()

    def publish_on_commit(self) -> None:
        session_id, events = self.session.pk, tuple(self.events)
        self.events.clear()
        transaction.on_commit(lambda: publish(session_id, events))


def save_revision(row: ChatMessage, author: User | None, kind: MessageRevision.Kind) -> None:
    """Save a revision of a message before it changes (MSG-11)."""
    MessageRevision.objects.create(message=row, user=author, kind=kind, before=record_of(row, kind))


def record_of(row: ChatMessage, kind: MessageRevision.Kind, **more: object) -> Json:
    """Return what a revision of this kind keeps of a message.

    Only a change of the content keeps the content. All other kinds keep the flags and the revision number, so that
    a request of a hundred bytes cannot write megabytes however long the message is.
    """
    if kind not in KEEPS_CONTENT:
        return {"revision": row.revision, "include_in_context": row.include_in_context, **more}
    return {**MessageSnapshot.from_row(row).to_json(), "provider_data": row.provider_data, **more}
