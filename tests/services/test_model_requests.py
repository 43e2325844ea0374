"""Requests to models, which are rebuilt from recorded ids of rows, even if users have changed the rows since."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import settings
from hypothesis.stateful import rule, run_state_machine_as_test

from agents.events import ResponseStarted
from agents.messages import Message, ToolCall
from agents.providers.scripted import Gate, ScriptedProvider
from chat import agents_setup
from chat.bus import publisher
from chat.errors import ServiceError
from chat.models import ChatMessage, ModelRequest, Session, User
from chat.projections.context import context, system_prompt
from chat.projections.requests import RequestRows, all_references
from chat.queries.model_requests import RecordedRequest, past_request, prompt_then
from chat.runner.agent_input import AgentInput, build_agent_input
from chat.runs.changes import Change, InsertMessage
from chat.runs.lease import Claim
from chat.runs.turn_state import TurnEvent
from chat.services.messages import editing
from chat.services.sessions import lifecycle
from chat.services.sessions.forking import fork
from tests.services.history import History, someone, whichever
from tests.services.history_checks import RecordingPublisher
from tests.support.effort import cases
from tests.support.filled import ANSWER, DONE, HI, START, fill
from tests.support.player import Player
from tests.support.testing_node import ScriptedRegistry, TestNode

Sent = tuple[str, list[Message]]


def rebuilt(past: RecordedRequest | None) -> Sent:
    assert past is not None
    return system_prompt(past.rows, past.system_prompt), context(past.rows)


class Asker(Player):
    """A player that gets its context like a bridge; `sent` holds the context of each request, by response."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.sent: dict[str, Sent] = {}
        self.in_between: Callable[[], object] | None = None
        self._briefing: AgentInput | None = None

    def _apply(self, event: TurnEvent) -> None:
        if isinstance(event, ResponseStarted):
            self._briefing = build_agent_input(self.session.pk)
            if self.in_between is not None:
                act, self.in_between = self.in_between, None
                act()
        super()._apply(event)

    def _record(self, claim: Claim, changes: Sequence[Change]) -> None:
        asked, state = self._briefing, self.state
        if asked and state and any(isinstance(change, InsertMessage) for change in changes):
            self._briefing = None
            self.sent[state.response_id] = asked.agent.system, asked.history
            changes = [replace(asked.request, response_id=state.response_id), *changes]
        super()._record(claim, changes)


class Asked(History):
    """A random history that keeps every request."""

    @property
    def player(self) -> Asker:
        return self._asker

    @player.setter
    def player(self, made: Player) -> None:
        self._asker = Asker(made.session)

    @rule(at=whichever, who=someone)
    def edit_while_asked(self, at: int, who: int) -> None:
        """Change a message while it is being sent to the model."""
        self.in_between(editing.edit, who, message_id=self.row(at), text="Too late")

    @rule(at=whichever)
    def exclude_while_asked(self, at: int) -> None:
        self.in_between(editing.set_included, message_id=self.row(at), included=False)

    def in_between(self, service: Callable[..., object], who: int = 0, **what: Any) -> None:
        def act() -> None:
            with suppress(ServiceError):
                service(session=self.session, author=self.people[who], **what)

        self.player.in_between = act

    def stream_equals_rows(self) -> None:
        """Skip this invariant, because here alone changes happen inside a commit and are reported after it."""

    def teardown(self) -> None:
        session = Session.objects.get(pk=self.session.pk)
        for response_id, sent in self.player.sent.items():
            past = past_request(session, response_id)
            if past is None:  # it was purged with the last message of its response
                assert self.purged
                assert not ChatMessage.objects.filter(session=session, response_id=response_id).exists()
            elif past.lost:
                assert set(past.lost) <= self.purged
            else:
                assert rebuilt(past) == sent


