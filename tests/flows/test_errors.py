"""Failures of providers, of tools and of Parley itself."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator

import pytest
import pytest_asyncio

from agents.errors import AuthenticationFailed, ConnectionLost, ContextTooLong, ProviderError, RateLimited
from agents.events import ProviderEvent, StopReason
from agents.messages import ToolCall
from agents.providers.base import Request
from agents.providers.scripted import Gate, HangUp, Reply, ScriptedProvider, Step, Stop
from agents.tools import tool
from chat import agents_setup
from chat.errors import ServiceError
from chat.models import ChatMessage, Session, User
from chat.runner.bridge import BROKEN
from chat.snapshots import ErrorSnapshot
from config.logs import JsonLines
from tests.support.refusals import permit, refuse
from tests.support.rest import check_rest
from tests.support.testing_node import CONFIG, ScriptedRegistry, TestNode
from tests.support.workbench import Workbench, work


@tool()
async def toxic() -> str:
    """Answer with text that the database refuses."""
    return "poison"


@tool()
async def slow() -> str:
    """Answer in a batch of its own."""
    await asyncio.sleep(0.05)
    return "well"


@pytest.mark.parametrize(
    ("failure", "words", "error"),
    [
        (
            AuthenticationFailed("Wrong key. Check it."),
            "Wrong key. Check it.",
            ErrorSnapshot("authentication", "setting"),
        ),
        (ContextTooLong("It does not fit."), "It does not fit.", ErrorSnapshot("context_too_long", "model")),
        (RateLimited("Wait a little.", retry_after=3600), "Wait a little.", ErrorSnapshot("rate_limited", "retry")),
        (
            HangUp(),
            "The model’s answer was incomplete. Retry, or choose another model.",
            ErrorSnapshot("broken", "retry"),
        ),
    ],
)
async def test_failure_says_what_a_person_can_do(
    node: TestNode, ana: User, failure: Step, words: str, error: ErrorSnapshot
) -> None:
    """RUN-10, MSG-04: the error row has the message, the remedy, the model and the provider, and the session is
    idle."""
    node.script([[failure]])
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await node.idle(session)
    assert await node.shown(session) == [
        ("turn_start", "complete", ""),
        ("text", "complete", "Hi"),
        ("error", "failed", words),
        ("turn_done", "failed", ""),
    ]
    shown = (await node.snapshot(session)).messages[2]
    assert (shown.model, shown.provider, shown.role, shown.error) == ("one", "scripted", "assistant", error)
    await node.do(check_rest, session)


async def test_transient_failure_before_any_text_is_tried_again(node: TestNode, ana: User) -> None:
    """RUN-10: a transient failure before any text is retried after the server's delay, and users do not see it."""
    provider = node.script([[RateLimited("Slow.", retry_after=0.0)], ["Hello"]])
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await node.idle(session)
    assert [text for _, _, text in await node.shown(session)] == ["", "Hi", "Hello", ""]
    assert len(provider.requests) == 2


async def test_failure_after_text_keeps_the_text(node: TestNode, ana: User) -> None:
    """RUN-10, RUN-08: a failure after some text is not retried. The text stays and is marked as interrupted."""
    node.script([["Once upon", ConnectionLost("The line is dead. Retry.")]])
    session = await node.session(ana)
    await node.send(session, ana, "Tell")
    await node.idle(session)
    assert (await node.shown(session))[2:] == [
        ("text", "interrupted", "Once upon"),
        ("error", "failed", "The line is dead. Retry."),
        ("turn_done", "failed", ""),
    ]
    await node.do(check_rest, session)


async def test_queued_messages_run_after_a_failure(node: TestNode, ana: User) -> None:
    """RUN-10, RUN-06: a failed turn does not lose the messages that were queued during it."""
    gate = Gate()
    node.script([[gate, AuthenticationFailed("Wrong key.")], ["Hello"]])
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await gate.reached()
    await node.send(session, ana, "Anyone?")
    gate.open()
    await node.idle(session)
    assert [text for kind, _, text in await node.shown(session) if kind in ("text", "error")] == [
        "Hi",
        "Wrong key.",
        "Anyone?",
        "Hello",
    ]


