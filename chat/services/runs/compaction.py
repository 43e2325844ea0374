"""Request summaries of earlier messages, and insert them after those messages (CTX-07).

A worker reads the messages and asks the model under the session's claim, as for a turn, so that no other run can take
place in between. Nothing is written before the summary is complete.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import ids
from chat.bus.events import CompactionEnded, StatusChanged
from chat.errors import ServiceError
from chat.limits import quotas
from chat.models import ChatMessage, MessageRevision, MessageRole, MessageType, Session, User
from chat.projections.compaction import plan
from chat.queries import presets, subsessions
from chat.queries.context_rows import context_rows
from chat.runs import lease
from chat.runs.changes import InsertSummary
from chat.services.messages.ordering import restore_rows
from chat.services.messages.senders import sender_in
from chat.services.runs.turns import require_idle, start_run
from chat.services.sessions.user_state import keep_read
from chat.services.transaction import SessionTransaction


def compact(*, session: Session, author: User) -> None:
    """Let the session's model summarize the older turns, so that the summary replaces them in the context.

    Raise ServiceError if the agent is running, the session is archived, there is nothing to summarize, or a quota of
    the author is used up.
    """
    planned = plan(context_rows(session, "turn_id"), session.context_window)  # before the lock, as it may take a second
    with transaction.atomic():
        tx = SessionTransaction.lock(session.pk)
        tx.require_active()
        require_idle(tx.run)
        if planned is None:
            raise ServiceError("nothing_to_compact", _("There are no earlier messages to summarize yet."))
        quotas.require_turn(author)
        begin(tx, author.pk)
        tx.publish_on_commit()
        lease.request(session.pk)


def begin(tx: SessionTransaction, started_by: int | None) -> None:
    """Open a turn without messages, in which the session's worker makes a summary."""
    start_run(tx.run, ids.turn_id(), started_by, compacting=True)
    tx.events.append(StatusChanged("thinking", activity="compacting"))


def is_due(session: Session) -> bool:
    """Return whether the session compacts itself, and its context has reached the chosen share of the window.

    While another session waits for its answer, it does not, because that session would wait for the summary, too.
    """
    share = presets.compact_at(session)
    used, window = session.context_used, session.context_window
    is_full = bool(share and used and window and used * 100 >= share * window)
    return is_full and not subsessions.is_awaited(session)


def insert(tx: SessionTransaction, change: InsertSummary) -> None:
    """Insert a summary after the messages that it replaces, in its own turn.

    If one of them has changed since the model read it, store only the number of used tokens.
    """
    session = tx.session
    session.total_tokens += change.tokens
    tx.used.append((tx.run.started_by_id or session.owner_id, change.tokens))
    after = tx.messages().filter(pk=change.after).first()
    if after is None or after.sequence is None or _last_change(tx, change, after.sequence) > change.read_revision:
        tx.events.append(CompactionEnded("changed"))
    else:
        _insert(tx, change, after, tx.run.started_by)  # started_by is None if the session compacts itself
        session.context_used = change.context_used
        tx.events.append(CompactionEnded("done", change.messages))
    tx.usage_changed()


def _last_change(tx: SessionTransaction, change: InsertSummary, place: int) -> int:
    first = tx.messages().filter(pk=change.first).values_list("sequence", flat=True).first()
    read = tx.messages().filter(sequence__range=(first or 0, place)).aggregate(last=Max("revision"))
    return int(read["last"] or 0)


def _insert(tx: SessionTransaction, change: InsertSummary, after: ChatMessage, author: User | None) -> None:
    # The rows get the time of the row before, so that times stay in order. The revision has the real time and the
    # author.
    common = {"session": tx.session, "turn_id": tx.run.turn_id, "mode": tx.session.mode, "timestamp": after.timestamp}
    summary = ChatMessage(
        type=MessageType.TEXT,
        role=MessageRole.SYSTEM,
        text=change.text,
        summarises=change.messages,
        user=author,
        sender=sender_in(tx.session, author) if author else "",
        provider=change.provider,
        model=change.model,
        **common,
    )
    start = ChatMessage(type=MessageType.TURN_START, **common)
    rows = [start, summary, ChatMessage(type=MessageType.TURN_DONE, duration_seconds=0.0, **common)]
    for row in rows:
        row.removed_at = timezone.now()  # without a position, until the row gets one
        row.save(force_insert=True)
    MessageRevision.objects.create(message=summary, user=author, kind=MessageRevision.Kind.ADD, before={})
    restore_rows(tx, rows, after)
    keep_read(tx.session.pk, tx.session.revision)  # a summary is not a new message to read
