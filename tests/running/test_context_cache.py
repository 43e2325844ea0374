"""The contexts that a process keeps: they save reads, and never differ from the rows.
tests/services/test_history_random.py compares both after every possible change."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from agents.events import Usage
from agents.messages import ToolCall
from chat.models import ChatMessage, Session, User
from chat.projections.context import NOTHING_AROUND
from chat.queries import context_rows
from chat.queries.context_rows import CHARS_OF_ROW, ContextCache, request_facts
from chat.queries.senders import around_request
from chat.services.messages import editing
from chat.services.sessions.lifecycle import create_session
from tests.support.testing_node import TestNode

TEXTS = ("One", "Two", "Three")


@pytest.fixture
def session(ana: User) -> Session:
    session = create_session(owner=ana, title="Plan")
    for number, text in enumerate(TEXTS, 1):
        add(session, number, text)
    return session


def add(session: Session, number: int, text: str) -> ChatMessage:
    Session.objects.filter(pk=session.pk).update(revision=number)
    return ChatMessage.objects.create(session=session, sequence=number, revision=number, text=text, role="user")


def read(cache: ContextCache, session: Session) -> list[str]:
    present = Session.objects.get(pk=session.pk)
    return [row.text for row in cache.rows(present, request_facts(present))]


def texts_read(cache: ContextCache, session: Session) -> int:
    """Read a context and return how many rows the database returned with their texts."""
    with CaptureQueriesContext(connection) as queries:
        read(cache, session)
    statements = [query["sql"] for query in queries if '"text"' in query["sql"]]
    with connection.cursor() as cursor:
        return sum(len(cursor.execute(sql.replace("%", "%%")).fetchall()) for sql in statements)


@pytest.mark.django_db
def test_only_changes_are_read(session: Session, ana: User, settings: Settings) -> None:
    """CTX-01: a request of a long session reads only new rows, and checks the newest known row again."""
    settings.CHECK_CONTEXT_CACHE = False
    cache = ContextCache()
    assert texts_read(cache, session) == 3
    assert texts_read(cache, session) == 1
    add(session, 4, "Four")
    assert texts_read(cache, session) == 2
    assert read(cache, session) == [*TEXTS, "Four"]
    editing.edit(session=session, author=ana, message_id=session.chat_messages.get(sequence=1).pk, text="Uno")
    assert texts_read(cache, session) == 2
    assert read(cache, session) == ["Uno", "Two", "Three", "Four"]


@pytest.mark.django_db
@pytest.mark.parametrize("lost", ["the newest row", "a change of a row", "a removal"])
def test_transactions_that_a_failover_lost_are_forgotten(
    session: Session, ana: User, settings: Settings, lost: str
) -> None:
    """MSG-01: rows that a failover lost are dropped from the cache even if new changes got their revisions."""
    settings.CHECK_CONTEXT_CACHE = False
    cache = ContextCache()
    rows = {row.sequence: row for row in session.chat_messages.all()}
    before = Session.objects.get(pk=session.pk)
    if lost == "the newest row":
        gone = add(session, 4, "Lost")
        assert read(cache, session) == [*TEXTS, "Lost"]
        gone.delete()
    elif lost == "a change of a row":
        editing.edit(session=session, author=ana, message_id=rows[2].pk, text="Lost")
        assert read(cache, session) == ["One", "Lost", "Three"]
    else:
        editing.remove(session=session, author=ana, message_id=rows[3].pk)
        assert read(cache, session) == ["One", "Two"]
    for row in rows.values():
        row.save()
    before.save()
    for number in range(4, 9):
        add(session, number, f"New {number}")
    assert read(cache, session) == [*TEXTS, *(f"New {number}" for number in range(4, 9))]


@pytest.mark.django_db
def test_least_recently_used_session_is_dropped(
    session: Session, ana: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CTX-01: the memory for contexts is bounded, and a session that exceeds the bound is not kept."""
    settings.CHECK_CONTEXT_CACHE = False
    monkeypatch.setattr(context_rows, "MAX_CHARS", 7 * CHARS_OF_ROW)
    other = create_session(owner=ana, title="Other")
    for number, text in enumerate(TEXTS, 1):
        add(other, number, text)
    cache = ContextCache()
    assert (texts_read(cache, session), texts_read(cache, other)) == (3, 3)
    assert (texts_read(cache, session), texts_read(cache, other)) == (1, 1)
    add(other, 4, "x" * CHARS_OF_ROW)
    assert texts_read(cache, other) == 2
    assert (texts_read(cache, session), texts_read(cache, other)) == (3, 4)


@pytest.mark.django_db
def test_kept_rows_are_compared_with_the_stored_ones(session: Session) -> None:
    """MSG-01: with CHECK_CONTEXT_CACHE, which is on in all tests, a change without a revision raises an error."""
    cache = ContextCache()
    read(cache, session)
    session.chat_messages.filter(sequence=1).update(text="Changed by hand")
    with pytest.raises(AssertionError, match="differ from the stored ones"):
        read(cache, session)


async def test_rounds_of_a_turn_read_what_is_new(node: TestNode, ana: User) -> None:
    """CTX-01, RUN-16: each round's request contains the earlier rounds.
    The next turn's request contains an edit made before it.
    """
    calls = [[ToolCall(f"c{number}", "calculator", {"expression": "1+1"})] for number in range(3)]
    provider = node.script([*calls, ["Two.", Usage(1, 1)], ["Fine."]])
    session = await node.session(ana)
    await node.send(session, ana, "Sums!")
    await node.idle(session)
    assert [len(request.messages) for request in provider.requests] == [1, 3, 5, 7]
    first = (await node.rows(session))[1]
    await node.do(editing.edit, session=session, author=ana, message_id=first.pk, text="Add!")
    await node.send(session, ana, "And now?")
    await node.idle(session)
    assert provider.requests[-1].messages[0].text == "Add!"


@pytest.mark.django_db
def test_senders_are_read_only_for_a_summary(session: Session, django_assert_num_queries: Any) -> None:
    """CTX-06: without a summary, the rows of a request have all senders, so no statement reads them."""
    rows = ContextCache().rows(session, request_facts(session))
    with django_assert_num_queries(0):
        assert around_request(session.pk, rows) == NOTHING_AROUND
