"""Texts that are added to a session without a run, with the same rows as services write."""

from __future__ import annotations

from django.db.models import Max
from django.utils import timezone

from chat.models import ChatMessage, Session, SessionRun, User


def say(
    session: Session, author: User | None, text: str, *, status: str = "complete", removed: bool = False
) -> ChatMessage:
    """Add a text at the end of the session. Without an author, it is the agent's."""
    if status == "streaming":
        SessionRun.objects.filter(pk=session.pk).update(state="running", turn_id="t_1")
    session.revision += 1
    Session.objects.filter(pk=session.pk).update(revision=session.revision)
    last = ChatMessage.objects.filter(session=session).aggregate(last=Max("sequence"))["last"] or 0
    return ChatMessage.objects.create(
        session=session,
        sequence=None if removed or status == "queued" else last + 1,
        revision=session.revision,
        role="user" if author else "assistant",
        status=status,
        text=text,
        user=author,
        sender=author.sender if author else "",
        model="" if author else "one",
        removed_at=timezone.now() if removed else None,
    )