@pytest.mark.django_db
@pytest.mark.sqlite  # many histories; the tests above cover PostgreSQL
def test_any_request_is_built_again(ana: User, bo: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-01, MSG-11, CTX-01: after any edits, exclusions, removals and retries, the rebuilt request equals the one
    that was sent, with its prompt."""
    published = RecordingPublisher()
    monkeypatch.setattr(publisher, "publisher", published)
    agents_setup.install(ScriptedRegistry(ScriptedProvider([])))
    machine = type("AnyAsked", (Asked,), {"published": published, "people": [ana, bo]})
    run_state_machine_as_test(machine, settings=settings(max_examples=cases(5), stateful_step_count=25, deadline=None))


async def test_each_response_has_a_recorded_request(node: TestNode, ana: User) -> None:
    """RUN-12, ADM-02: each response has one recorded request under the response's id.

    What several requests share is stored once.
    """
    gate = Gate()
    call = ToolCall("c1", "calculator", {"expression": "1+1"}, '{"expression":"1+1"}')
    provider = node.script([["Sum:", call], ["Two."], ["Well", gate], ["No."]])
    session = await node.session(ana)
    await node.do(lifecycle.set_system_prompt, session=session, author=ana, system_prompt="Be kind.")
    await node.send(session, ana, "Add")
    await node.idle(session)
    await node.send(session, ana, "Sure?")
    await gate.reached()
    await node.cancel(session, ana)
    await node.idle(session)
    rows = await node.rows(session)
    await node.do(editing.edit, session=session, author=ana, message_id=rows[1].pk, text="Subtract")
    await node.do(lifecycle.set_system_prompt, session=session, author=ana, system_prompt="Be brief.")
    await node.retry(session, ana, next(row.pk for row in rows if row.text == "Two."))
    await node.idle(session)

    def look() -> list[tuple[int, int, Sent]]:
        present = Session.objects.get(pk=session.pk)
        made = ModelRequest.objects.filter(session=session).order_by("revision")
        assert {each.pk for each in made} == set(
            ChatMessage.objects.filter(session=session).exclude(response_id="").values_list("response_id", flat=True)
        )
        assert [each.tools for each in made] == [["calculator", "current_time"]] * 4
        return [(each.shared, len(each.rows), rebuilt(past_request(present, each.pk))) for each in made]

    kept = await node.do(look)
    assert [sent for _shared, _own, sent in kept] == [
        (request.system, list(request.messages)) for request in provider.requests
    ]
    assert [sent[0] for *_counts, sent in kept] == ["Be kind."] * 3 + ["Be brief."]
    assert [(shared, own) for shared, own, _sent in kept] == [(0, 1), (1, 2), (3, 2), (0, 3)]


async def test_stop_before_any_text_records_no_request(node: TestNode, ana: User) -> None:
    """RUN-08: a response without messages has no recorded request."""
    gate = Gate()
    node.script([[gate]])
    session = await node.session(ana)
    await node.send(session, ana, "Hm")
    await gate.reached()
    await node.cancel(session, ana)
    await node.idle(session)
    assert await node.do(ModelRequest.objects.filter(session=session).count) == 0


def asked(session: Session, response_id: str) -> None:
    """Record a request with the present rows."""
    present = Session.objects.get(pk=session.pk)
    request = build_agent_input(session.pk).request
    columns = {name: getattr(request, name) for name in ("agent", "provider", "model", "tools", "shared", "rows")}
    ModelRequest.objects.create(session=session, revision=present.revision, response_id=response_id, **columns)


@pytest.mark.django_db
@pytest.mark.parametrize("turns", [1, 30])
def test_building_it_again_takes_a_fixed_number_of_queries(ana: User, turns: int) -> None:
    """ADM-01: the number of queries depends neither on the messages nor on the number of earlier requests."""
    agents_setup.install(ScriptedRegistry(ScriptedProvider([])))
    session = lifecycle.create_session(owner=ana)
    for number in range(turns):
        fill(session, START, HI, {**ANSWER, "response_id": f"r_{number}"}, DONE, turn_id=f"t_{number}")
        asked(session, f"r_{number}")
    with CaptureQueriesContext(connection) as queries:
        past = past_request(Session.objects.get(pk=session.pk), f"r_{turns - 1}")
    assert past is not None
    assert len(past.rows) == 2 * turns
    assert len(queries) == 7


@pytest.mark.django_db
def test_request_names_messages_that_are_gone(ana: User) -> None:
    """MSG-11: a request names the ids of purged messages instead of leaving them out."""
    agents_setup.install(ScriptedRegistry(ScriptedProvider([])))
    session = lifecycle.create_session(owner=ana)
    rows = fill(session, START, HI, ANSWER, DONE)
    asked(session, "r_1")
    gone, kept = rows[1].pk, rows[2].pk
    rows[1].delete()
    past = past_request(session, "r_1")
    assert past is not None
    assert (past.lost, [row.pk for row in past.rows]) == ([gone], [kept])


@pytest.mark.django_db
def test_forks_have_no_requests_of_their_own(ana: User) -> None:
    """RUN-13: the requests of copied answers stay with the original session."""
    agents_setup.install(ScriptedRegistry(ScriptedProvider([])))
    session = lifecycle.create_session(owner=ana)
    rows = fill(session, START, HI, {**ANSWER, "response_id": "r_1"}, DONE)
    asked(session, "r_1")
    made = fork(session=session, author=ana, message_id=rows[2].pk)
    [copied] = ChatMessage.objects.filter(session=made).exclude(response_id="")
    assert past_request(made, copied.response_id) is None
    assert past_request(made, "r_1") is None


@pytest.mark.django_db
def test_prompt_is_the_one_of_its_time(ana: User) -> None:
    """MSG-11: the prompt of that time comes from the first change of the prompt since then; other changes have no
    effect."""
    session = lifecycle.create_session(owner=ana)
    seen = []
    for number in (1, 2):
        lifecycle.set_system_prompt(session=session, author=ana, system_prompt=f"Prompt {number}")
        session.refresh_from_db()
        seen.append((session.revision, session.system_prompt))
        lifecycle.rename(session=session, author=ana, title=f"Title {number}")
    assert [prompt_then(session, revision) for revision, _prompt in seen] == ["Prompt 1", "Prompt 2"]


def test_unfolding_a_request_needs_the_ones_before_it() -> None:
    """MSG-01: a request is stored as a difference from the previous one, so a missing one raises an error."""
    a, b, c, d = (("a", 1), ("b", 1), ("c", 2), ("d", 3))
    first, second = RequestRows(0, (a, b)), RequestRows(1, (c, d))
    assert all_references([RequestRows(2, ()), second, first]) == [a, c]
    assert all_references([RequestRows(3, (b,)), second, first]) == [a, c, d, b]
    with pytest.raises(LookupError):
        all_references([RequestRows(2, ()), second])
