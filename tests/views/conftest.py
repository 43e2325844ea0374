"""Fixtures for the pages: a signed-in client, a session, and rows to show."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from chat.models import ChatMessage, Session, User
from chat.services.sessions.lifecycle import create_session


@pytest.fixture
def session(ana: User) -> Session:
    """A session of Ana."""
    return create_session(owner=ana, title="Plan")


@pytest.fixture
def signed_in(client: Client) -> Callable[[User], Client]:
    """A function that signs a user in: `signed_in(ana).get(…)`."""

    def sign_in(user: User) -> Client:
        client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def said(session: Session, ana: User) -> Callable[[int], list[ChatMessage]]:
    """A function that fills the session: `said(30)` creates thirty messages of every kind, in order."""

    def fill(count: int) -> list[ChatMessage]:
        rows = [_row(session, ana, number) for number in range(1, count + 1)]
        return ChatMessage.objects.bulk_create(rows)

    return fill


def _row(session: Session, ana: User, number: int) -> ChatMessage:
    kinds = (
        {"type": "turn_start"},
        {"role": "user", "text": f"Question {number}", "sender": "Ana", "user": ana},
        {"type": "reasoning", "role": "assistant", "text": "*Hm*", "model": "one", "duration_ms": 1200},
        {"type": "tool_group", "tool_name": "bash", "arguments": {"command": "ls"}, "result": "a\nb", "model": "one"},
        {"role": "assistant", "text": f"Answer **{number}**", "model": "one", "duration_ms": 12_000},
        {"type": "error", "text": f"Problem {number}"},
        {"role": "system", "text": "A note"},
        {"type": "turn_done", "duration_seconds": 75.0},
    )
    columns = {"sequence": number, "revision": number, **kinds[(number - 1) % len(kinds)]}
    return ChatMessage(session=session, **columns)
