"""Finding words among the messages of one session."""

from __future__ import annotations

import json
from dataclasses import dataclass

from django.db.models import Q

from chat.models import ChatMessage, MessageType, Session

MOST = 500
LONGEST = 200


@dataclass(frozen=True, slots=True)
class Found:
    """Ids of the messages that hold the words, in order; `more` when there are so many that the oldest are missing."""

    ids: list[str]
    more: bool


def find(session: Session, words: str) -> Found:
    """Look for words as they are, in capitals or not, in what stands in a session's messages."""
    words = words.strip()[:LONGEST]
    if not words or "\0" in words:
        return Found([], more=False)
    rows = ChatMessage.objects.live(session.pk).filter(_holding(words))
    shown = rows.exclude(type__in=(MessageType.TURN_START, MessageType.TURN_DONE))
    ids = list(shown.order_by("-sequence").values_list("pk", flat=True)[: MOST + 1])
    return Found(ids[:MOST][::-1], more=len(ids) > MOST)


def _holding(words: str) -> Q:
    """SQLite knows capitals of ASCII only: others are asked for by name. JSON may hold words in its own spelling."""
    wanted = Q()
    for form in {words} if words.isascii() else {words, words.lower(), words.upper(), words.capitalize()}:
        for column in ("text", "result", "tool_name", "arguments"):
            wanted |= Q(**{f"{column}__icontains": form})
        if (spelled := json.dumps(form)[1:-1]) != form:
            wanted |= Q(arguments__icontains=spelled)
    return wanted
