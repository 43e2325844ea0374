"""Which model answers, its usage, and the contents of its requests."""

from __future__ import annotations

from django.db import transaction

from agents.events import ReasoningDelta, Usage
from agents.messages import ToolCall
from agents.providers.scripted import Gate, Sign
from chat.models import Session, User
from chat.services.sessions.lifecycle import set_model, set_system_prompt
from chat.services.transaction import SessionTransaction
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode
from tests.support.workbench import Workbench, work


async def test_model_switch_affects_the_next_response(node: TestNode, ana: User) -> None:
    """RUN-16, RUN-05, MSG-04: a model switch affects the next response, also within a turn.

    Earlier messages keep their model.
    """
    bench = Workbench()
    provider = node.script([["Let me see.", *work(1), Usage(400, 10)], ["So.", Usage(500, 20)]], tools=[bench.tool])
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await bench.begun(1)
    await node.do(set_model, session=session, author=ana, provider="scripted", model="two")
    assert (await node.snapshot(session)).session.context_window is None
    bench.let_go(1)
    await node.idle(session)
    assert [request.model for request in provider.requests] == ["one", "two"]
    assert [(row.text, row.model) for row in await node.rows(session) if row.role == "assistant"] == [
        ("Let me see.", "one"),
        ("", "one"),
        ("So.", "two"),
    ]
    session = await node.do(Session.objects.get, pk=session.pk)
    assert (session.model, session.context_used, session.context_window) == ("two", 500, None)


async def test_switch_in_mid_response_is_not_undone_by_its_end(node: TestNode, ana: User) -> None:
    """RUN-05, RUN-16: the end of the old model's response does not change the context window of the new model."""
    gate = Gate()
    node.script([["Hel", gate, "lo", Usage(400, 10)]])
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await gate.reached()
    await node.do(set_model, session=session, author=ana, provider="scripted", model="two")
    gate.open()
    await node.idle(session)
    now = (await node.snapshot(session)).session
    assert (now.model, now.context_used, now.context_window) == ("two", 400, None)
    assert (await node.rows(session))[2].model == "one"


async def test_usage_is_kept_per_response_and_summed(node: TestNode, ana: User) -> None:
    """RUN-04, MSG-06: the last row of each response has its usage, and the session has the sum of input and output."""
    sums = [ToolCall(f"c{n}", "calculator", {"expression": "1"}) for n in (1, 2)]
    node.script(
        [
            [ReasoningDelta("hm"), "Look", *sums, Usage(100, 20, 30, 40)],
            ["So.", Usage(250, 5)],
            ["Again.", Usage()],
        ]
    )
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await node.idle(session)
    rows = [row for row in await node.rows(session) if row.total_tokens is not None]
    assert [(row.type, row.text, row.input_tokens, row.output_tokens, row.total_tokens) for row in rows] == [
        ("tool_group", "", 100, 20, 120),
        ("text", "So.", 250, 5, 255),
    ]
    assert (rows[0].cache_read_tokens, rows[0].cache_write_tokens) == (30, 40)
    assert all(row.first_token_latency_ms is not None for row in rows)
    now = (await node.snapshot(session)).session
    assert (now.session_total_tokens, now.context_used, now.context_window, now.context_percent) == (375, 250, 1000, 25)
    await node.send(session, ana, "Hi")
    await node.idle(session)
    now = (await node.snapshot(session)).session
    assert (now.session_total_tokens, now.context_used, now.context_percent) == (375, None, None)


@transaction.atomic
def change_row(session: Session, which: dict[str, str], fields: dict[str, object]) -> None:
    """Change a row like a service."""
    tx = SessionTransaction.lock(session.pk)
    tx.update("message_updated", tx.messages().get(**which), fields)
    tx.save()


