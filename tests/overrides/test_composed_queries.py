"""Precomposed queries return the same as Django's, on both databases."""

from __future__ import annotations

import threading

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connections
from django.db.models import F, QuerySet
from django.test.utils import CaptureQueriesContext

from chat import access
from chat.errors import NoSuchSession
from chat.models import ChatMessage, Session, SessionRole, User
from chat.overrides import composed_queries
from chat.overrides.composed_queries import Composed
from chat.services.sessions.lifecycle import create_session
from tests.support.testing_node import person

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


def _owned(user_id: int, title: str) -> QuerySet[Session]:
    sessions = Session.objects.filter(owner=user_id, title=title).select_related("owner", "run")
    return sessions.annotate(of=F("owner__username")).order_by("pk")


def _rows(query: Composed[Session], *values: int | str) -> list[dict[str, object]]:
    return [
        {**row.__dict__, "_state": None, "related": (row.owner.username, row.run.state)} for row in query.read(*values)
    ]


def test_rows_are_those_of_django(ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are the same as Django's, with related rows, annotations and converted values."""
    for title in ("One", "One", "Two"):
        session = create_session(owner=ana)
        Session.objects.filter(pk=session.pk).update(title=title, config={"a": [1]})
    query = Composed(_owned)
    once, again, none = _rows(query, ana.pk, "One"), _rows(query, ana.pk, "Two"), _rows(query, ana.pk, "Three")
    monkeypatch.setattr(composed_queries, "COMPOSE_ONCE", False)
    assert [len(once), len(again), len(none)] == [2, 1, 0]
    assert once == _rows(query, ana.pk, "One")
    assert again == _rows(query, ana.pk, "Two")


def test_query_is_composed_once(ana: User) -> None:
    """Each call runs one statement, and `build` runs only once."""
    built = []

    def build(user_id: int) -> QuerySet[Session, str]:
        built.append(user_id)
        return Session.objects.filter(owner=user_id).values_list("pk", flat=True)

    query = Composed(build)
    session = create_session(owner=ana)
    for connection in connections.all(initialized_only=True):
        with CaptureQueriesContext(connection) as captured:
            assert query.read(ana.pk) == [session.pk]
            assert query.read(ana.pk + 1) == []
        assert len(captured) == 2
    assert len(built) == 1


@pytest.mark.django_db(transaction=True)
def test_another_thread_reads_by_its_own_connection(ana: User) -> None:
    query, found = Composed(_owned), list[Session]()
    session = create_session(owner=ana)
    Session.objects.filter(pk=session.pk).update(title="One")
    query.read(ana.pk, "One")

    def read() -> None:
        try:
            found.extend(query.read(ana.pk, "One"))
        finally:
            connections.close_all()

    thread = threading.Thread(target=read)
    thread.start()
    thread.join(20)
    assert [row.pk for row in found] == [session.pk]


def test_number_of_values_may_differ(ana: User) -> None:
    def build(*ids: str) -> QuerySet[Session, str]:
        return Session.objects.filter(pk__in=ids).order_by("pk").values_list("pk", flat=True)

    query = Composed(build)
    first, second = sorted(create_session(owner=ana).pk for _ in range(2))
    assert query.read(first) == [first]
    assert query.read(second, first) == [first, second]


def test_value_that_is_no_parameter_is_refused(ana: User) -> None:
    """A value that is not a parameter of the statement, such as the end of a slice, is refused, because the composed
    query would always use the first one."""
    with pytest.raises(ValueError, match="parameter"):
        Composed(lambda user_id, title: Session.objects.filter(owner=user_id)).read(ana.pk, "One")


@pytest.mark.parametrize("number", [2**63, -(2**70), 2**31])
def test_numbers_of_any_size_are_compared(ana: User, number: int) -> None:
    """Numbers of any size are compared as by Django: huge ones are larger or smaller than all rows."""
    session = create_session(owner=ana)
    later = Composed(lambda session_id, since: ChatMessage.objects.filter(session=session_id, revision__gt=since))
    assert len(later.read(session.pk, number)) == ChatMessage.objects.filter(revision__gt=number).count()


def test_gate_is_as_strict_as_its_querysets(ana: User) -> None:
    """LIVE-06: other users, unknown ids and signed-out users get nothing, and a deletion counts immediately."""
    bo = person("bo")
    session = create_session(owner=ana)
    assert access.session_for(ana, session.pk) == (session, SessionRole.OWNER)
    for user in (bo, AnonymousUser()):
        with pytest.raises(NoSuchSession):
            access.session_for(user, session.pk)
    Session.objects.filter(pk=session.pk).update(status=Session.Status.DELETED)
    with pytest.raises(NoSuchSession):
        access.session_for(ana, session.pk)
