"""One request to a model: its events as they come, what they add up to, and how it failed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count

from agents.errors import AnswerRefused, OutputLimitReached, ProviderError, ResponseBroken
from agents.events import PartDone, ProviderEvent, ResponseDone, StopReason, ToolCallDelta
from agents.i18n import gettext as _
from agents.messages import Message, Part, Thinking, ToolCall
from agents.providers.base import Provider, Request

logger = logging.getLogger(__name__)

RUN_OUT_SECONDS = 2.0


@dataclass
class Response:
    """What one request brought: complete parts, whether anything was shown, and its end."""

    parts: list[Part] = field(default_factory=list)
    shown: bool = False
    stop_reason: StopReason | None = None
    error: ProviderError | None = None

    @property
    def calls(self) -> list[ToolCall]:
        return [part for part in self.parts if isinstance(part, ToolCall)]

    def take(self, event: ProviderEvent) -> None:
        match event:
            case PartDone(part):
                self.parts.append(part)
                self.shown = True
            case ResponseDone(stop_reason):
                self.stop_reason = stop_reason
                self.error = _verdict(stop_reason)
            case ToolCallDelta():
                pass  # a call that is not complete is dropped, so the request can be repeated
            case _:
                self.shown = True


async def ask(provider: Provider, request: Request, response: Response) -> AsyncGenerator[ProviderEvent, None]:
    """Pass on the provider's events up to ResponseDone and fill `response`; errors of the provider end up there too."""
    taken = {call.id for message in request.messages for call in message.tool_calls}
    try:
        async with _closing(provider.stream(request)) as stream:
            async for event in stream:
                event = _with_own_id(_with_maker(event, request.model), taken)
                response.take(event)
                yield event
                if isinstance(event, ResponseDone):
                    await _run_out(stream)
                    return
        response.error = ResponseBroken(_("The model’s answer was incomplete. Retry to ask again."))
    except ProviderError as error:
        response.error = error
    except Exception:  # a bug in an adapter or SDK must end the turn with words, not with a hanging session
        logger.exception("Provider %s failed unexpectedly", provider.name)
        response.error = ProviderError(
            _(
                "Something went wrong while calling {name}. The server log has the details. Retry, or "
                "switch to another model.",
                name=provider.name,
            )
        )


async def _run_out(stream: AsyncIterator[ProviderEvent]) -> None:
    """Let the provider do what it does after its last event, such as giving its connection back, for a moment."""
    try:
        async with asyncio.timeout(RUN_OUT_SECONDS):
            async for _ in stream:
                pass
    except Exception:  # the answer is complete
        logger.info("A provider's stream did not end well after its answer", exc_info=True)


@asynccontextmanager
async def _closing(stream: AsyncIterator[ProviderEvent]) -> AsyncGenerator[AsyncIterator[ProviderEvent], None]:
    """Close the stream at the end, if it can be closed; a failure to close changes nothing for the answer."""
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            try:
                await stream.aclose()
            except Exception:  # the answer is complete or has failed for a better known reason
                logger.warning("Closing a provider's stream failed", exc_info=True)


def _verdict(stop_reason: StopReason) -> ProviderError | None:
    match stop_reason:
        case "max_tokens":
            return OutputLimitReached(
                _(
                    "The answer reached the model’s output limit. Ask it to continue, or raise max_tokens "
                    "for this model."
                )
            )
        case "refusal":
            return AnswerRefused(_("The model declined to answer. Rephrase the request, or switch to another model."))
        case _:
            return None


def _with_maker(event: ProviderEvent, model: str) -> ProviderEvent:
    """Name the model in its reasoning: only that model gets it back (MSG-08)."""
    if isinstance(event, PartDone) and isinstance(event.part, Thinking):
        return PartDone(replace(event.part, model=model))
    return event


def _with_own_id(event: ProviderEvent, taken: set[str]) -> ProviderEvent:
    """Give a tool call whose id is empty or in use an id of its own, and remember it."""
    if not (isinstance(event, PartDone) and isinstance(event.part, ToolCall)):
        return event
    call = event.part
    name = call.id if call.id and call.id not in taken else _free(call.id or "call", taken)
    taken.add(name)
    return event if name == call.id else PartDone(replace(call, id=name), event.key)


def _free(base: str, taken: Iterable[str]) -> str:
    return next(name for number in count(2) if (name := f"{base}_{number}") not in taken)


def rounds_begun(history: Iterable[Message]) -> int:
    """Return the tool rounds since the last user message, including one that may lack results (RUN-09)."""
    rounds = 0
    for message in history:
        if message.role == "user" and message.text:
            rounds = 0
        rounds += bool(message.tool_calls)
    return rounds


def owed_calls(history: Iterable[Message]) -> list[ToolCall]:
    """The calls at the end of the history that have no result yet, in order (RUN-12)."""
    owed: dict[str, ToolCall] = {}
    for message in history:
        if message.role == "assistant":
            owed = {call.id: call for call in message.tool_calls}
        elif message.role == "user":
            answered = {result.call_id for result in message.tool_results}
            owed = {} if message.text else {name: call for name, call in owed.items() if name not in answered}
    return list(owed.values())
