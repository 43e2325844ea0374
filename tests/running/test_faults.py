"""Faults that a runner meets in production: lost answers, claims that other workers take, and busy threads."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Collection, Sequence

import pytest
import pytest_asyncio
from django.db import OperationalError
from pytest_django.fixtures import Settings

from agents.errors import AuthenticationFailed
from agents.messages import ToolCall
from agents.providers.base import Request
from agents.providers.scripted import Gate, Pause, Reply
from chat.models import ChatMessage, RunState, Session, SessionRun, User, Worker
from chat.runner import agent_input, bridge, runtime, writer
from chat.runner.agent_input import AgentInput
from chat.runner.bridge import EXHAUSTED
from chat.runner.resume import MAX_CLAIMS
from chat.runner.runner import INPUT_READS_AT_ONCE, THREADS, Runner
from chat.runs import lease
from chat.runs.local_runner import BegunTurn
from chat.services.messages.sending import send_message
from chat.services.runs import control, recording
from chat.services.runs.recording import Batch, Job, PendingText
from tests.support.listener import Listener
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode
from tests.support.workers import declare_all_dead


@pytest_asyncio.fixture
async def hasty(node: TestNode, settings: Settings) -> TestNode:
    """A node with short heartbeat intervals."""
    settings.LEASE_SECONDS = 0.5
    await node.restart()
    return node


async def answers(node: TestNode, session: Session) -> list[tuple[str, str]]:
    """Return (status, text) of the agent's answers and errors."""
    rows = await node.rows(session)
    return [(row.status, row.text) for row in rows if row.role == "assistant" or row.type == "error"]


