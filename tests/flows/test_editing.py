"""People change what has been said, and the agent goes on from that."""

from __future__ import annotations

import pytest

from agents.providers.scripted import Gate
from chat.models import ChatMessage, Session, User
from chat.services.messages.editing import edit, include, remove, restore
from chat.services.runs.control import retry_here
from chat.services.sessions.forking import fork
from tests.support.house import House
from tests.support.rest import check_rest
from tests.support.workbench import Workbench, work

pytestmark = pytest.mark.both_databases


async def said(house: House, session: Session, text: str) -> str:
    """The id of the message with these words."""
    row = await house.do(ChatMessage.objects.get, session=session, text=text, sequence__isnull=False)
    return row.pk


async def test_next_answer_is_to_what_stands_there_now(house: House, ana: User) -> None:
    """ADM-02, MSG-09, MSG-11: the model gets edited texts and restored ones, not excluded and removed ones."""
    provider = house.script([["One."], ["Two."], ["Three."], ["Four."]])
    session = await house.session(ana)
    for text in ("First", "Second"):
        await house.send(session, ana, text)
        await house.idle(session)
    await house.do(edit, session=session, author=ana, message_id=await said(house, session, "First"), text="Before")
    await house.do(include, session=session, author=ana, message_id=await said(house, session, "One."), included=False)
    gone = await said(house, session, "Two.")
    await house.do(remove, session=session, author=ana, message_id=gone)
    await house.send(session, ana, "Third")
    await house.idle(session)
    assert [message.text for message in provider.requests[2].messages] == ["Before", "Second", "Third"]
    await house.do(restore, session=session, author=ana, message_id=gone)
    await house.send(session, ana, "Fourth")
    await house.idle(session)
    assert [message.text for message in provider.requests[3].messages] == [
        "Before",
        "Second",
        "Two.",
        "Third",
        "Three.",
        "Fourth",
    ]
    await house.do(check_rest, session)


async def test_edit_elsewhere_takes_effect_within_the_turn(house: House, ana: User) -> None:
    """ADM-02: while a turn runs, at its very next response."""
    bench = Workbench()
    provider = house.script([["One."], work(1), ["Done."]], tools=[bench.tool])
    session = await house.session(ana)
    await house.send(session, ana, "First")
    await house.idle(session)
    await house.send(session, ana, "Go")
    await bench.begun(1)
    await house.do(edit, session=session, author=ana, message_id=await said(house, session, "First"), text="Before")
    bench.let_go(1)
    await house.idle(session)
    first = [request.messages[0].text for request in provider.requests]
    assert first == ["First", "First", "Before"]
    await house.do(check_rest, session)


async def test_retry_of_an_edited_question_answers_the_new_one(house: House, ana: User) -> None:
    """RUN-12, MSG-11: the question stays where it was, the old answer is out of view and context."""
    provider = house.script([["One."], ["Two."]])
    session = await house.session(ana)
    await house.send(session, ana, "Frist")
    await house.idle(session)
    question = await said(house, session, "Frist")
    await house.do(edit, session=session, author=ana, message_id=question, text="First")
    await house.do(retry_here, session=session, author=ana, message_id=question)
    await house.idle(session)
    assert [message.text for message in provider.requests[1].messages] == ["First"]
    assert [text for kind, _, text in await house.shown(session) if kind == "text"] == ["First", "Two."]
    await house.do(check_rest, session)


async def test_retry_of_a_tool_asks_for_its_response_anew(house: House, ana: User) -> None:
    """RUN-12, CTX-03: the text and the calls of a response go together."""
    bench = Workbench()
    bench.let_go(1, 2, 3)
    provider = house.script([["Look.", *work(1, 2)], ["Done."], work(3), ["Again."]], tools=[bench.tool])
    session = await house.session(ana)
    await house.send(session, ana, "Go")
    await house.idle(session)
    call = await house.do(ChatMessage.objects.get, session=session, tool_call_id="w2")
    await house.do(retry_here, session=session, author=ana, message_id=call.pk)
    await house.idle(session)
    assert [message.text for message in provider.requests[2].messages] == ["Go"]
    assert [row[2] for row in await house.shown(session) if row[2]] == ["Go", "did 3", "Again."]
    await house.do(check_rest, session)


async def test_fork_goes_its_own_way(house: House, ana: User, bo: User) -> None:
    """RUN-13: with other words, while the original is still being answered."""
    gate = Gate()
    provider = house.script([["One."], [gate, "Two."], ["Other."]])
    session = await house.session(ana)
    await house.send(session, ana, "First")
    await house.idle(session)
    await house.send(session, ana, "Second")
    await gate.reached()
    question = await said(house, session, "Second")
    made = await house.do(fork, session=session, author=bo, message_id=question, text="Rather", run=True)
    await house.idle(made)
    gate.open()
    await house.idle(session)
    assert [message.text for message in provider.requests[2].messages] == ["[Ana] First", "One.", "[Bo] Rather"]
    assert [row[2] for row in await house.shown(made) if row[2]] == ["First", "One.", "Rather", "Other."]
    assert [row[2] for row in await house.shown(session) if row[2]] == ["First", "One.", "Second", "Two."]
    await house.do(check_rest, session)
    await house.do(check_rest, made)