async def test_edit_between_rounds_is_what_the_model_gets(node: TestNode, ana: User) -> None:
    """ADM-02, MSG-01: each request is built from the rows, so an edit between rounds counts."""
    bench = Workbench()
    provider = node.script([["Let me see.", *work(1)], ["So."]], tools=[bench.tool])
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await bench.begun(1)
    await node.do(change_row, session, {"role": "user"}, {"text": "Hello"})
    await node.do(change_row, session, {"text": "Let me see."}, {"include_in_context": False})
    await node.do(set_system_prompt, session=session, author=ana, system_prompt="Be brief.")
    bench.let_go(1)
    await node.idle(session)
    request = provider.requests[1]
    assert request.system == "Be brief."
    assert [message.text for message in request.messages] == ["Hello", "", ""]
    assert [result.content for message in request.messages for result in message.tool_results] == ["did 1"]


async def test_signatures_and_raw_arguments_survive_the_rows(node: TestNode, ana: User) -> None:
    """MSG-08: data that the vendor needs is returned byte for byte."""
    raw = '{ "expression" :"1 + 1" }'
    call = ToolCall("c1", "calculator", {"expression": "1 + 1"}, raw)
    provider = node.script(
        [
            [Sign({"redacted": "xyz="}), ReasoningDelta("h"), ReasoningDelta("m"), Sign({"signature": "abc="}), call],
            ["2"],
        ]
    )
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await node.idle(session)
    hidden, shown, called = provider.requests[1].messages[1].parts
    assert (hidden.text, hidden.data) == ("", {"redacted": "xyz="})  # type: ignore[union-attr]  # the script says so
    assert (shown.text, shown.data) == ("hm", {"signature": "abc="})  # type: ignore[union-attr]  # likewise
    assert called == call


async def test_odd_characters_of_a_model_are_replaced(node: TestNode, ana: User) -> None:
    """MSG-12: invalid characters in texts, arguments and results are replaced, and everything else is kept exactly."""
    text = "שלום 👩‍👩‍👧 a\0b \ud83d c"
    provider = node.script([[text, ToolCall("c\0", "calc\0", {"e\0": "\udfff", "nan": float("nan")})], ["Oh."]])
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await node.idle(session)
    rows = await node.rows(session)
    assert rows[2].text == "שלום 👩‍👩‍👧 a\ufffdb \ufffd c"
    assert (rows[3].tool_name, rows[3].arguments) == ("calc\ufffd", {"e\ufffd": "\ufffd", "nan": "nan"})
    assert provider.requests[1].messages[1].text == rows[2].text
    await node.do(check_rest, session)


async def test_large_paste_reaches_the_model_exactly(node: TestNode, ana: User) -> None:
    """MSG-12: a megabyte of text reaches the model and comes back exactly."""
    paste = "0123456789 ünïcödé\n" * 55_000
    provider = node.script(lambda request: [request.messages[-1].text])
    session = await node.session(ana)
    await node.send(session, ana, paste)
    await node.idle(session)
    assert provider.requests[0].messages[0].text == paste
    assert (await node.rows(session))[2].text == paste


async def test_run_goes_on_without_a_viewer(node: TestNode, ana: User) -> None:
    """RUN-14: a run continues without a viewer, even if the account of its sender becomes inactive."""
    gate = Gate()
    node.script([["Hel", gate, "lo"]])
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await gate.reached()
    await node.do(User.objects.filter(pk=ana.pk).update, is_active=False)
    gate.open()
    await node.idle(session)
    assert (await node.shown(session))[2] == ("text", "complete", "Hello")


async def test_every_message_says_who_made_it(node: TestNode, ana: User) -> None:
    """MSG-04, MSG-05: each message has its sender and user, or its model and provider.

    Times have an offset, and user texts no duration.
    """
    node.script([[ReasoningDelta("hm"), "Yes", ToolCall("c1", "calculator", {"expression": "1"})], ["So."]])
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await node.idle(session)
    rows = await node.rows(session)
    assert [(row.sender, row.user_id, row.model, row.provider) for row in rows] == [
        ("", None, "", ""),
        ("Ana", ana.pk, "", ""),
        *[("", None, "one", "scripted")] * 4,
        ("", None, "", ""),
    ]
    assert [row.duration_ms is not None for row in rows] == [False, False, True, True, True, True, False]
    assert all(row.timestamp.tzinfo for row in rows)
    tool, done = rows[4], rows[6]
    assert tool.ended_at is not None
    assert tool.ended_at >= tool.timestamp >= rows[3].timestamp
    assert done.duration_seconds is not None
