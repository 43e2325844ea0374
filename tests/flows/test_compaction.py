"""Compaction: a summary replaces earlier messages in the context (CTX-07)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db.models import QuerySet

from agents.errors import ContextTooLong
from agents.events import Usage
from agents.foreign_text import SUMMARY, ForeignText
from agents.messages import Text, ToolCall
from agents.providers.base import Request
from agents.providers.scripted import Gate, Reply
from agents.tools import ToolContext, tool
from chat.errors import Busy, ServiceError
from chat.models import ChatMessage, MessageRevision, ModelRequest, Session, SessionRun, User
from chat.projections.context import SEVERAL_SENDERS, SUMMARY_LABEL, Named, context
from chat.queries import senders
from chat.queries.model_requests import past_request
from chat.queries.steps import page_of_steps
from chat.runner.agent_input import build_agent_input
from chat.runner.compactor import INSTRUCTIONS
from chat.runner.request_preview import next_request
from chat.services.messages import editing
from chat.services.runs import compaction
from chat.services.sessions import agents, lifecycle
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode
from tests.support.workbench import Workbench, work

pytestmark = pytest.mark.both_databases


def answers(request: Request) -> Reply:
    """Return an answer, or a summary if one is requested."""
    if request.system == INSTRUCTIONS:
        return ["They counted."]
    read = sum(len(message.text) for message in request.messages) // 4
    return [f"Re: {request.messages[-1].text}", Usage(read, 5)]


async def talk(node: TestNode, session: Session, author: User, *texts: str) -> None:
    for text in texts:
        await node.send(session, author, text)
        await node.idle(session)


@tool(foreign=True)
async def look(url: str, context: ToolContext) -> ForeignText:
    """Look at a page."""
    assert context.sources is not None
    source = context.sources.number(url, url)
    return ForeignText(f"[{source.number}] {url}", "web", (source,))


async def summary_of(node: TestNode, session: Session) -> ChatMessage:
    summaries = ChatMessage.objects.in_conversation(session.pk).filter(summarises__isnull=False)
    found: ChatMessage = await node.do(summaries.get)
    return found


async def test_summary_stands_for_the_older_turns(node: TestNode, ana: User) -> None:
    """CTX-07: the last turns stay, the earlier ones become one message in the context, and all rows are kept."""
    provider = node.script(answers)
    session = await node.session(ana)
    await talk(node, session, ana, "One " * 200, "Two", "Three")
    before = [row.pk for row in await node.rows(session)]
    await node.do(compaction.compact, session=session, author=ana)
    await node.idle(session)
    asked = provider.requests[-1]
    assert "One" in asked.messages[0].text
    assert "Three" not in asked.messages[0].text
    summary = await summary_of(node, session)
    assert (summary.text, summary.summarises, summary.user_id) == ("They counted.", 2, ana.pk)
    rows = await node.rows(session)
    assert [row.pk for row in rows if row.turn_id != summary.turn_id] == before
    await node.do(session.refresh_from_db)
    assert session.context_used is not None
    assert session.context_used < 300
    await talk(node, session, ana, "Four")
    sent = provider.requests[-1].messages
    assert sent[0].parts[0] == Text(f"{SUMMARY_LABEL}\n\nThey counted.", foreign=True, origin=SUMMARY)
    assert [message.text for message in sent[1:]] == ["Two", "Re: Two", "Three", "Re: Three", "Four"]
    await node.do(check_rest, session)


async def test_reasoning_is_no_part_of_a_summary(node: TestNode, ana: User) -> None:
    """CTX-07: a summary has no reasoning, although the server leaves it in the text of the model's answer."""
    node.script(lambda request: ["Hm.\n</think>\n\n", *answers(request)])
    session = await node.session(ana)
    await talk(node, session, ana, "One")
    await node.do(compaction.compact, session=session, author=ana)
    await node.idle(session)
    assert (await summary_of(node, session)).text == "They counted."


