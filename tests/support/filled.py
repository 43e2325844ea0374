"""Sessions that are filled with rows without running an agent, for tests of users' actions on the rows."""

from __future__ import annotations

from typing import Any

from chat.models import ChatMessage, Session

Fields = dict[str, Any]

START: Fields = {"type": "turn_start"}
DONE: Fields = {"type": "turn_done", "duration_seconds": 1.0}
HI: Fields = {"role": "user", "text": "Hi", "sender": "Ana"}
THOUGHT: Fields = {"type": "reasoning", "role": "assistant", "text": "Hm", "provider_data": {"signature": "abc="}}
ANSWER: Fields = {"role": "assistant", "text": "So", "model": "one", "provider": "scripted"}
CUT: Fields = {"role": "assistant", "text": "S", "status": "interrupted"}
TOOL: Fields = {"type": "tool_group", "role": "assistant", "tool_call_id": "c1", "tool_name": "double", "result": "2"}
ERROR: Fields = {"type": "error", "role": "assistant", "status": "failed", "text": "No."}
NOTE: Fields = {"role": "system", "text": "Go on."}


def fill(session: Session, *rows: Fields, turn_id: str = "t_1") -> list[ChatMessage]:
    """Append rows to the session as one turn."""
    present = ChatMessage.objects.filter(session=session, sequence__isnull=False).count()
    made = [
        ChatMessage.objects.create(session=session, sequence=number, revision=number, turn_id=turn_id, **row)
        for number, row in enumerate(rows, start=present + 1)
    ]
    Session.objects.filter(pk=session.pk).update(revision=present + len(rows))
    return made


def live(session: Session) -> list[ChatMessage]:
    return list(ChatMessage.objects.filter(session=session, sequence__isnull=False).order_by("sequence"))


def places(session: Session) -> list[tuple[int, str]]:
    """Return (sequence, id) of every live row."""
    return [(row.sequence or 0, row.pk) for row in live(session)]
