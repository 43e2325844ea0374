"""What people say: sending, and changing what is still queued."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from chat.events import StatusChanged
from chat.models import ChatMessage, MessageRevision, MessageStatus, MessageType, RunState, Session, Speaker, User
from chat.running import lease
from chat.services.errors import NoSuchMessage, Refused
from chat.services.rows import OpenSession, remember
from chat.services.turns import open_turn


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a send; `repeated`: this key had been sent before and nothing was added (MSG-02)."""

    id: str
    queued: bool
    repeated: bool = False


@transaction.atomic
def send_message(*, session: Session, author: User, text: str, key: str | None = None) -> Sent:
    """Add a user text: as a new turn when the agent is idle (RUN-01), queued while it works (RUN-06).

    Raises Refused: empty, unstorable or too long text, an archived session, a key of somebody else's message.
    """
    text, key = storable(text), exact(key or "") or None
    opened = OpenSession.lock(session.pk)
    before = ChatMessage.objects.filter(session_id=session.pk, key=key).first() if key else None
    if before is not None:
        if before.user_id != author.pk:
            raise Refused("key_taken", "This message key is in use. Send the message again.")
        waits = before.status == MessageStatus.QUEUED and before.removed_at is None
        return Sent(before.pk, waits, repeated=True)
    opened.require_active()
    row = ChatMessage(
        type=MessageType.TEXT,
        role=Speaker.USER,
        text=text,
        sender=author.sender[:200],
        user=author,
        mode=opened.session.mode,
        key=key,
    )
    if opened.run.state == RunState.IDLE:
        row.run_id = open_turn(opened)
        opened.insert("user_message", row, {"model": opened.session.model})
        opened.events.append(StatusChanged("thinking"))
    else:
        row.status = MessageStatus.QUEUED
        opened.insert("message_updated", row)
    opened.save()
    lease.request(session.pk)
    return Sent(row.pk, row.status == MessageStatus.QUEUED)


@transaction.atomic
def edit_queued(*, session: Session, author: User, message_id: str, text: str) -> None:
    """Change one's own message while it is queued. Raises Refused."""
    text = storable(text)
    opened = OpenSession.lock(session.pk)
    row = _own_queued(opened, author, message_id)
    remember(row, author, MessageRevision.Kind.EDIT)
    opened.update("message_updated", row, {"text": text, "edited_at": timezone.now()})
    opened.save()


@transaction.atomic
def withdraw(*, session: Session, author: User, message_id: str) -> None:
    """Take one's own message back while it is queued. Raises Refused."""
    opened = OpenSession.lock(session.pk)
    opened.remove(_own_queued(opened, author, message_id), author, MessageRevision.Kind.WITHDRAW)
    opened.save()


def _own_queued(opened: OpenSession, author: User, message_id: str) -> ChatMessage:
    row = ChatMessage.objects.filter(session_id=opened.session.pk, pk=message_id, removed_at__isnull=True).first()
    if row is None:
        raise NoSuchMessage
    if row.user_id != author.pk:
        raise Refused("not_yours", "Only its sender can change a queued message.")
    if row.status != MessageStatus.QUEUED:
        raise Refused("already_delivered", "This message has been delivered already.")
    return row


def storable(text: str) -> str:
    """Check that a text can be kept exactly as it is (MSG-12). Raises Refused."""
    if not text.strip():
        raise Refused("empty", "The message is empty.")
    if len(text) > settings.MAX_MESSAGE_CHARS:
        limit = f"{settings.MAX_MESSAGE_CHARS:,}"
        raise Refused(
            "too_long", f"The message has {len(text):,} characters; the limit is {limit}. Shorten or split it."
        )
    return exact(text)


def exact(text: str) -> str:
    """Refuse the characters that no database or browser keeps: NUL and lone surrogates."""
    if "\0" in text:
        raise Refused("not_storable", "The text holds NUL characters, which cannot be stored. Remove them.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused("not_storable", "The text holds broken Unicode (lone surrogates). Remove them.") from None
    return text
