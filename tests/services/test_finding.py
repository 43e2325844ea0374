"""Finding text in a session."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from chat.models import ChatMessage, Session, User
from chat.queries import search
from chat.services.sessions.lifecycle import create_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(ana: User) -> Session:
    session = create_session(owner=ana)
    rows: list[dict[str, Any]] = [
        {"role": "user", "text": "Wie groß ist die Änderung?"},
        {"role": "assistant", "text": "100% of `a_b` and 部署脚本"},
        {
            "type": "tool_group",
            "tool_name": "web_fetch",
            "arguments": {"url": "https://x.y/路径"},
            "result": "Found it",
        },
        {"type": "turn_done", "text": "groß"},
    ]
    for number, row in enumerate(rows, 1):
        ChatMessage.objects.create(session=session, sequence=number, **row)
    gone = {"role": "user", "text": "Änderung", "removed_at": timezone.now()}
    ChatMessage.objects.create(session=session, **gone)
    other = create_session(owner=ana)
    ChatMessage.objects.create(session=other, sequence=1, role="user", text="Änderung")
    return session


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("änderung", [1]),
        pytest.param("GROSS", [], marks=pytest.mark.sqlite),  # PostgreSQL may have a capital for ß
        ("GROß", [1]),
        ("部署", [2]),
        ("100%", [2]),
        ("%", [2]),
        ("a_b", [2]),
        ("WEB_FETCH", [3]),
        ("路径", [3]),
        ("found IT", [3]),
        ("  found it  ", [3]),
        ("", []),
        ("   ", []),
        ("\0", []),
    ],
)
def test_text_is_found_in_any_case(session: Session, words: str, found: list[int]) -> None:
    """Texts, names of tools, arguments and results are searched; markers, removed rows and other sessions are not."""
    ids = search.find_in_session(session, words).ids
    assert list(ChatMessage.objects.filter(pk__in=ids).values_list("sequence", flat=True)) == found


def test_each_occurrence_is_counted(session: Session) -> None:
    """Each occurrence counts, so that the page can step through hits in messages that it has not loaded."""
    for number, text in enumerate(("Plan, plan, PLAN", "planned"), 10):
        ChatMessage.objects.create(session=session, sequence=number, role="user", text=text)
    ChatMessage.objects.create(
        session=session, sequence=12, type="tool_group", tool_name="plan", arguments={"plan": "x"}, result="no plan"
    )
    assert search.find_in_session(session, "Plan").counts == [3, 1, 3]
    assert search.find_in_session(session, "Änderung").counts == [1]


def test_of_very_many_the_newest_are_found(session: Session) -> None:
    rows = [ChatMessage(session=session, sequence=number, role="user", text="needle") for number in range(10, 530)]
    ChatMessage.objects.bulk_create(rows)
    found = search.find_in_session(session, "needle")
    assert found.more
    assert found.ids == [row.pk for row in rows[-search.MAX_FOUND_MESSAGES :]]
