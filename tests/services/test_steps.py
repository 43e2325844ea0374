"""Steps read from rows: in pages, and as changes since any revision."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import Phase, settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from agents.messages import Json
from agents.providers.scripted import ScriptedProvider
from chat import agents_setup
from chat.bus import publisher
from chat.models import ChatMessage, Session, User
from chat.projections.steps import steps
from chat.queries.messages import has_history_since
from chat.queries.steps import page_of_segments, page_of_steps, steps_since
from chat.services.sessions.lifecycle import create_session
from tests.services.history import History
from tests.services.history_checks import RecordingPublisher
from tests.support.effort import cases
from tests.support.filled import ANSWER, DONE, HI, START, TOOL, fill
from tests.support.testing_node import ScriptedRegistry

pytestmark = pytest.mark.django_db


def whole(session: Session) -> dict[str, Json]:
    changes = steps_since(session.pk, 0)
    assert changes is not None
    return {step.id: step.to_json() for step in changes.steps}


class Resumed(History):
    """A history in which a user leaves at every moment, and later resumes with the steps of that moment."""

    def __init__(self) -> None:
        self.left: list[tuple[int, dict[str, Json]]] = []
        super().__init__()

    @invariant()
    def who_comes_again_has_all(self) -> None:
        session, now = Session.objects.get(pk=self.session.pk), whole(self.session)
        # Clients from before a purge are refused as stale, and start without a revision.
        self.left = [(revision, known) for revision, known in self.left if has_history_since(session, revision)]
        for revision, known in self.left:
            assert resumed(session, revision, known) == now
        self.left = [*self.left[:2], *self.left[-2:], (session.revision, now)]

    @invariant()
    def pages_are_the_whole(self) -> None:
        assert paged(self.session, 3) == whole(self.session)


def resumed(session: Session, revision: int, known: dict[str, Json]) -> dict[str, Json]:
    changes = steps_since(session.pk, revision)
    assert changes is not None
    kept = {step_id: step for step_id, step in known.items() if step_id not in changes.gone}
    kept |= {step.id: step.to_json() for step in changes.steps}
    return dict(sorted(kept.items(), key=lambda item: item[1]["sequence"]))


def paged(session: Session, limit: int) -> dict[str, Json]:
    found: dict[str, Json] = {}
    after: int | None = 0
    while after is not None:
        page = page_of_steps(session, after, limit)
        assert len(page.steps) <= limit
        assert not found.keys() & {step.id for step in page.steps}
        found |= {step.id: step.to_json() for step in page.steps}
        after = page.next
    return found


@pytest.mark.sqlite  # many histories; the tests above cover PostgreSQL
def test_any_history_can_be_resumed_from_any_moment(ana: User, bo: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-03, CTX-04: after any actions of users, agents and crashes, a client with the steps of an earlier moment
    gets all present steps from the changes since then. Pages have all steps."""
    published = RecordingPublisher()
    monkeypatch.setattr(publisher, "publisher", published)
    agents_setup.install(ScriptedRegistry(ScriptedProvider([])))
    machine = type("AnyHistory", (Resumed,), {"published": published, "people": [ana, bo]})
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=cases(4), stateful_step_count=20, deadline=None, phases=[Phase.generate]),
    )


def test_only_changed_steps_are_sent_again(ana: User) -> None:
    """LIVE-03: only later answers and the steps that they change are sent, not the earlier conversation."""
    session = create_session(owner=ana)
    rows = fill(session, *[START, HI, TOOL, ANSWER, DONE] * 6)
    session.refresh_from_db()
    ChatMessage.objects.filter(pk=rows[-2].pk).update(revision=session.revision + 1)
    session.revision += 1
    session.save(update_fields=["revision"])
    changes = steps_since(session.pk, session.revision - 1)
    assert changes is not None
    assert [step.id for step in changes.steps] == [rows[-2].pk]
    assert changes.gone == []


@pytest.mark.parametrize("since", [0, 2])
def test_query_counts_do_not_grow(ana: User, since: int) -> None:
    """LIVE-03: one turn and thirty turns need the same number of queries, for a page and for changes."""
    counts = set()
    for turns in (1, 30):
        session = create_session(owner=ana)
        fill(session, *[START, HI, TOOL, ANSWER, DONE] * turns)
        session.refresh_from_db()
        with CaptureQueriesContext(connection) as asked:
            steps_since(session.pk, session.revision - since if since else 0)
            page_of_steps(session)
            page_of_segments(session)
        counts.add(len(asked))
    assert len(counts) == 1


def test_steps_of_all_rows_are_the_projection(ana: User) -> None:
    """CTX-04: the steps that are read equal the projection of all rows, and can be written as JSON."""
    session = create_session(owner=ana)
    fill(session, START, HI, TOOL, ANSWER, DONE)
    rows = list(ChatMessage.objects.in_conversation(session.pk).order_by("sequence"))
    page = page_of_steps(session)
    assert page.steps == [each.step for each in steps(rows)]
    assert json.loads(json.dumps([step.to_json() for step in page.steps])) == [step.to_json() for step in page.steps]
