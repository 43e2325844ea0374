"""Users change earlier messages, and the agent continues from the changed conversation."""

from __future__ import annotations

import pytest

from agents.providers.scripted import Gate
from chat.models import ChatMessage, Session, User
from chat.services.messages.editing import edit, remove, restore, set_included
from chat.services.runs.control import retry
from chat.services.sessions.forking import fork
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode
from tests.support.workbench import Workbench, work

pytestmark = pytest.mark.both_databases


async def said(node: TestNode, session: Session, text: str) -> str:
    """Return the id of the message with this text."""
    row = await node.do(ChatMessage.objects.get, session=session, text=text, sequence__isnull=False)
    return row.pk


async def test_next_request_reflects_edits_exclusions_removals_and_restores(node: TestNode, ana: User) -> None:
    """ADM-02, MSG-09, MSG-11: the model gets edited and restored texts, and neither excluded nor removed ones."""
    provider = node.script([["One."], ["Two."], ["Three."], ["Four."]])
    session = await node.session(ana)
    for text in ("First", "Second"):
        await node.send(session, ana, text)
        await node.idle(session)
    await node.do(edit, session=session, author=ana, message_id=await said(node, session, "First"), text="Before")
    await node.do(
        set_included, session=session, author=ana, message_id=await said(node, session, "One."), included=False
    )
    gone = await said(node, session, "Two.")
    await node.do(remove, session=session, author=ana, message_id=gone)
    await node.send(session, ana, "Third")
    await node.idle(session)
    assert [message.text for message in provider.requests[2].messages] == ["Before", "Second", "Third"]
    await node.do(restore, session=session, author=ana, message_id=gone)
    await node.send(session, ana, "Fourth")
    await node.idle(session)
    assert [message.text for message in provider.requests[3].messages] == [
        "Before",
        "Second",
        "Two.",
        "Third",
        "Three.",
        "Fourth",
    ]
    await node.do(check_rest, session)


async def test_edit_elsewhere_takes_effect_within_the_turn(node: TestNode, ana: User) -> None:
    """ADM-02: an edit during a turn counts from its next response."""
    bench = Workbench()
    provider = node.script([["One."], work(1), ["Done."]], tools=[bench.tool])
    session = await node.session(ana)
    await node.send(session, ana, "First")
    await node.idle(session)
    await node.send(session, ana, "Go")
    await bench.begun(1)
    await node.do(edit, session=session, author=ana, message_id=await said(node, session, "First"), text="Before")
    bench.let_go(1)
    await node.idle(session)
    first = [request.messages[0].text for request in provider.requests]
    assert first == ["First", "First", "Before"]
    await node.do(check_rest, session)


async def test_retry_of_an_edited_question_answers_the_new_one(node: TestNode, ana: User) -> None:
    """RUN-12, MSG-11: the question keeps its place, and the old answer is no longer shown or in the context."""
    provider = node.script([["One."], ["Two."]])
    session = await node.session(ana)
    await node.send(session, ana, "Frist")
    await node.idle(session)
    question = await said(node, session, "Frist")
    await node.do(edit, session=session, author=ana, message_id=question, text="First")
    await node.do(retry, session=session, author=ana, message_id=question)
    await node.idle(session)
    assert [message.text for message in provider.requests[1].messages] == ["First"]
    assert [text for kind, _, text in await node.shown(session) if kind == "text"] == ["First", "Two."]
    await node.do(check_rest, session)


async def test_retry_of_a_tool_call_requests_its_whole_response_again(node: TestNode, ana: User) -> None:
    """RUN-12, CTX-03: retrying a tool call withdraws its response's text and calls together."""
    bench = Workbench()
    bench.let_go(1, 2, 3)
    provider = node.script([["Look.", *work(1, 2)], ["Done."], work(3), ["Again."]], tools=[bench.tool])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await node.idle(session)
    call = await node.do(ChatMessage.objects.get, session=session, tool_call_id="w2")
    await node.do(retry, session=session, author=ana, message_id=call.pk)
    await node.idle(session)
    assert [message.text for message in provider.requests[2].messages] == ["Go"]
    assert [row[2] for row in await node.shown(session) if row[2]] == ["Go", "did 3", "Again."]
    await node.do(check_rest, session)


async def test_fork_goes_its_own_way(node: TestNode, ana: User, bo: User) -> None:
    """RUN-13: a fork with another text is answered while the original is still being answered."""
    gate = Gate()
    provider = node.script([["One."], [gate, "Two."], ["Other."]])
    session = await node.session(ana)
    await node.send(session, ana, "First")
    await node.idle(session)
    await node.send(session, ana, "Second")
    await gate.reached()
    question = await said(node, session, "Second")
    made = await node.do(fork, session=session, author=bo, message_id=question, text="Rather", run=True)
    await node.idle(made)
    gate.open()
    await node.idle(session)
    assert [message.text for message in provider.requests[2].messages] == ["[Ana] First", "One.", "[Bo] Rather"]
    assert [row[2] for row in await node.shown(made) if row[2]] == ["First", "One.", "Rather", "Other."]
    assert [row[2] for row in await node.shown(session) if row[2]] == ["First", "One.", "Second", "Two."]
    await node.do(check_rest, session)
    await node.do(check_rest, made)