async def test_undo_brings_the_messages_back(node: TestNode, ana: User) -> None:
    """CTX-07: without the summary, the model gets the messages again, and each request stays on record as it was
    sent."""
    provider = node.script(answers)
    session = await node.session(ana)
    await talk(node, session, ana, "One " * 200, "Two", "Three")
    await node.do(compaction.compact, session=session, author=ana)
    await node.idle(session)
    await talk(node, session, ana, "Four")
    summary = await summary_of(node, session)
    await node.do(editing.remove, session=session, author=ana, message_id=summary.pk)
    await node.do(session.refresh_from_db)
    assert session.context_used is not None
    assert session.context_used > 400
    await talk(node, session, ana, "Five")
    await node.do(editing.restore, session=session, author=ana, message_id=summary.pk)
    await talk(node, session, ana, "Six")
    asked = [request.messages for request in provider.requests if request.system != INSTRUCTIONS]
    assert [len(messages) for messages in asked] == [1, 3, 5, 6, 9, 10]
    made = await node.do(lambda: list(ModelRequest.objects.filter(session=session).order_by("revision")))
    for request, messages in zip(made, asked, strict=True):
        past = await node.do(past_request, session, request.response_id)
        assert past is not None
        assert [message.text for message in context(past.rows)] == [message.text for message in messages]


async def test_senders_keep_their_names(node: TestNode, ana: User, bo: User) -> None:
    """CTX-04, CTX-06, CTX-07: after a compaction, requests name the senders of messages as before, and so do their
    previews, their records and the steps, even if only one of the senders has written since."""
    provider = node.script(answers)
    session = await node.session(ana)
    await talk(node, session, bo, "One")
    await talk(node, session, ana, "Two", "Three", "Four")
    await node.do(compaction.compact, session=session, author=ana)
    await node.idle(session)
    summary = await summary_of(node, session)
    await talk(node, session, ana, "Five")
    sent = provider.requests[-1]
    texts = [message.text for message in sent.messages if message.role == "user"]
    assert texts[1:] == ["[Ana] Three", "[Ana] Four", "[Ana] Five"]
    assert SEVERAL_SENDERS in sent.system
    await node.do(session.refresh_from_db)
    preview = await node.do(next_request, session)
    assert (preview.messages[:-1], preview.system) == (list(sent.messages), sent.system)
    laid, _measure = await node.do(preview.estimate)
    assert [block.parts for block in laid if block.role] == [message.parts for message in preview.messages]
    page = await node.do(page_of_steps, session, 2 * (summary.sequence or 0) - 1)
    assert [step.content for step in page.steps] == [message.text for message in preview.messages]
    made = await node.do(lambda: ModelRequest.objects.filter(session=session).latest("revision"))
    first = (await node.rows(session))[1]
    await node.do(editing.remove, session=session, author=ana, message_id=first.pk)
    past = await node.do(past_request, session, made.pk)
    assert past is not None
    assert context(past.rows, around=past.around) == list(sent.messages)
    assert not (await node.do(next_request, session)).around.speakers - {(ana.pk, "Ana")}


