"""Random conversations from a seed, with all actions of users and agents in a session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from random import Random

from agents.errors import ProviderError
from agents.events import ReasoningDelta, Usage
from agents.messages import ToolCall
from agents.providers.scripted import Gate, Reply, Step
from chat.errors import ServiceError
from chat.models import ChatMessage, MessageStatus, RunState, Session, SessionRun, User
from chat.services.messages import context_inclusion, editing, sending
from chat.services.runs import control
from chat.services.sessions import lifecycle
from tests.support.testing_node import TestNode

WORDS = (
    "Hello ", "**bold** ", "`code` ", "\n\n", "- item\n", "# Title\n\n", "😀 ", "你好 ", "[a][b] ", "<i>no</i> ",
    "\n[b]: http://x.y\n\n", "```py\nprint(1)\n```\n", "| a | b |\n|---|---|\n| 1 | 2 |\n\n", "e\u0301 ", "\u202eabc ",
)  # fmt: skip


async def _nothing() -> None:
    pass


async def converse(
    node: TestNode,
    session: Session,
    people: list[User],
    chance: Random,
    between: Callable[[], Awaitable[None]] = _nothing,
    steps: int = 12,
) -> None:
    """Run random actions of users while the agent gives random answers, then wait until the session is idle."""
    calls = iter(range(10_000))
    node.script(lambda request: _reply(chance, calls, may_call=len(request.messages) < 40))
    for _ in range(steps):
        with suppress(ServiceError):
            await _act(node, session, chance.choice(people), chance)
        await between()
        await _let_it_work(node, session, chance)
    await node.until(lambda: _rests(session))


def _rests(session: Session) -> bool:
    run = SessionRun.objects.get(pk=session.pk)
    return run.state == RunState.IDLE and run.owner_id is None


async def _let_it_work(node: TestNode, session: Session, chance: Random) -> None:
    """Yield to the loop a random number of times, or wait for the agent."""
    if chance.random() < 0.3:
        await node.until(lambda: _rests(session))
    for _ in range(chance.randrange(60)):
        await asyncio.sleep(0)


async def _act(node: TestNode, session: Session, person: User, chance: Random) -> None:
    match chance.choice(
        ["send"] * 6 + ["stop"] * 2 + ["edit", "withdraw", "rename", "model", "prompt", "retry", *["change"] * 4]
    ):
        case "send":
            await node.send(session, person, _text(chance, 5))
        case "stop":
            await node.cancel(session, person)
        case "edit":
            await node.do(sending.edit_queued, session=session, author=person,
                           message_id=await _queued(node, session), text=_text(chance, 5))  # fmt: skip
        case "withdraw":
            await node.do(sending.withdraw, session=session, author=person, message_id=await _queued(node, session))
        case "rename":
            await node.do(lifecycle.rename, session=session, author=person, title=f"Title {chance.random()}")
        case "model":
            model = chance.choice(["one", "two"])
            await node.do(lifecycle.set_model, session=session, author=person, provider="scripted", model=model)
        case "prompt":
            await node.do(lifecycle.set_system_prompt, session=session, author=person, system_prompt="Be brief.")
        case "retry":
            await node.do(control.retry, session=session, author=person, message_id=await _any(node, session, chance))
        case "change":
            await _change(node, session, person, chance)


async def _change(node: TestNode, session: Session, person: User, chance: Random) -> None:
    """Change an earlier message, if the agent does not work on it."""
    message_id = await _any(node, session, chance)
    match chance.choice(["edit", "include", "include", "include_before", "remove", "restore"]):
        case "edit":
            await node.do(editing.edit, session=session, author=person, message_id=message_id, text=_text(chance, 5))
        case "include":
            included = chance.random() < 0.5
            await node.do(
                editing.set_included, session=session, author=person, message_id=message_id, included=included
            )
        case "include_before":
            included = chance.random() < 0.5
            await node.do(
                context_inclusion.include_before,
                session=session,
                author=person,
                message_id=message_id,
                included=included,
            )
        case "remove":
            await node.do(editing.remove, session=session, author=person, message_id=message_id)
        case "restore":
            await node.do(editing.restore, session=session, author=person, message_id=await _gone(node, session))


async def _gone(node: TestNode, session: Session) -> str:
    row = await node.do(ChatMessage.objects.filter(session=session, removed_at__isnull=False).last)
    return row.pk if row else "m_none"


async def _queued(node: TestNode, session: Session) -> str:
    rows = ChatMessage.objects.filter(session=session, status=MessageStatus.QUEUED, removed_at=None)
    row = await node.do(rows.first)
    return row.pk if row else "m_none"


async def _any(node: TestNode, session: Session, chance: Random) -> str:
    rows = await node.rows(session)
    return chance.choice(rows).pk if rows else "m_none"


def _text(chance: Random, most: int) -> str:
    return "x" + "".join(chance.choices(WORDS, k=chance.randrange(1, most)))


def _reply(chance: Random, calls: Iterator[int], may_call: bool) -> Reply:
    """Return one random response of the model."""
    steps: list[Step] = []
    if chance.random() < 0.4:
        steps += [ReasoningDelta(_text(chance, 4)) for _ in range(chance.randrange(1, 5))]
    for _ in range(chance.randrange(0, 12)):
        steps.append(_text(chance, 6))
        if chance.random() < 0.2:
            steps.append(_pause())
    if may_call and chance.random() < 0.4:
        for _ in range(chance.randrange(1, 4)):
            steps.append(_call(f"c{next(calls)}", chance))
    if chance.random() < 0.1:
        steps.append(ProviderError("The model is having a bad day."))
    if chance.random() < 0.8:
        steps.append(Usage(chance.randrange(1000), chance.randrange(100)))
    return steps


def _pause() -> Step:
    """Return a pause in which the loop runs other tasks."""
    gate = Gate()
    asyncio.get_running_loop().call_later(0.002, gate.open)
    return gate


def _call(call_id: str, chance: Random) -> ToolCall:
    if chance.random() < 0.3:
        return ToolCall(call_id, "no_such_tool", {"a": [1, None]}, '{"a":[1,null]}')
    return ToolCall(call_id, "calculator", {"expression": "1+1"}, '{"expression":"1+1"}')
