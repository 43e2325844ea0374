"""A session with all that sessions can contain: messages, agents' work, changes, files and a fork's lineage."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

import pytest
from django.core.files.base import File

from agents.providers.scripted import ScriptedProvider
from chat import agents_setup
from chat.models import ChatMessage, ModelRequest, Session, User
from chat.services.messages import attachments, editing
from chat.services.sessions.lifecycle import create_session, set_system_prompt
from chat.transfer.exporting.sessions import export_json
from tests.support.files import picture
from tests.support.testing_node import ScriptedRegistry

BEGUN = datetime(2026, 2, 28, 14, 30, tzinfo=UTC)
SAID: tuple[dict[str, object], ...] = (
    {"type": "turn_start"},
    {"role": "user", "text": "What is 6 × 7? 你好 🙂", "sender": "Ana"},
    {"type": "reasoning", "role": "assistant", "text": "```\nHm", "provider_data": {"signature": "abc"}},
    {
        "type": "tool_group",
        "role": "assistant",
        "tool_call_id": "c1",
        "tool_name": "calculator",
        "arguments": {"expression": "6*7", "note": "```"},
        "result": "42\n``` \n</details>",
        "duration_ms": 12,
        "asked": [
            {
                "question": {
                    "server": "notes",
                    "message": "How exact?",
                    "fields": [{"id": "places", "label": "Places", "type": "number"}],
                },
                "asked_at": BEGUN.isoformat(),
                "answer": {"action": "accept", "content": {"places": 2}},
                "answered_by": "Bo",
                "answered_at": BEGUN.isoformat(),
            },
            {"question": {"server": "notes", "message": "And now?"}, "withdrawn": "expired"},
        ],
    },
    {
        "role": "assistant",
        "text": "It is\n\n```python\n42",
        "status": "interrupted",
        "input_tokens": 5,
        "output_tokens": 3,
    },
    {"type": "error", "text": "The provider is busy."},
    {"type": "turn_done", "duration_seconds": 75.0},
)


@pytest.fixture
def talk(own_files: None, ana: User) -> Session:
    return fill(ana)


def fill(ana: User) -> Session:
    """Create a session of Ana with one turn, which has a file and an edited, an excluded and a removed message, and
    with a queued message."""
    agents_setup.install(ScriptedRegistry(ScriptedProvider([])))
    session = create_session(owner=ana, title="会议: plan/v2 “A”", provider="scripted", model="one")
    rows = [_row(session, ana, place, columns) for place, columns in enumerate(SAID, 1)]
    ChatMessage.objects.bulk_create(rows)
    _attach(session, ana, rows[1])
    Session.objects.filter(pk=session.pk).update(revision=len(rows), parent_message_id="m_0")
    editing.edit(session=session, author=ana, message_id=rows[1].pk, text="What is 6 × 7?")
    editing.set_included(session=session, author=ana, message_id=rows[3].pk, included=False)
    editing.remove(session=session, author=ana, message_id=rows[5].pk)
    set_system_prompt(session=session, author=ana, system_prompt="Be brief.\n```\nAlways.")
    ModelRequest.objects.create(
        response_id=rows[2].response_id, session=session, revision=2, model="one", rows=[[rows[1].pk, 2]]
    )
    ChatMessage.objects.create(session=session, role="user", status="queued", text="And 8?", user=ana, sender="Ana")
    return Session.objects.get(pk=session.pk)


def _row(session: Session, ana: User, place: int, columns: dict[str, object]) -> ChatMessage:
    is_said = columns.get("role") == "assistant"
    values: dict[str, Any] = {
        "turn_id": "t_" + "1" * 24,
        "response_id": f"r_{session.pk[2:]}" if is_said else "",
        **columns,
    }
    values |= {"model": "one", "provider": "scripted"} if is_said else {}
    values |= {"user": ana} if columns.get("role") == "user" else {}
    return ChatMessage(
        session=session, sequence=place, revision=place, timestamp=BEGUN + timedelta(seconds=place), **values
    )


def _attach(session: Session, ana: User, row: ChatMessage) -> None:
    data = picture()
    file = attachments.upload(session=session, author=ana, name="图.png", size=len(data), file=File(BytesIO(data)))
    attachments.claim(message=row, attachment_ids=[file.pk])


def document(session: Session, **options: bool) -> dict[str, Any]:
    """Return the session's present export."""
    made: dict[str, Any] = json.loads("".join(export_json(Session.objects.get(pk=session.pk), **options)))
    return made
