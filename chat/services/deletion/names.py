"""Erase a user's name and suggestions from messages of other users.

The rows name the users who edited a message, suggested the edit, stopped a turn, answered the agent or requested a
summary. Their changes and the summaries stay, but the text of their answers is erased.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from chat.errors import NoSuchSession
from chat.models import WITH_DECISIONS, ChatMessage, MessageRevision, QuestionKind, Suggestion, User
from chat.queries.attachments import fetch_attachments
from chat.runs.approvals import without_person
from chat.runs.elicitations import without_answerer
from chat.services.batches import Deadline, Pacer
from chat.services.transaction import SessionTransaction

# In English, because the model reads it.
ERASED_SENDER = "Deleted user"
ERASED_ANSWER = "[erased]"
# Messages per batch. Each may have many long revisions.
MAX_MESSAGES = 20


def erase_names(user: User, deadline: Deadline) -> bool:
    """Replace the user's name, and delete the suggestions. Return False if the deadline came first."""
    pacer = Pacer()
    naming = [_with_texts().filter(condition) for condition in _conditions(user)]
    found = {pk for rows in naming for pk in rows.order_by().values_list("session", flat=True).distinct()}
    for session_id in sorted(found):
        while _erase_batch(session_id, user):
            if deadline.is_over:
                return False
            pacer.pause()
    return True


def _conditions(user: User) -> list[Q]:
    """Return conditions, one of which messages that name the user meet. An index serves each, but not all together."""
    edited = MessageRevision.objects.filter(user=user, kind=MessageRevision.Kind.EDIT).values("message")
    suggested = Suggestion.objects.filter(user=user).values("message")
    # SQLite and PostgreSQL query JSON in different ways, so the decisions are searched as text.
    in_text = Q(decisions__regex=rf'"user_id": ?{user.pk}[,}}]')
    in_text |= Q(asked_text__regex=rf'"answered_by_id": ?{user.pk}[,}}]')
    in_column = [Q(edited_by=user), Q(stopped_by=user), Q(answered_by=user), Q(user=user, summarises__isnull=False)]
    return [WITH_DECISIONS & in_text, *in_column, Q(pk__in=edited), Q(pk__in=suggested)]


def _with_texts() -> QuerySet[ChatMessage]:
    texts = {"decisions": Cast("approval", TextField()), "asked_text": Cast("asked", TextField())}
    return ChatMessage.objects.annotate(**texts)


@transaction.atomic
def _erase_batch(session_id: str, user: User) -> bool:
    try:
        tx = SessionTransaction.lock(session_id)
    except NoSuchSession:
        return False
    is_named = reduce(or_, _conditions(user))
    rows = list(_with_texts().filter(is_named, session=session_id).order_by("pk")[:MAX_MESSAGES])
    fetch_attachments(rows)
    for row in rows:
        _erase_from(tx, row, user)
    tx.session.save(update_fields=["revision"])  # not updated_at, because there is no new content
    tx.publish_on_commit()
    return bool(rows)


def _erase_from(tx: SessionTransaction, row: ChatMessage, user: User) -> None:
    theirs = Suggestion.objects.filter(message=row, user=user)
    names = set(theirs.values_list("user_name", flat=True))
    theirs.delete()
    values = _columns_without_name(row, user, names)
    values["open_suggestions"] = row.suggestions.filter(status=Suggestion.Status.OPEN).count()
    if row.sequence is None:  # not shown by any client, or queued without another user's name
        ChatMessage.objects.filter(pk=row.pk).update(**values)
    elif any(getattr(row, name) != value for name, value in values.items()):
        tx.update("message_updated", row, values)
    for record in MessageRevision.objects.filter(message=row).order_by("pk").iterator():
        before = _unnamed_record(record.before, user, names)
        if before != record.before:
            MessageRevision.objects.filter(pk=record.pk).update(before=before)
    MessageRevision.objects.filter(message=row, user=user).update(user=None)


def _columns_without_name(row: ChatMessage, user: User, names: set[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if row.user_id == user.pk and row.summarises is not None:  # the user's own messages are erased with their text
        values |= {"user": None, "sender": ERASED_SENDER}
    if row.edited_by_id == user.pk:
        values |= {"edited_by": None, "edited_by_name": ERASED_SENDER}
    if row.stopped_by_id == user.pk:
        values |= {"stopped_by": None, "stopped_by_name": ERASED_SENDER}
    if row.suggested_by_name in names:
        values["suggested_by_name"] = ERASED_SENDER
    if row.answered_by_id == user.pk:
        values |= {"answered_by": None, "answered_by_name": ERASED_SENDER, **_columns_without_answer(row)}
    if (approval := without_person(row.approval, user.pk, ERASED_SENDER)) != row.approval:
        values["approval"] = approval
    if (asked := without_answerer(row.asked, user.pk, ERASED_SENDER)) != row.asked:
        values["asked"] = asked
    return values


def _columns_without_answer(row: ChatMessage) -> dict[str, Any]:
    """Return the columns of an answered call without the text of the answer. The result of an approved call stays."""
    answer = row.answer if isinstance(row.answer, dict) else {}
    if row.question == QuestionKind.APPROVAL and answer.get("approved"):
        return {"answer": {name: answer[name] for name in ("approved", "scope") if name in answer}}
    return {"answer": None, "result": ERASED_ANSWER}


def _unnamed_record(before: dict[str, Any], user: User, names: set[str]) -> dict[str, Any]:
    erased = dict(before)
    for name in ("edited_by", "stopped_by"):
        if before.get(f"{name}_id") == user.pk:
            erased |= {name: ERASED_SENDER, f"{name}_id": None}
    for name in ("suggested_by", "accepted_from"):
        if before.get(name) in names:
            erased[name] = ERASED_SENDER
    return erased
