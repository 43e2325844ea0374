"""The rows from which the model's context is built."""

from __future__ import annotations

from django.db.models import Q

from chat.models import ChatMessage, MessageType, Session
from chat.projections.context import CONTEXT_FIELDS, from_summary, system_prompt
from chat.projections.context_view import blocks
from chat.projections.estimate import of_text
from chat.queries.attachments import fetch_attachments

SPEAKING = (MessageType.TEXT, MessageType.REASONING, MessageType.TOOL_GROUP)


def context_rows(session: Session, *more: str) -> list[ChatMessage]:
    """Read the columns of the conversation's rows that the context needs, and `more`, in order, with their files.

    Rows before the last summary are not read, except the first that is in the context: it may be the system prompt
    (CTX-07). The session was read before, so rows may be newer than its revision, but never older.
    """
    live = ChatMessage.objects.in_conversation(session.pk)
    summaries = live.filter(summarises__isnull=False, include_in_context=True).order_by("-sequence")
    last = summaries.values_list("sequence", flat=True).first()
    found = live.only(*CONTEXT_FIELDS, "revision", *more)
    if last is not None:
        speaking = live.filter(include_in_context=True, type__in=SPEAKING).order_by("sequence")
        found = found.filter(Q(sequence__gte=last) | Q(pk__in=speaking.values("pk")[:1]))
    rows = list(found.order_by("sequence"))
    fetch_attachments(rows, with_text=True)
    return from_summary(rows)


def estimated_context(session: Session) -> int:
    """Estimate the tokens of the context, where no response can tell: a summary has just come or gone."""
    rows = context_rows(session)
    around = of_text(system_prompt(rows, session.system_prompt))
    return round(around + sum(block.tokens for block in blocks(rows)))


def is_another_context(session: Session, known: int | None, has_summaries: bool) -> bool:
    """Whether a summary has begun or ceased to stand for other rows since a request at the revision `known`."""
    if known is None or (session.purged_revision or 0) > known:
        return True
    if not has_summaries:
        return False
    return ChatMessage.objects.filter(session=session.pk, summarises__isnull=False, revision__gt=known).exists()
