"""Send messages, and edit, withdraw or send queued ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.bus.events import StatusChanged
from chat.errors import NoSuchMessage, ServiceError
from chat.limits.quotas import require_disk_for, require_turn
from chat.models import (
    Attachment,
    ChatMessage,
    MessageRevision,
    MessageRole,
    MessageStatus,
    MessageType,
    RunState,
    Schedule,
    Session,
    User,
    without_files,
)
from chat.queries.attachments import fetch_attachments
from chat.queries.cast import addressed_agents
from chat.runs import lease
from chat.services.idempotency import request_digest, require_same_request
from chat.services.messages import attachments
from chat.services.messages.mentioning import (
    mentioned_ids,
    mentions_after_edit,
    mentions_in,
    notify_mentioned,
    with_agents,
)
from chat.services.messages.senders import sender_in
from chat.services.messages.validation import validate_characters, validate_message
from chat.services.optimistic_lock import require_current
from chat.services.runs import asking
from chat.services.runs.delegation import report_to_caller_on_commit
from chat.services.runs.turns import deliver, open_turn, resume_waiting
from chat.services.sessions import replies, titles, user_state
from chat.services.transaction import SessionTransaction, save_revision
from chat.services.webhooks import outbox


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of a send. If `repeated`, a message with this key existed, and nothing was added (MSG-02).

    `turn_id` is "" and `sequence` None while the message is queued.
    """

    id: str
    queued: bool
    repeated: bool = False
    turn_id: str = ""
    sequence: int | None = None


@transaction.atomic
def send_message(
    *,
    session: Session,
    author: User,
    text: str,
    key: str | None = None,
    attachment_ids: Sequence[str] = (),
    schedule: Schedule | None = None,
) -> Sent:
    """Add a user message: in a new turn if the agent is idle (RUN-01), else to the queue (RUN-06).

    A message of a `schedule` is always for the agent, and its turn has the mode `run` (MSG-09). `attachment_ids` are
    unsent files of the author; with files the text may be empty. Raise ServiceError if the text is empty, too long or
    cannot be stored, a file is missing, the session is archived, or the key was used for another request.
    """
    text, key = validate_message(text, may_be_empty=bool(attachment_ids)), validate_characters(key or "") or None
    digest = request_digest({"text": text, "attachments": list(attachment_ids)}) if key else None
    tx = SessionTransaction.lock(session.pk)
    if key and (repeated := _sent_before(session, author, key, digest)) is not None:
        return repeated
    tx.require_active()
    require_disk_for(text)
    replies.follow_people(tx)
    agents = addressed_agents(tx.session, text) or ([tx.session.agent] if schedule is not None else [])
    if agents:
        require_turn(author, starts=tx.run.state == RunState.IDLE)
    row = _new_message(tx, author, text, schedule)
    row.idempotency_key, row.key_digest, row.for_agent = key, digest, bool(agents)
    if tx.run.state == RunState.IDLE:
        _begin_turn(tx, row, agents, attachment_ids)
    else:
        _queue(tx, row, attachment_ids)
    notify_mentioned(tx, row)
    if schedule is None:
        outbox.message_sent(tx, row)
        user_state.delete_sent_draft(session=session, user=author, sent=text)
    tx.save(*titles.set_first_title(tx, row))
    if agents and not tx.run.delegating and not (schedule is not None and tx.run.state == RunState.WAITING):
        lease.request(session.pk)
    return Sent(row.pk, queued=row.status == MessageStatus.QUEUED, turn_id=row.turn_id, sequence=row.sequence)


def _new_message(tx: SessionTransaction, author: User, text: str, schedule: Schedule | None) -> ChatMessage:
    return ChatMessage(
        type=MessageType.TEXT,
        role=MessageRole.USER,
        text=text,
        sender=sender_in(tx.session, author),
        user=author,
        mode=tx.session.mode if schedule is None else Session.Mode.RUN,
        workflow_id="" if schedule is None else schedule.pk,
        arguments=with_agents(tx.session, None if schedule is None else schedule.label, text),
        mentions=mentions_in(tx.session, author, text),
    )


def _sent_before(session: Session, author: User, key: str, digest: str | None) -> Sent | None:
    """Return the result of the request that used this key, if there was one."""
    row = ChatMessage.objects.filter(session_id=session.pk, idempotency_key=key).first()
    if row is None:
        return None
    if row.user_id != author.pk:
        raise ServiceError("key_taken", _("This message key is already used. Send the message again."))
    require_same_request(row.key_digest, digest)
    is_queued = row.status == MessageStatus.QUEUED and row.removed_at is None
    return Sent(row.pk, queued=is_queued, repeated=True, turn_id=row.turn_id, sequence=row.sequence)


def _begin_turn(tx: SessionTransaction, row: ChatMessage, agents: Sequence[str], attachment_ids: Sequence[str]) -> None:
    """Add a message to an idle session, in a new turn of these agents. Without agents no turn begins."""
    row.turn_id = open_turn(tx, row.user_id, agents, workflow_id=row.workflow_id) if agents else ""
    _add(tx, row, attachment_ids)
    tx.record_event("user_message", row, {"model": tx.session.model})
    if agents:
        tx.events.append(StatusChanged("thinking"))


