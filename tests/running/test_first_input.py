"""The input of a new turn, which is built by the thread that has begun the turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import translation

from chat.languages import in_language
from chat.models import Attachment, ChatMessage, PushSubscription, User
from chat.runner import agent_input, push_notices
from chat.runner.agent_input import AgentInput, build_agent_input, first_input
from chat.runner.runner import Runner
from chat.runs import lease, local_runner
from chat.runs.local_runner import BegunTurn
from chat.services.messages.starting import begin_turn
from chat.services.sessions.lifecycle import create_session
from tests.services.test_starting import Desk
from tests.support.testing_node import TestNode


@pytest.fixture
def begun(transactional_db: None, ana: User) -> Iterator[BegunTurn]:
    """A plain turn that has just begun."""
    desk = Desk(lease.register_worker())
    unregister = local_runner.register(desk)
    session = create_session(owner=ana, title="Plan")
    begin_turn(author=ana, session_id=session.pk, text="Hi", key=None)
    yield desk.taken[0]
    unregister()


def test_first_input_is_what_the_runner_would_read(begun: BegunTurn, monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-01, RUN-16: the input equals the one that the runner would read, in any language of the user who sent the
    message."""
    assert first_input(begun) == build_agent_input(begun.claim.session_id)
    languages = list[object]()
    monkeypatch.setattr(agent_input, "_build", lambda *_: languages.append(translation.get_language()))
    in_language("de", first_input, begun)
    assert languages == ["en"]


def test_long_contexts_and_files_are_left_to_the_runner(
    begun: BegunTurn, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-16: long contexts and files are left to the runner, so that the thread can begin other turns."""
    assert first_input(begun) is not None
    with monkeypatch.context() as patched:
        patched.setattr(agent_input, "SHORT_CONTEXT", begun.last_sequence - 1)
        assert first_input(begun) is None
    message = ChatMessage.objects.get(session=begun.session, sequence=begun.last_sequence)
    Attachment.objects.create(session=begun.session, message=message, user=ana, name="a.txt", kind="text", size=1)
    assert first_input(begun) is None


def test_what_fails_is_left_to_the_runner(begun: BegunTurn) -> None:
    """RUN-16: if the input cannot be built, there is none, so the message is accepted and the runner reports the
    error."""
    begun.session.provider, begun.session.model = "none", "none"
    assert first_input(begun) is None


async def test_input_of_a_turn_is_not_used_for_the_next(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-06, RUN-08: if the first turn is stopped before it begins, the next one does not use its input."""
    node.script(lambda request: [f"Re: {request.messages[-1].text}"])
    session, begins, on_begun = await node.session(ana), list[asyncio.Task[None]](), Runner._on_begun

    async def begin(runner: Runner, turn: BegunTurn, given: AgentInput | None) -> None:
        assert given is not None
        assert (await node.send(session, ana, "More")).queued
        runner._stopped_early[session.pk] = turn.state.turn_id
        on_begun(runner, turn, given)

    def begin_later(runner: Runner, *arguments: Any) -> None:
        begins.append(asyncio.get_running_loop().create_task(begin(runner, *arguments)))

    monkeypatch.setattr(Runner, "_on_begun", begin_later)
    await node.send(session, ana, "Hi")
    await node.idle(session)
    assert [text for _, _, text in await node.shown(session) if text.startswith("Re")] == ["Re: More"]
    assert len(begins) == 1


def test_ended_runs_cost_one_query_where_no_one_wants_notices(begun: BegunTurn, django_assert_num_queries: Any) -> None:
    """UI-22: a finished run costs one query if no user has registered for push messages."""
    assert not PushSubscription.objects.exists()
    ended = push_notices.EndedRun(
        begun.claim.session_id, begun.claim.epoch, {begun.state.turn_id: begun.state.started_by}
    )
    with django_assert_num_queries(1):
        assert push_notices.pushes_about([ended]) == []