async def test_retry_takes_the_place_of_the_error(node: TestNode, ana: User) -> None:
    """RUN-12, MSG-03: the rows from the error on are withdrawn, and the answer takes the error's place."""
    provider = node.script([[AuthenticationFailed("Wrong key.")], ["Hello"]])
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await node.idle(session)
    error = (await node.rows(session))[2]
    await node.retry(session, ana, error.pk)
    await node.idle(session)
    rows = await node.rows(session)
    assert [(row.sequence, row.type, row.text) for row in rows] == [
        (1, "turn_start", ""),
        (2, "text", "Hi"),
        (3, "text", "Hello"),
        (4, "turn_done", ""),
    ]
    assert len({row.turn_id for row in rows}) == 1
    assert provider.requests[1].messages == provider.requests[0].messages
    await node.do(check_rest, session)


async def test_retry_of_an_interrupted_answer_goes_on(node: TestNode, ana: User) -> None:
    """RUN-12: a retry continues after the interrupted text, which the model gets."""
    gate = Gate()
    provider = node.script([["Once", gate], [" upon a time"]])
    session = await node.session(ana)
    await node.send(session, ana, "Tell")
    await gate.reached()
    await node.cancel(session, ana)
    await node.idle(session)
    await node.retry(session, ana, (await node.rows(session))[3].pk)
    await node.idle(session)
    assert [message.text for message in provider.requests[1].messages] == ["Tell", "Once\n\n[interrupted]"]
    await node.do(check_rest, session)


async def test_retry_while_the_agent_works_is_refused(node: TestNode, ana: User) -> None:
    """RUN-12: a retry during a turn is refused."""
    gate = Gate()
    node.script([[gate]])
    session = await node.session(ana)
    sent = await node.send(session, ana, "Hi")
    await gate.reached()
    with pytest.raises(ServiceError, match="working"):
        await node.retry(session, ana, sent.id)


async def test_failing_tool_returns_an_error_result_to_the_model(node: TestNode, ana: User) -> None:
    """RUN-11, MSG-07: an exception of a tool is a result with is_error, and the turn continues."""
    provider = node.script([[ToolCall("c1", "calculator", {"expression": "1/0"})], ["Oh."]])
    session = await node.session(ana)
    await node.send(session, ana, "Divide")
    await node.idle(session)
    tool = (await node.rows(session))[2]
    assert (tool.status, tool.is_error) == ("failed", True)
    (result,) = provider.requests[1].messages[-1].tool_results
    assert (result.content, result.is_error) == (tool.result, True)


async def test_round_limit_ends_with_a_summary(node: TestNode, ana: User) -> None:
    """RUN-09: at the limit, the model is notified and gets no tools, and its text ends the turn."""
    agents = {"agent": {"model": "scripted/one", "tools": ["calculator"], "max_rounds": 2}}
    sums = [[ToolCall(f"c{n}", "calculator", {"expression": "1+1"})] for n in range(2)]
    provider = node.script([*sums, ["So far: 2."]], {**CONFIG, "agents": agents})
    session = await node.session(ana)
    await node.send(session, ana, "Sums")
    await node.idle(session)
    assert [request.tool_choice for request in provider.requests] == ["auto", "auto", "none"]
    assert provider.requests[2].messages[-1].role == "system"
    assert (await node.shown(session))[-2:] == [("text", "complete", "So far: 2."), ("turn_done", "complete", "")]
    await node.do(check_rest, session)


async def test_model_that_is_not_configured_is_an_error_row(node: TestNode, ana: User) -> None:
    """RUN-10: a missing model gives an error row, even if the configuration lost it after the session began."""
    session = await node.session(ana)
    await node.do(lambda: Session.objects.filter(pk=session.pk).update(model="gone"))
    await node.send(session, ana, "Hi")
    await node.idle(session)
    assert (await node.rows(session))[2].text == "“scripted” has no model “gone” here. Choose one of: one, two."


async def test_adapter_that_raises_anything_ends_the_turn(node: TestNode, ana: User) -> None:
    """RUN-10: any exception of an adapter ends the turn, so that no session hangs."""
    node.script([["Hel", KeyError("choices")], [ProviderError("Odd.")]])
    session = await node.session(ana)
    for text in ("Hi", "Again"):
        await node.send(session, ana, text)
        await node.idle(session)
    assert [row.type for row in await node.rows(session)].count("error") == 2
    await node.do(check_rest, session)


async def test_logged_failure_of_a_turn_names_it(node: TestNode, ana: User) -> None:
    """OPS-03: the log record of a traceback has the session, the turn and the worker, and no text of messages."""
    written: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: written.append(JsonLines().format(record))  # type: ignore[method-assign]  # it keeps lines
    logging.getLogger("agents.response").addHandler(handler)
    try:
        node.script([[RuntimeError("a bug")]])
        session = await node.session(ana)
        await node.send(session, ana, "My secret")
        await node.idle(session)
    finally:
        logging.getLogger("agents.response").removeHandler(handler)
    (line,) = map(json.loads, written)
    turn = (await node.rows(session))[0].turn_id
    assert (line["session"], line["turn"], line["level"]) == (session.pk, turn, "ERROR")
    assert line["worker"].startswith("w_")
    assert "RuntimeError: a bug" in line["error"]
    assert "secret" not in written[0]