async def test_senders_before_a_summary_are_read_once(
    node: TestNode, ana: User, bo: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CTX-06, CTX-07: the later responses of a turn do not read all messages before the summary again."""
    read: list[str] = []
    stored = senders.senders_of

    def reading(messages: QuerySet[ChatMessage]) -> frozenset[Named]:
        read.append(str(messages.query))
        return stored(messages)

    monkeypatch.setattr(senders, "senders_of", reading)
    node.script(answers)
    session = await node.session(ana)
    await talk(node, session, bo, "One")
    await talk(node, session, ana, "Two", "Three", "Four")
    await node.do(compaction.compact, session=session, author=ana)
    await node.idle(session)
    read.clear()
    sums = [ToolCall(f"c{number}", "calculator", {"expression": "1 + 1"}) for number in (1, 2)]
    replies: list[Reply] = [[sums[0]], [sums[1]], ["2"]]
    provider = node.script(replies)
    await node.send(session, ana, "Five")
    await node.idle(session)
    assert [SEVERAL_SENDERS in request.system for request in provider.requests[-3:]] == [True] * 3
    assert len(read) == 1


async def test_changes_before_a_summary_change_the_senders(node: TestNode, ana: User, bo: User) -> None:
    """CTX-06: cached senders are read again if a message before the summary was excluded, removed or restored."""
    node.script(answers)
    session = await node.session(ana)
    await talk(node, session, bo, "One")
    await talk(node, session, ana, "Two", "Three", "Four")
    await node.do(compaction.compact, session=session, author=ana)
    await node.idle(session)
    first = (await node.rows(session))[1].pk

    def names_senders() -> bool:
        return SEVERAL_SENDERS in build_agent_input(session.pk).agent.system

    values: dict[str, Any] = {"session": session, "author": ana, "message_id": first}
    assert [await node.do(names_senders) for _ in range(2)] == [True, True]
    await node.do(editing.set_included, included=False, **values)
    assert [await node.do(names_senders) for _ in range(2)] == [False, False]
    await node.do(editing.set_included, included=True, **values)
    assert await node.do(names_senders)
    await node.do(editing.remove, **values)
    assert not await node.do(names_senders)
    await node.do(editing.restore, **values)
    assert await node.do(names_senders)


async def test_second_summary_sums_up_the_first(node: TestNode, ana: User) -> None:
    """CTX-07: a second compaction summarizes the first summary and the later messages."""
    provider = node.script(answers)
    session = await node.session(ana)
    await talk(node, session, ana, "One", "Two", "Three")
    await node.do(compaction.compact, session=session, author=ana)
    await node.idle(session)
    await talk(node, session, ana, "Four", "Five")
    await node.do(compaction.compact, session=session, author=ana)
    await node.idle(session)
    asked = provider.requests[-1].messages[0].text
    assert "They counted." in asked
    assert "Two" in asked
    assert "Re: One" not in asked
    summaries = ChatMessage.objects.in_conversation(session.pk).filter(summarises__isnull=False).order_by("sequence")
    assert await node.do(lambda: list(summaries.values_list("summarises", flat=True))) == [2, 6]


async def test_stop_and_errors_leave_everything_as_it_was(node: TestNode, ana: User) -> None:
    """CTX-07, RUN-07: a compaction that is stopped or fails writes nothing, and the next message is answered."""
    gate = Gate()
    script: Iterator[Reply] = iter([["Re: One"], [gate, "Never"], [ContextTooLong("Too long.")], ["Re: Two"]])
    node.script(lambda _request: next(script))
    session = await node.session(ana)
    await talk(node, session, ana, "One")
    before = await node.shown(session)
    await node.do(compaction.compact, session=session, author=ana)
    await gate.reached()
    with pytest.raises(Busy):
        await node.do(compaction.compact, session=session, author=ana)
    assert await node.cancel(session, ana)
    await node.idle(session)
    assert await node.shown(session) == before
    await node.do(compaction.compact, session=session, author=ana)
    await node.idle(session)
    assert await node.shown(session) == before
    await talk(node, session, ana, "Two")
    assert [text for kind, _, text in await node.shown(session) if kind == "text"] == [
        "One",
        "Re: One",
        "Two",
        "Re: Two",
    ]
    assert not await node.do(MessageRevision.objects.filter(message__session=session).exists)


async def test_pieces_get_smaller_until_the_model_accepts_them(node: TestNode, ana: User) -> None:
    """CTX-07: a session can be compacted if the server's window is smaller than the known one."""
    read: list[str] = []

    def small(request: Request) -> Reply:
        if request.system == INSTRUCTIONS:
            if len(request.messages[0].text) > 9_000:
                return [ContextTooLong("Too long.")]
            read.append(request.messages[0].text)
        return answers(request)

    node.script(small)
    session = await node.session(ana)
    words = [f"Word{number} " * 400 for number in range(8)]
    await talk(node, session, ana, *words, "Last", "End")
    await node.do(Session.objects.filter(pk=session.pk).update, context_window=100_000)
    await node.do(session.refresh_from_db)
    await node.do(compaction.compact, session=session, author=ana)
    await node.idle(session)
    assert (await summary_of(node, session)).text == "They counted."
    assert [sum(text.count(f"Word{number} ") for text in read) // 400 for number in range(8)] == [2] * 8
    assert all("<conversation>\n## " in text for text in read)


async def test_messages_wait_for_a_compaction(node: TestNode, ana: User, bo: User) -> None:
    """CTX-07, RUN-06: messages sent during a compaction are queued, and answered after it."""
    gate = Gate()
    script: Iterator[Reply] = iter([["Re: One"], ["Re: Two"], [gate, "They counted."], ["Re: Three"]])
    provider = node.script(lambda _request: next(script))
    session = await node.session(ana)
    await talk(node, session, ana, "One", "Two")
    await node.do(compaction.compact, session=session, author=ana)
    await gate.reached()
    assert (await node.send(session, ana, "Three")).queued
    gate.open()
    await node.until(lambda: ChatMessage.objects.filter(session=session, text="Re: Three", status="complete").exists())
    await node.idle(session)
    assert [message.text for message in provider.requests[-1].messages][1:] == ["Two", "Re: Two", "Three"]
    await node.do(check_rest, session)


async def test_changed_messages_are_not_summarized_as_they_were(node: TestNode, ana: User) -> None:
    """CTX-07: if a message is edited while the model reads it, the messages stay in the context."""
    gate = Gate()
    script: Iterator[Reply] = iter([["Re: One"], ["Re: Two"], ["Re: Three"], [gate, "They counted."]])
    node.script(lambda _request: next(script))
    session = await node.session(ana)
    await talk(node, session, ana, "One", "Two", "Three")
    await node.do(compaction.compact, session=session, author=ana)
    await gate.reached()
    first = (await node.rows(session))[1]
    await node.do(editing.edit, session=session, author=ana, message_id=first.pk, text="Uno")
    gate.open()
    await node.idle(session)
    summaries = ChatMessage.objects.filter(session=session, summarises__isnull=False)
    assert not await node.do(summaries.exists)


TWO_AGENTS = {
    "providers": {"scripted": {"type": "demo", "models": {"one": {}}}},
    "agents": {
        "agent": {"model": "scripted/one", "tools": [], "title": "Chief", "system_prompt": "Chief"},
        "helper": {"model": "scripted/one", "tools": ["work"], "title": "Helper", "system_prompt": "Helper"},
    },
    "default_agent": "agent",
}


async def talk_of_two(node: TestNode, ana: User) -> tuple[Session, Gate]:
    """Return a session in which another agent has used a tool. A summary waits for the gate."""
    gate, bench = Gate(), Workbench()
    bench.let_go(1)
    helper: Iterator[Reply] = iter([work(1), ["Did it."]])

    def answer(request: Request) -> Reply:
        if request.system == INSTRUCTIONS:
            return [gate, "They worked."]
        return next(helper) if request.system.startswith("Helper") else ["Yes."]

    node.script(answer, TWO_AGENTS, [bench.tool])
    session = await node.session(ana)
    await node.do(agents.add_agent, session=session, author=ana, agent="helper")
    await talk(node, session, ana, "One", "@helper work", "Two", "Three", "Four")
    return session, gate


async def test_changes_before_the_calls_of_another_agent_are_seen(node: TestNode, ana: User) -> None:
    """CTX-07, CTX-06: an edit in the meantime counts, also before rows that the summarizing agent does not get."""
    session, gate = await talk_of_two(node, ana)
    await node.do(compaction.compact, session=session, author=ana)
    await gate.reached()
    first = (await node.rows(session))[1]
    await node.do(editing.edit, session=session, author=ana, message_id=first.pk, text="Uno")
    gate.open()
    await node.idle(session)
    assert not await node.do(ChatMessage.objects.filter(session=session, summarises__isnull=False).exists)


async def test_earlier_changes_of_another_agents_calls_do_not_count(node: TestNode, ana: User) -> None:
    """CTX-07, CTX-06: a change before the summary was requested does not prevent it, also of a row that the summarizing
    agent does not get."""
    session, gate = await talk_of_two(node, ana)
    [call] = [row for row in await node.rows(session) if row.type == "tool_group"]
    await node.do(editing.set_included, session=session, author=ana, message_id=call.pk, included=False)
    gate.open()
    await node.do(compaction.compact, session=session, author=ana)
    await node.idle(session)
    assert (await summary_of(node, session)).text == "They worked."


async def test_calls_and_results_stay_together(node: TestNode, ana: User) -> None:
    """CTX-03, CTX-07: a turn with tools is summarized or kept as a whole."""
    bench = Workbench()
    script: Iterator[Reply] = iter(
        [["Looking.", *work(1, 2)], ["Done."], ["Re: Two"], ["Re: Three"], ["They worked."], ["Re: Four"]]
    )
    provider = node.script(lambda _request: next(script), tools=[bench.tool])
    session = await node.session(ana)
    bench.let_go(1, 2)
    await talk(node, session, ana, "One", "Two", "Three")
    await node.do(compaction.compact, session=session, author=ana)
    await node.idle(session)
    assert "did 2" in provider.requests[-1].messages[0].text
    await talk(node, session, ana, "Four")
    assert not any(message.tool_calls or message.tool_results for message in provider.requests[-1].messages)


async def test_session_compacts_itself(node: TestNode, ana: User) -> None:
    """CTX-07: if automatic compaction is on, a turn that exceeds the threshold is followed by a summary."""
    node.script(answers)
    session = await node.session(ana)
    await node.do(lifecycle.configure, session=session, author=ana, compact_at=30)
    await talk(node, session, ana, "One " * 290, "Two")
    summary = await summary_of(node, session)
    assert (summary.summarises, summary.user_id) == (2, None)
    with pytest.raises(ServiceError, match="percentage"):
        await node.do(lifecycle.configure, session=session, author=ana, compact_at=20)


async def test_there_must_be_something_to_summarize(node: TestNode, ana: User) -> None:
    """CTX-07: an empty session, and a question without an answer, are refused with a reason."""
    node.script([[ContextTooLong("Too long.")]])
    session = await node.session(ana)
    with pytest.raises(ServiceError, match="no earlier messages"):
        await node.do(compaction.compact, session=session, author=ana)
    await talk(node, session, ana, "One")
    with pytest.raises(ServiceError, match="no earlier messages"):
        await node.do(compaction.compact, session=session, author=ana)
    assert not (await node.do(SessionRun.objects.get, pk=session.pk)).compacting


async def test_summary_keeps_the_numbers_of_its_pages(node: TestNode, ana: User) -> None:
    """CTX-07, UI-14: a number in a summary does not become the number of a page that is found later."""
    replies: Iterator[Reply] = iter(
        [
            [ToolCall("c1", "look", {"url": "https://prices.example/"})],
            ["The price is 5 [1]."],
            ["Yes."],
            [ToolCall("c2", "look", {"url": "https://weather.example/"})],
            ["The price is 5 [1], and it rains [2]."],
        ]
    )
    summary = ["The price is 5 [1]."]
    node.script(lambda request: summary if request.system == INSTRUCTIONS else next(replies), tools=[look])
    session = await node.session(ana)
    await talk(node, session, ana, f"What does it cost? {'x' * 3000}", "Sure?")
    await node.do(compaction.compact, session=session, author=ana)
    await node.idle(session)
    await talk(node, session, ana, "And the weather?")
    answer = (await node.rows(session))[-2]
    assert answer.text == "The price is 5 [1], and it rains [2]."
    assert answer.sources == [{"number": 2, "title": "https://weather.example/", "url": "https://weather.example/"}]
