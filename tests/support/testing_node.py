"""A running Parley in the test's event loop, with real rows, runner and hub. Only the model is scripted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

from agents.config import Config
from agents.loop import Agent
from agents.providers.base import Provider
from agents.providers.scripted import Script, ScriptedProvider
from agents.registry import AgentPreset, Registry
from agents.tools import Tool
from chat import agents_setup
from chat.db import Threads
from chat.models import ChatMessage, Membership, RunState, Session, SessionRun, Share, User, Workspace
from chat.queries.messages import Changes, changes_since
from chat.runner import runtime
from chat.services.messages import sending, starting
from chat.services.messages.sending import Sent
from chat.services.runs import control
from chat.services.sessions import lifecycle

P = ParamSpec("P")
T = TypeVar("T")

CONFIG = {
    "providers": {"scripted": {"type": "demo", "models": {"one": {"context_window": 1000}, "two": {}}}},
    "agents": {"agent": {"model": "scripted/one", "tools": ["calculator", "current_time"]}},
    "default_agent": "agent",
}


class ScriptedRegistry(Registry):
    """The real registry, with a single provider that plays the test's script, and with the test's own tools."""

    def __init__(self, scripted: Provider, config: dict[str, Any] = CONFIG, tools: Sequence[Tool] = ()) -> None:
        super().__init__(Config.model_validate(config), {})
        self.scripted = scripted
        self.tools = tuple(tools)

    def provider(self, name: str) -> Provider:
        return self.scripted

    def build_agent(self, preset: AgentPreset) -> Agent:
        agent = super().build_agent(preset)
        return replace(agent, tools=(*agent.tools, *self.tools))


class TestNode:
    """A running node, with helpers for tests. Waits raise TimeoutError after 20 seconds."""

    # pytest must not collect this class, although its name begins with "Test".
    __test__ = False

    def __init__(self) -> None:
        self.threads = Threads(2, "test")
        self.script([])

    async def start(self) -> None:
        await runtime.start()

    async def stop(self) -> None:
        await runtime.stop()

    async def restart(self) -> None:
        """Stop and start the node as an operator does. The script continues where it was."""
        await self.stop()
        agents_setup.install(self.registry)
        await self.start()

    def script(self, script: Script, config: dict[str, Any] = CONFIG, tools: Sequence[Tool] = ()) -> ScriptedProvider:
        """Set the model's responses from now on. The agent gets `tools` in addition to its own."""
        self.provider = ScriptedProvider(script)
        self.registry = ScriptedRegistry(self.provider, config, tools)
        agents_setup.install(self.registry)
        return self.provider

    async def do(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a synchronous function that uses the database in a thread. Wait at most 20 seconds."""
        return await asyncio.wait_for(self.threads.run(function, *args, **kwargs), 20)

    async def session(self, owner: User) -> Session:
        return await self.do(lifecycle.create_session, owner=owner, title="Talk")

    async def send(self, session: Session, author: User, text: str, key: str | None = None) -> Sent:
        return await self.do(_send, session, author, text, key)

    async def cancel(self, session: Session, author: User) -> bool:
        return await self.do(control.cancel, session=session, author=author)

    async def retry(self, session: Session, author: User, message_id: str) -> None:
        await self.do(control.retry, session=session, author=author, message_id=message_id)

    async def rows(self, session: Session) -> list[ChatMessage]:
        """Return the live rows in order, with the queued ones last."""
        return await self.do(lambda: list(live_rows(session)))

    async def shown(self, session: Session) -> list[tuple[str, str, str]]:
        """Return (type, status, text or result) of every live row."""
        return [(row.type, row.status, row.result or row.text) for row in await self.rows(session)]

    async def idle(self, session: Session) -> None:
        """Wait until the session is idle."""
        await self.until(lambda: SessionRun.objects.get(pk=session.pk).state == RunState.IDLE)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition on the rows is true."""
        async with asyncio.timeout(20) as limit:
            while not await self.do(condition):
                # `do` loses a cancellation that arrives when the thread's work ends.
                if limit.expired():
                    raise TimeoutError
                await asyncio.sleep(0.005)

    async def snapshot(self, session: Session) -> Changes:
        changes = await self.do(changes_since, session.pk, 0)
        assert changes is not None
        return changes


def _send(session: Session, author: User, text: str, key: str | None) -> Sent:
    """Send a text like a client does, also for a user without access."""
    begun = starting.begin_turn(author=author, session_id=session.pk, text=text, key=key)
    if begun is not None:
        return Sent(begun.id, queued=False, repeated=False, turn_id=begun.turn_id, sequence=begun.sequence)
    return sending.send_message(session=session, author=author, text=text, key=key)


def live_rows(session: Session) -> list[ChatMessage]:
    rows = ChatMessage.objects.filter(session=session, removed_at__isnull=True)
    return sorted(rows, key=lambda row: (row.sequence is None, row.sequence or 0, row.created_at))


def person(name: str, workspace: Workspace | None = None) -> User:
    """Create a user with a workspace of their own, or a member of the given workspace."""
    user = User.objects.create_user(name.lower(), display_name=name, password="correct horse")
    workspace = workspace or Workspace.objects.create(name=f"{name}'s")
    Membership.objects.create(workspace=workspace, user=user, role=Membership.Role.MEMBER)
    return user


def let_in(session: Session, user: User, role: str) -> None:
    Share.objects.update_or_create(session=session, user=user, defaults={"role": role})


def texts(changes: Changes) -> list[str]:
    return [message.text for message in changes.messages if message.type == "text"]