@pytest.mark.parametrize("reason", ["max_tokens", "refusal"])
async def test_answer_that_was_cut_short_can_be_gone_on_with(node: TestNode, ana: User, reason: StopReason) -> None:
    """RUN-10, RUN-12: the error row offers Retry, which continues from the existing text."""
    provider = node.script([["As far as", Stop(reason)], ["the end."]])
    session = await node.session(ana)
    await node.send(session, ana, "Tell")
    await node.idle(session)
    *_, spoken, error, _done = await node.rows(session)
    assert (spoken.status, error.type) == ("interrupted", "error")
    await node.retry(session, ana, error.pk)
    await node.idle(session)
    assert provider.requests[1].messages[-1].text == "As far as\n\n[interrupted]"
    assert (await node.shown(session))[-2:] == [("text", "complete", "the end."), ("turn_done", "complete", "")]
    await node.do(check_rest, session)


class Lingering(ScriptedProvider):
    """A stream that ends long after its complete answer, like some vendors' connections."""

    async def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        async for event in super().stream(request):
            yield event
        await asyncio.sleep(0.3)


async def test_answer_that_cannot_be_written_is_not_lost_without_a_word(
    node: TestNode, ana: User, poison: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    """RUN-10: the error row stays, even if the turn's end comes long after the text that could not be written."""
    node.provider = Lingering([[poison("words")]])
    agents_setup.install(ScriptedRegistry(node.provider))
    session = await node.session(ana)
    with caplog.at_level(logging.CRITICAL, "chat"):
        await node.send(session, ana, "Go")
        await node.idle(session)
    assert (await node.shown(session))[-2:] == [("error", "failed", BROKEN), ("turn_done", "failed", "")]
    await node.do(check_rest, session)


@pytest_asyncio.fixture
async def poison(node: TestNode) -> AsyncIterator[Callable[[str], str]]:
    """A function that prefixes a text with "poison", which the database refuses."""
    for number, (event, column) in enumerate([("INSERT", "text"), ("UPDATE", "result"), ("UPDATE", "text")]):
        when = f"NEW.{column} LIKE 'poison%'"
        await node.do(refuse, f"poison_{number}", event=event, table="chat_chatmessage", when=when)
    yield lambda text: f"poison {text}"
    for number in range(3):
        await node.do(permit, f"poison_{number}")


@pytest.mark.parametrize("at", ["first words", "later words", "result", "one of two results"])
async def test_change_that_cannot_be_written_ends_its_turn_alone(
    node: TestNode, ana: User, poison: Callable[[str], str], at: str, caplog: pytest.LogCaptureFixture
) -> None:
    """RUN-10, RUN-15: the turn ends with an error row, other sessions are not affected, and the next message works."""
    replies: dict[str, list[Reply]] = {
        "first words": [[poison("x"), "y", "z"]],
        "later words": [["p", "oison"]],
        "result": [[ToolCall("c1", "toxic", {})]],
        "one of two results": [[ToolCall("c1", "toxic", {}), ToolCall("c2", "slow", {})]],
    }
    good_replies: list[Reply] = [["On ", *work(1)], ["and on."]]
    bench = Workbench()
    node.script(lambda request: next(script[request.messages[0].text]), tools=[bench.tool, toxic, slow])
    script: dict[str, Iterator[Reply]] = {"bad": iter([*replies[at], ["Fine."]]), "good": iter(good_replies)}
    bad, good = await node.session(ana), await node.session(ana)
    await node.send(good, ana, "good")
    await bench.begun(1)
    with caplog.at_level(logging.CRITICAL, "chat"):
        await node.send(bad, ana, "bad")
        await node.idle(bad)
    bench.let_go(1)
    await node.idle(good)
    assert (await node.shown(bad))[-2:] == [("error", "failed", BROKEN), ("turn_done", "failed", "")]
    assert [text for _, _, text in await node.shown(good)] == ["", "good", "On ", "did 1", "and on.", ""]
    await node.send(bad, ana, "Again")
    await node.idle(bad)
    assert (await node.shown(bad))[-2] == ("text", "complete", "Fine.")
    for session in (bad, good):
        await node.do(check_rest, session)
    assert not await node.do(ChatMessage.objects.filter(text__startswith="poison").exists)
