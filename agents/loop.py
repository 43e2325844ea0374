"""The agent loop: it runs responses and tool rounds until the turn ends, and yields events."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from agents.approval import NO_RULES, Rules
from agents.errors import ProviderError
from agents.events import (
    AgentEvent,
    ResponseStarted,
    RetryScheduled,
    RoundLimitReached,
    ToolDelegated,
    ToolReturned,
    ToolWaiting,
    TurnFailed,
    TurnFinished,
)
from agents.foreign_text import marked, origins
from agents.i18n import TranslatableText
from agents.i18n import gettext as _
from agents.knowledge import Knowledge
from agents.messages import Message, Text, ToolCall, ToolResult
from agents.model_facts import NOTHING, Capabilities
from agents.providers.base import Provider, Request, ToolSpec
from agents.reasoning import UNCHOSEN, Reasoning, ReasoningSupport
from agents.response import Response, ask, rounds_begun, unanswered_calls
from agents.sandbox.command import Sandbox
from agents.sources import SourceNumbers
from agents.threads import in_thread
from agents.tool_round import WaitForAnswer, run_tools
from agents.toolbox.address_policy import (
    ModelText,
    arguments_have_new_address,
    has_new_address,
    texts_with_addresses,
)
from agents.tools import Tool, ToolContext, failed_result

MAX_ATTEMPTS = 3
MAX_PAUSES = 3
# In seconds. If a server asks for a longer pause, the error is reported to the user instead.
MAX_RETRY_DELAY = 60.0
# The pause if the server names none: 1 s, then 2 s, varied at random so that many sessions do not retry together.
RETRY_BASE = 2.0
RETRY_JITTER = (0.75, 1.25)

# A response can have hundreds of calls, and each would need its own connection or thread.
MAX_CALLS = 32
# The most places of origin that the reason of an approval names.
MAX_ORIGINS = 3

NOT_RUN_MANY = f"Not run: at most {MAX_CALLS} tool calls of one response are run. Call it again if it is still needed."
NOT_RUN_CUT = "Not run: the response that requested it was cut off."
NOT_RUN_LIMIT = "Not run: the tool rounds of this turn are used up."
NOT_RUN_UNATTENDED = (
    "Not run: no one is available to answer or approve this call. Continue without it, and say what a user has to "
    "decide."
)
NOT_RUN_DENIED = "Not run: the rules of this agent or its workspace do not allow this call."


@dataclass(frozen=True, slots=True)
class Agent:
    """A model at a provider, with its system prompt, its tools, and the rules for their approval."""

    name: str
    model: str
    provider: Provider
    system: str = ""
    tools: tuple[Tool, ...] = ()
    max_rounds: int = 25
    max_tokens: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    context_window: int | None = None
    capabilities: Capabilities = NOTHING
    reasoning: Reasoning = UNCHOSEN
    support: ReasoningSupport | None = None
    allowed_hosts: tuple[str, ...] = ()
    is_imported: bool = False
    rules: Rules = NO_RULES
    sandbox: Sandbox | None = None
    # The same in all requests of a session.
    cache_key: str = ""
    # Whether users must approve calls that can send data out while text from elsewhere is in the conversation.
    asks_before_sending: bool = True
    knowledge: Knowledge | None = None
    # Whether no user is present. Then questions, and calls that need an approval, are refused.
    unattended: bool = False


BeforeRunning = ToolWaiting | ToolDelegated | ToolReturned
# Returns whether the turn ends here because new input is pending (RUN-06). It is called after the last ToolReturned of
# a round, but not while other agents work.
CheckPending = Callable[[], Awaitable[bool]]
# Returns the current agent and history, before each LLM call except the first (RUN-16, ADM-02).
Refresh = Callable[[], Awaitable[tuple[Agent, Sequence[Message]]]]
Sleep = Callable[[float], Awaitable[None]]


async def run(
    agent: Agent,
    history: Sequence[Message],
    check_pending: CheckPending | None = None,
    *,
    refresh: Refresh | None = None,
    wait_for_answer: WaitForAnswer | None = None,
    sleep: Sleep = asyncio.sleep,
) -> AsyncGenerator[AgentEvent, None]:
    """Run one turn; the last event is TurnFinished or TurnFailed. Use it within `contextlib.aclosing`.

    First the calls run that have no result in the history (RUN-12). Then each response yields ResponseStarted, the
    provider's events, ResponseDone and its tool round. A new attempt after RetryScheduled has its own ResponseStarted.
    If the history ends with results, these arrived while the turn waited, so `check_pending` is asked first.
    Cancelling the consumer or closing the generator closes the provider's stream and cancels running tools.
    """
    calls = unanswered_calls(history)
    rounds = rounds_begun(history) - bool(calls)
    turn = _Turn(agent, list(history), check_pending, refresh, wait_for_answer, sleep, rounds=rounds)
    if not calls and history and history[-1].tool_results and await turn.is_pending():
        yield TurnFinished("pending")
        return
    while True:
        if calls:
            async with aclosing(turn.tool_round(calls)) as events:
                async for event in events:
                    yield event
            if not turn.is_delegating and await turn.is_pending():
                yield TurnFinished("pending")
                return
            if turn.is_waiting or turn.is_delegating:
                yield TurnFinished("waiting")
                return
        response = Response()
        async with aclosing(turn.step(response)) as events:
            async for event in events:
                yield event
        if turn.ended:
            return
        calls = response.calls


@dataclass
class _Turn:
    """The state of one turn between its events."""

    agent: Agent
    history: list[Message]
    check_pending: CheckPending | None
    refresh: Refresh | None
    wait_for_answer: WaitForAnswer | None
    sleep: Sleep
    stale: bool = False
    rounds: int = 0
    pauses: int = 0
    ended: bool = False
    is_waiting: bool = False
    is_delegating: bool = False

    async def is_pending(self) -> bool:
        return self.check_pending is not None and await self.check_pending()

    async def tool_round(self, calls: Sequence[ToolCall]) -> AsyncGenerator[AgentEvent, None]:
        """Run the calls of a response.

        A call that users have to answer or approve gets a ToolWaiting instead of a ToolReturned, or is refused if the
        agent is unattended. A task for another agent gets a ToolDelegated. When the other calls are done, the turn ends
        as `waiting` (UI-12). It continues with a history in which the results are present or the calls are approved.
        """
        tools = {tool.name: tool for tool in self.agent.tools}
        results: dict[str, ToolResult] = {}
        runnable = []
        origin = self._foreign_origin()
        for place, call in enumerate(calls):
            surplus = ToolReturned(failed_result(call, NOT_RUN_MANY)) if place >= MAX_CALLS else None
            tool = tools.get(call.name)
            can_send = surplus is None and origin != "" and tool is not None and await self._can_send(tool, call)
            instead = surplus or before_running(tool, call, self.agent.rules, origin if can_send else "")
            if isinstance(instead, ToolDelegated) and not call.approved:
                instead = replace(instead, has_new_address=await in_thread(self._has_new_address, call))
            if isinstance(instead, ToolWaiting) and self.agent.unattended:
                instead = ToolReturned(failed_result(call, NOT_RUN_UNATTENDED))
            if instead is None:
                runnable.append(call)
                continue
            if isinstance(instead, ToolReturned):
                results[call.id] = instead.result
            else:
                self.is_waiting |= isinstance(instead, ToolWaiting)
                self.is_delegating |= isinstance(instead, ToolDelegated)
            yield instead
        wait = None if self.agent.unattended else self.wait_for_answer
        async with aclosing(run_tools(tools, runnable, self._context(), wait)) as events:
            async for event in events:
                if isinstance(event, ToolReturned):
                    results[event.result.call_id] = event.result
                yield event
        if not (self.is_waiting or self.is_delegating):
            self._append(Message("user", tuple(results[call.id] for call in calls)))
            self.rounds += 1

    def _foreign_origin(self) -> str:
        """Return the places from which foreign text in the conversation comes, or "" if no approval depends on them."""
        agent = self.agent
        if not agent.asks_before_sending or not any(tool.sends_out != "never" for tool in agent.tools):
            return ""
        own = {tool.name for tool in agent.tools if not tool.foreign}
        found = origins(self.history, own) or (("an import",) if agent.is_imported else ())
        return ", ".join(found[:MAX_ORIGINS])

    async def _can_send(self, tool: Tool, call: ToolCall) -> bool:
        """Return whether a call can send data to others. An approved call can, whatever its addresses are."""
        if tool.sends_out == "address" and not call.approved:
            return await in_thread(self._sends_new_address, tool, call)
        return tool.can_send(self.agent.sandbox)

    def _sends_new_address(self, tool: Tool, call: ToolCall) -> bool:
        """Return whether the arguments have an address that web_fetch would not open either.

        Addresses in the tool's description are known, such as those of the resources that it can read.
        """
        texts = self._texts_with_addresses()
        return texts is not None and arguments_have_new_address(call.arguments, [tool.description, *texts])

    def _has_new_address(self, call: ToolCall) -> bool:
        """Return whether a task has an address that this agent could not open itself, because it may have data in it.

        The other agent takes a task for the words of a user. A task that users have approved is not checked.
        """
        texts = self._texts_with_addresses()
        return texts is not None and has_new_address(str(call.arguments.get("task", "")), texts)

    def _texts_with_addresses(self) -> list[str | ModelText] | None:
        context = self._context()
        return texts_with_addresses(
            context.system, context.messages, context.own_tools, is_imported=context.is_imported
        )

    def _context(self) -> ToolContext:
        agent = self.agent
        return ToolContext(
            messages=tuple(self.history),
            system=agent.system,
            own_tools=frozenset(tool.name for tool in agent.tools if not tool.foreign),
            is_imported=agent.is_imported,
            allowed_hosts=agent.allowed_hosts,
            sandbox=agent.sandbox,
            sources=SourceNumbers(self.history),
            knowledge=agent.knowledge,
        )

    async def step(self, response: Response) -> AsyncGenerator[AgentEvent, None]:
        """Yield the events of one response with its retries, and the last event of the turn if the turn ends here.

        If the turn ends, each call of the response gets exactly one ToolReturned before (CTX-03). These calls have no
        ToolStarted, because they do not run: the response was cut, has failed, or came at the round limit.
        """
        closing = self.rounds >= self.agent.max_rounds
        if closing:
            note = limit_note(self.rounds)
            message = Message("system", (Text(note),))
            if self.history[-1:] != [message]:
                yield RoundLimitReached(self.rounds, note)
                self._append(message)
        async with aclosing(self._attempts(response, "none" if closing else "auto")) as events:
            async for event in events:
                yield event
        self._append(Message("assistant", tuple(response.parts)))
        end = self._end(response, closing)
        if end is not None:
            for call in response.calls:
                yield ToolReturned(failed_result(call, NOT_RUN_LIMIT if end == TurnFinished("limit") else NOT_RUN_CUT))
            self.ended = True
            yield end

    def _end(self, response: Response, closing: bool) -> TurnFinished | TurnFailed | None:
        if response.error is not None:
            return TurnFailed(response.error)
        if closing:
            return TurnFinished("limit")
        if response.calls:
            return None
        if response.stop_reason != "pause":
            return TurnFinished("done")
        self.pauses += 1
        if self.pauses <= MAX_PAUSES:
            return None
        return TurnFailed(
            ProviderError(
                _(
                    "The model paused {count} times without an answer. Retry, or choose another model.",
                    count=self.pauses,
                )
            )
        )

    async def _attempts(self, response: Response, choice: Literal["auto", "none"]) -> AsyncGenerator[AgentEvent, None]:
        for attempt in range(1, MAX_ATTEMPTS + 1):
            if self.stale and self.refresh is not None:
                self.agent, history = await self.refresh()
                self.history = list(history)
            self.stale = False
            agent = self.agent
            yield ResponseStarted(agent.model, agent.provider.name, agent.context_window)
            async with aclosing(ask(agent.provider, request_of(agent, self.history, choice), response)) as events:
                async for event in events:
                    yield event
            error = response.error
            delay = _retry_delay(response, attempt)
            if error is None or delay is None:
                return
            yield RetryScheduled(attempt, delay, error)
            await self.sleep(delay)
            self.stale = True

    def _append(self, message: Message) -> None:
        self.stale = True
        if message.parts:
            self.history.append(message)


def before_running(tool: Tool | None, call: ToolCall, rules: Rules, origin: str = "") -> BeforeRunning | None:
    """Return the event that takes the place of a call: users are asked, it is refused, or another agent does it.

    Return None if the call can run. `origin` names the places of foreign text; pass "" if the call cannot send data
    out.
    """
    if tool is None:
        return None
    if (invalid := tool.problem(call)) is not None:
        return ToolReturned(invalid)
    if tool.question is not None:
        return ToolWaiting(call, tool.question.kind)
    is_declared = tool.declares(call)
    match rules.verdict(call, needs_approval=tool.approval, is_risky=bool(origin), is_declared=is_declared):
        case "deny":
            return ToolReturned(failed_result(call, NOT_RUN_DENIED))
        case "ask":
            return ToolWaiting(call, "approval", rules.requirement(call, is_declared=is_declared), origin)
        case _:
            return ToolDelegated(call) if tool.delegates else None


def request_of(agent: Agent, history: Sequence[Message], tool_choice: Literal["auto", "none"] = "auto") -> Request:
    """Return the request that continues a conversation with this agent."""
    return Request(
        model=agent.model,
        messages=marked(history),
        system=agent.system,
        tools=tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in agent.tools),
        tool_choice=tool_choice,
        max_tokens=agent.max_tokens,
        options=agent.options,
        reasoning=agent.reasoning,
        support=agent.support,
        cache_key=agent.cache_key,
    )


def question_to(agent: Agent, instructions: str, question: str) -> Request:
    """Return a request that asks the agent's model one question outside a conversation, with the least reasoning."""
    return Request(
        model=agent.model,
        messages=(Message("user", (Text(question),)),),
        system=instructions,
        max_tokens=agent.max_tokens,
        options=agent.options,
        reasoning=agent.support.least if agent.support else UNCHOSEN,
        support=agent.support,
    )


def _retry_delay(response: Response, attempt: int) -> float | None:
    """Return the seconds until the next attempt, or None if there is none.

    There is none if nothing failed, if a part of the answer was shown, or if a retry would not help.
    """
    error = response.error
    if error is None or not error.transient or error.sdk_retried or response.shown or attempt == MAX_ATTEMPTS:
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= MAX_RETRY_DELAY else None
    return RETRY_BASE ** (attempt - 1) * random.uniform(*RETRY_JITTER)  # noqa: S311  # jitter is no secret


def limit_note(rounds: int) -> TranslatableText:
    """Return the note that asks the model to answer without tools, because its tool rounds are used up (RUN-09)."""
    return _(
        "You have used all {rounds} tool rounds of this turn. Do not call tools now. Sum up for the user what you "
        "found out and did, and what remains to be done.",
        rounds=rounds,
    )