async def test_session_runs_when_the_answer_to_its_claim_was_lost(
    hasty: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-15: if the answer to the claim's COMMIT is lost, the worker owns the session, notices it, and runs the
    session."""
    really = lease.claim
    lost: list[lease.Claim] = []

    def claim(worker_id: str, limit: int) -> list[lease.Claim]:
        found = really(worker_id, limit)
        if found and not lost:
            lost.extend(found)
            raise OperationalError("the connection is lost")
        return found

    monkeypatch.setattr(lease, "claim", claim)
    hasty.script([["Hello."]])
    session = await hasty.session(ana)
    await hasty.do(send_message, session=session, author=ana, text="Hi")
    await hasty.idle(session)
    assert await answers(hasty, session) == [("complete", "Hello.")]
    run = await hasty.do(SessionRun.objects.get, pk=session.pk)
    assert [claim.epoch for claim in lost] == [1]
    assert run.epoch == 2
    await hasty.do(check_rest, session)


async def test_turn_runs_that_was_begun_with_a_claim_whose_answer_was_lost(
    hasty: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-01, RUN-15: if the answer to the COMMIT is lost, the message is stored and the worker owns the session.

    It notices and runs it.
    """
    lost: list[BegunTurn] = []

    def lose(runner: Runner, turn: BegunTurn) -> None:
        lost.append(turn)
        runner.release()

    monkeypatch.setattr(Runner, "take", lose)
    hasty.script([["Hello."]])
    session = await hasty.session(ana)
    await hasty.send(session, ana, "Hi")
    await hasty.idle(session)
    assert await answers(hasty, session) == [("complete", "Hello.")]
    run = await hasty.do(SessionRun.objects.get, pk=session.pk)
    assert [turn.claim.epoch for turn in lost] == [1]
    assert run.epoch == 2
    await hasty.do(check_rest, session)


async def test_turn_is_stopped_before_the_runner_has_it(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-07: a stop between the transaction that begins the turn and its first step ends the turn."""
    really = Runner.take

    def take(runner: Runner, turn: BegunTurn) -> None:
        control.cancel(session=session, author=ana)
        really(runner, turn)

    monkeypatch.setattr(Runner, "take", take)
    provider = node.script([["Never."]])
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await node.idle(session)
    assert (await node.shown(session))[2:] == [("turn_done", "interrupted", "")]
    assert provider.requests == []


async def test_answers_to_commits_that_are_lost_change_nothing(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MSG-01, RUN-10: every write is committed at the first try but reported as failed.

    Nothing is written twice, and a queued message waits.
    """
    tries = itertools.count()

    def record(jobs: Sequence[Job], texts: Sequence[PendingText], *, wait: bool = True) -> Batch:
        done = recording.record(jobs, texts, wait=wait)
        if next(tries) % 2 == 0:
            raise OperationalError("the connection is lost")
        return done

    monkeypatch.setattr(writer, "record", record)
    gate = Gate()
    node.script([["One, ", gate, "two."], ["Three."]])
    session = await node.session(ana)
    await node.send(session, ana, "Count")
    await gate.reached()
    assert (await node.send(session, ana, "More")).queued
    gate.open()
    await node.idle(session)
    assert await answers(node, session) == [("complete", "One, two."), ("complete", "Three.")]
    assert len(node.provider.requests) == 2
    await node.do(check_rest, session)


async def test_work_that_takes_all_threads_costs_no_lease(
    hasty: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-15: reading contexts takes longer than a lease lasts. Claims are still renewed, and nothing runs twice."""
    may_go = threading.Event()

    def brief(session_id: str) -> AgentInput:
        assert may_go.wait(20)
        return agent_input.build_agent_input(session_id)

    monkeypatch.setattr(agent_input, "SHORT_CONTEXT", 0)
    monkeypatch.setattr(bridge, "build_agent_input", brief)
    hasty.script(lambda request: [f"Re: {request.messages[-1].text}"])
    sessions = [await hasty.session(ana) for _ in range(THREADS + INPUT_READS_AT_ONCE)]
    try:
        for session in sessions:
            await hasty.send(session, ana, "Hi")
        await hasty.until(lambda: SessionRun.objects.filter(owner__isnull=False).count() == len(sessions))
        before = (await hasty.do(Worker.objects.get)).lease_until
        # Longer than a lease: the present lease ends before the last of these begins.
        await hasty.until(lambda: (Worker.objects.get().lease_until - before).total_seconds() > 0.6)
    finally:
        may_go.set()
    for session in sessions:
        await hasty.idle(session)
        assert await answers(hasty, session) == [("complete", "Re: Hi")]
    assert await hasty.do(lambda: set(SessionRun.objects.values_list("epoch"))) == {(1,)}
    assert len(hasty.provider.requests) == len(sessions)


def take(session: Session, *, epoch: int) -> str:
    """Let another worker take a session after a failover that lost its owner from the rows."""
    other = lease.register_worker()
    SessionRun.objects.filter(pk=session.pk).update(owner=other, claimant=other, epoch=epoch, written=0)
    return other


async def test_epoch_that_a_failover_hands_out_again_is_another_claim(node: TestNode, ana: User) -> None:
    """RUN-15: a failover loses a claim, and another worker gets the same epoch. Only one of the two can write."""
    gate = Gate()
    node.script([["Once", gate, " upon a time."], ["Twice."]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await gate.reached()
    await node.until(lambda: ChatMessage.objects.filter(session=session, status="streaming").exists())
    other = await node.do(lambda: take(session, epoch=1))
    before = await node.shown(session)
    gate.open()
    await no_stream(node)
    assert await node.shown(session) == before
    await node.do(lease.release_worker, other)
    await node.idle(session)
    assert (await answers(node, session))[-1] == ("complete", "Twice.")
    await node.do(check_rest, session)


def the_runner() -> Runner:
    """Return the runner of the test node."""
    assert runtime._runtime is not None
    assert runtime._runtime.runner is not None
    return runtime._runtime.runner


async def until_unsafe(runner: Runner) -> None:
    """Wait until other workers may take over the runner's sessions."""
    async with asyncio.timeout(20):
        while time.monotonic() < runner._safe_until:  # noqa: ASYNC110  # a moment has no event
            await asyncio.sleep(0.01)


async def no_stream(node: TestNode) -> None:
    """Wait until no stream of the model is read any more."""
    async with asyncio.timeout(20):
        while node.provider.streaming:  # noqa: ASYNC110  # the run ends by itself, or is ended
            await asyncio.sleep(0.01)


async def test_run_that_only_speaks_is_cut_by_its_first_text_that_is_refused(
    node: TestNode, ana: User, settings: Settings
) -> None:
    """RUN-15: a run that lost its claim ends with its first refused text, long before the next heartbeat.

    It writes only text.
    """
    settings.LEASE_SECONDS = 600
    await node.restart()
    node.script([endless()])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await node.until(lambda: ChatMessage.objects.filter(session=session, status="streaming").exists())
    other = await node.do(lambda: take(session, epoch=2))
    await no_stream(node)
    await node.do(lease.release_worker, other)


def endless() -> Reply:
    for number in itertools.count():
        yield f"{number} "
        yield Pause(0.01)


async def test_run_that_is_silent_is_cut_by_the_heartbeat(hasty: TestNode, ana: User) -> None:
    """RUN-15: the heartbeat ends a run that lost its claim and writes nothing, because the model sends nothing."""
    gate = Gate()
    hasty.script([["Once", gate]])
    session = await hasty.session(ana)
    await hasty.send(session, ana, "Go")
    await gate.reached()
    await hasty.until(lambda: ChatMessage.objects.filter(session=session, status="streaming").exists())
    other = await hasty.do(lambda: take(session, epoch=2))
    await no_stream(hasty)
    await hasty.do(lease.release_worker, other)


async def test_heartbeat_that_hangs_mutes_its_runs(hasty: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """RUN-15, LIVE-01: no error reports a network that drops everything.

    Text is published until other workers may have the session. Then it is held back, and when the late answer arrives
    it is published and the run continues.
    """
    gates = [Gate(), Gate()]
    hasty.script([["Once ", gates[0], "upon a time", gates[1], "."]])
    session = await hasty.session(ana)
    await hasty.send(session, ana, "Go")
    await gates[0].reached()
    await hasty.until(lambda: ChatMessage.objects.filter(session=session, status="streaming").exists())
    listener = Listener(session)
    await listener.start()
    answered, hangs = threading.Event(), asyncio.Event()
    loop, really = asyncio.get_running_loop(), lease.renew

    def renew(worker_id: str) -> bool:
        loop.call_soon_threadsafe(hangs.set)
        assert answered.wait(20)
        return really(worker_id)

    monkeypatch.setattr(lease, "renew", renew)
    try:
        await hangs.wait()
        await until_unsafe(the_runner())
        gates[0].open()
        await gates[1].reached()
        assert await listener.heard() == ""
    finally:
        answered.set()
    await listener.until(lambda text: text == "upon a time")
    gates[1].open()
    await hasty.idle(session)
    assert await answers(hasty, session) == [("complete", "Once upon a time.")]
    assert len(hasty.provider.requests) == 1


class Crashing:
    """A model that is in mid-answer at each crash.

    `tools` holds the numbers of the requests that it answers with a tool call before it continues. `said` is the text
    of its latest answer.
    """

    def __init__(self, node: TestNode, session: Session, *, tools: Collection[int] = ()) -> None:
        self._house, self._session, self._tools = node, session, tools
        self._requests = itertools.count(1)
        self.said = ""

    def __call__(self, request: Request) -> Reply:
        number = next(self._requests)
        if number in self._tools:
            return [ToolCall("c1", "calculator", {"expression": "1 + 1"})]
        self.said = f"Try {number}"
        return [self.said, Gate()]

    async def crash(self) -> None:
        """Take the session from its worker in mid-answer, as if the worker had died."""
        await self._house.until(self._is_streaming)
        before = self.said
        await self._house.do(declare_all_dead)
        await self._house.until(lambda: self.said != before or self._is_over())

    def _is_streaming(self) -> bool:
        texts = ChatMessage.objects.filter(session=self._session, status="streaming").values_list("text", flat=True)
        return self.said in texts

    def _is_over(self) -> bool:
        return SessionRun.objects.get(pk=self._session.pk).state == RunState.IDLE


async def test_turn_that_ends_its_process_is_closed_after_some_attempts(hasty: TestNode, ana: User) -> None:
    """RUN-10, RUN-15: after some crashed attempts, the turn is closed with an explanation. Retry starts it again."""
    session = await hasty.session(ana)
    crashing = Crashing(hasty, session)
    hasty.script(crashing)
    await hasty.send(session, ana, "Go")
    for _ in range(MAX_CLAIMS):
        await crashing.crash()
    await hasty.idle(session)
    assert (await answers(hasty, session))[-1] == ("failed", str(EXHAUSTED))
    await hasty.do(check_rest, session)
    hasty.script([["At last."]])
    error = (await hasty.rows(session))[-2]
    await hasty.retry(session, ana, error.pk)
    await hasty.idle(session)
    assert (await answers(hasty, session))[-1] == ("complete", "At last.")


async def test_turn_that_makes_progress_may_lose_many_processes(hasty: TestNode, ana: User) -> None:
    """RUN-15: attempts are counted from the last finished response."""
    session = await hasty.session(ana)
    crashing = Crashing(hasty, session, tools={MAX_CLAIMS})
    hasty.script(crashing)
    await hasty.send(session, ana, "Go")
    for _ in range(2 * MAX_CLAIMS - 2):
        await crashing.crash()
    hasty.script(lambda request: ["Done."])
    await hasty.do(declare_all_dead)
    await hasty.idle(session)
    assert (await answers(hasty, session))[-1] == ("complete", "Done.")


async def test_turns_that_fail_or_are_stopped_are_no_attempts_at_the_next_one(node: TestNode, ana: User) -> None:
    """RUN-10, RUN-15: turns that failed or were stopped do not count as attempts of the next turn."""
    gates = [Gate() for _ in range(MAX_CLAIMS)]
    failing = [[AuthenticationFailed("Wrong key.")]] * MAX_CLAIMS
    node.script([*failing, *[[gate] for gate in gates], ["Hello."]])
    session = await node.session(ana)
    for _ in failing:
        await node.send(session, ana, "Hi")
        await node.idle(session)
    for gate in gates:
        await node.send(session, ana, "Hi")
        await gate.reached()
        await node.cancel(session, ana)
        await node.idle(session)
    await node.send(session, ana, "Hi")
    await node.idle(session)
    assert (await answers(node, session))[-1] == ("complete", "Hello.")


async def test_stop_is_quick_because_it_wakes_the_runner(node: TestNode, ana: User, settings: Settings) -> None:
    """RUN-07: Stop takes effect long before the next heartbeat, which would find it too."""
    settings.LEASE_SECONDS = 600
    await node.restart()
    gate = Gate()
    node.script([["Once", gate]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await gate.reached()
    await node.cancel(session, ana)
    await node.idle(session)
    assert await answers(node, session) == [("interrupted", "Once")]