def _queue(tx: SessionTransaction, row: ChatMessage, attachment_ids: Sequence[str]) -> None:
    """Add a message to the queue while a turn runs or waits.

    If the agent waits for answers of users, the message replaces the answers: the turn ends, and the next one begins.
    If a running call waits for an answer, this happens when the call has ended. Other messages stay queued until the
    turn has ended: messages that are not for the agent, messages of a schedule, for which no user waits, and messages
    that arrive while other agents work for this one (UI-12).
    """
    row.status = MessageStatus.QUEUED
    _add(tx, row, attachment_ids)
    tx.record_event("message_updated", row)
    if row.for_agent and not row.workflow_id:
        _replace_answers(tx)


def _replace_answers(tx: SessionTransaction) -> None:
    """Let the agent continue with a queued message if it waits for answers of users."""
    if not tx.run.delegating:
        resume_waiting(tx)
        asking.skip(tx)
        report_to_caller_on_commit(tx.session.caller_session_id)


def _add(tx: SessionTransaction, row: ChatMessage, attachment_ids: Sequence[str]) -> None:
    tx.add_rows([row])
    if attachment_ids:
        attachments.claim(message=row, attachment_ids=attachment_ids)
    else:
        without_files(row)


@transaction.atomic
def edit_queued(*, session: Session, author: User, message_id: str, text: str, seen: int | None = None) -> int:
    """Edit the author's own queued message. Return its revision.

    As when a message is sent, the text decides whether the agent has to answer it. Raise ServiceError, with the code
    "stale" if the author edited it after the revision `seen`, as on another page.
    """
    tx = SessionTransaction.lock(session.pk)
    row = _queued_message(tx, message_id)
    if row.user_id != author.pk:
        raise ServiceError("not_yours", _("Only the sender can edit a queued message."))
    text = validate_message(text, may_be_empty=row.attachments.exists())
    require_current(row, seen, row.text)
    save_revision(row, author, MessageRevision.Kind.EDIT)
    before = mentioned_ids(row)
    for_agent = bool(row.workflow_id or addressed_agents(tx.session, text))
    is_request = for_agent and not row.for_agent and not row.held
    if is_request:
        require_turn(author, starts=False)
    values = {"text": text, "edited_at": timezone.now(), "for_agent": for_agent}
    tx.update("message_updated", row, values | mentions_after_edit(tx.session, row, text))
    notify_mentioned(tx, row, before=before)
    if is_request:
        _replace_answers(tx)
    tx.save()
    if is_request and not tx.run.delegating:
        lease.request(session.pk)
    return row.revision


@transaction.atomic
def withdraw(*, session: Session, author: User, message_id: str, as_staff: bool = False) -> list[Attachment]:
    """Remove a message from the queue: the author's own, or any as the session's owner or as staff in the admin.

    Return the files of the author's own message, which are unsent again. Files of other users stay with their message.
    Raise ServiceError.
    """
    tx = SessionTransaction.lock(session.pk)
    row = _queued_message(tx, message_id)
    is_own = row.user_id == author.pk
    if not (is_own or as_staff or tx.session.owner_id == author.pk):
        raise ServiceError("not_yours", _("Only the sender and the session owner can remove a queued message."))
    tx.withdraw(row, author)
    files = attachments.give_back(message=row) if is_own else []
    tx.save()
    return files


@transaction.atomic
def send_now(*, session: Session, author: User, message_id: str | None = None) -> int:
    """Send a message that was held by a stop, or all such messages. Return how many were sent (RUN-06).

    They begin a new turn if the agent has to answer any, or join the queue again while it is running. Raise
    ServiceError.
    """
    tx = SessionTransaction.lock(session.pk)
    tx.require_active()
    if message_id is None:
        rows = list(ChatMessage.objects.queued(session.pk).filter(held=True))
    else:
        row = _queued_message(tx, message_id)
        rows = [row] if row.held else []
    if not rows:
        return 0
    is_request = any(row.for_agent for row in rows)
    if is_request:
        require_turn(author, starts=tx.run.state == RunState.IDLE)
    if tx.run.state == RunState.IDLE:
        deliver(tx, rows)
    else:
        fetch_attachments(rows)
        for row in rows:
            tx.update("message_updated", row, {"held": False})
        if is_request and not tx.run.delegating:
            resume_waiting(tx)
            report_to_caller_on_commit(tx.session.caller_session_id)
    tx.save()
    if is_request:
        lease.request(session.pk)
    return len(rows)


def _queued_message(tx: SessionTransaction, message_id: str) -> ChatMessage:
    row = ChatMessage.objects.filter(session_id=tx.session.pk, pk=message_id, removed_at__isnull=True).first()
    if row is None:
        raise NoSuchMessage
    if row.status != MessageStatus.QUEUED:
        raise ServiceError("already_delivered", _("This message was already sent."))
    return row
