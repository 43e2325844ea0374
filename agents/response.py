"""One request to a model: its events as they arrive, the complete response, and its error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count

from agents.errors import AnswerRefused, ContextTooLong, OutputLimitReached, ProviderError, ResponseBroken
from agents.events import PartDone, ProviderEvent, ResponseDone, StopReason, ToolCallDelta
from agents.i18n import gettext as _
from agents.messages import Message, Part, Text, Thinking, ToolCall
from agents.providers.base import Provider, Request

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 2.0


@dataclass
class Response:
    """The response to one request: its complete parts, whether anything was shown, and how it ended."""

    parts: list[Part] = field(default_factory=list)
    shown: bool = False
    stop_reason: StopReason | None = None
    error: ProviderError | None = None

    @property
    def calls(self) -> list[ToolCall]:
        return [part for part in self.parts if isinstance(part, ToolCall)]

    def take(self, event: ProviderEvent, model: str) -> None:
        """Update the response by one event. `model` is its name for users."""
        match event:
            case PartDone(part):
                self._append(part)
                self.shown = True
            case ResponseDone(stop_reason, _, explanation):
                self.stop_reason = stop_reason
                self.error = _error_of(stop_reason, model, explanation)
            case ToolCallDelta():
                pass  # a call that is not complete is dropped, so the request can be repeated
            case _:
                self.shown = True

    def _append(self, part: Part) -> None:
        """Append a part. Adjacent texts without data become one, as in the rows (`runs.response_reducer`).

        Later turns are made from the rows, so their requests begin as those of this turn, and vendors' caches apply.
        Anthropic begins a new block for each text with citations.
        """
        match self.parts[-1:], part:
            case [Text(data=before) as last], Text(data=data) if not before and not data:
                sources = tuple(dict.fromkeys((*last.sources, *part.sources)))
                self.parts[-1] = replace(last, text=last.text + part.text, sources=sources)
            case _:
                self.parts.append(part)


async def ask(provider: Provider, request: Request, response: Response) -> AsyncGenerator[ProviderEvent, None]:
    """Yield the provider's events up to ResponseDone, and fill `response`. Errors are not raised, but stored there."""
    taken = {call.id for message in request.messages for call in message.tool_calls}
    try:
        async with _closing(provider.stream(request)) as stream:
            async for event in stream:
                event = _correct(event, request.model, taken)
                response.take(event, request.model)
                yield event
                if isinstance(event, ResponseDone):
                    await _drain(stream)
                    return
        response.error = ResponseBroken(_("The model’s answer was incomplete. Retry, or choose another model."))
    except ProviderError as error:
        response.error = error
    except Exception:  # a bug in an adapter or SDK must end the turn with a message, not leave the session running
        logger.exception("Provider %s failed unexpectedly", provider.name)
        response.error = ProviderError(
            _(
                "Something went wrong while calling {name}. The server log has the details. Retry, or "
                "switch to another model.",
                name=provider.name,
            )
        )


async def _drain(stream: AsyncIterator[ProviderEvent]) -> None:
    """Let the provider end its stream, for example to release its connection, for at most DRAIN_SECONDS."""
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in stream:
                pass
    except Exception:  # the answer is complete
        logger.info("A provider's stream failed after its answer was complete", exc_info=True)


@asynccontextmanager
async def _closing(stream: AsyncIterator[ProviderEvent]) -> AsyncGenerator[AsyncIterator[ProviderEvent], None]:
    """Close the stream at the end, if it can be closed. Errors are only logged, so that the answer is kept."""
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            try:
                await stream.aclose()
            except Exception:  # the answer is complete, or has already failed with a more useful error
                logger.warning("Could not close a provider's stream", exc_info=True)


def _error_of(stop_reason: StopReason, model: str, explanation: str) -> ProviderError | None:
    """Return the error of a response that ended for this reason; None if it is complete."""
    match stop_reason:
        case "max_tokens":
            return OutputLimitReached(
                _(
                    "The answer reached the model’s output limit. Ask it to continue, or raise max_tokens "
                    "for this model."
                )
            )
        case "context":
            return ContextTooLong(_("The conversation is too long for {model}. Remove part of it.", model=model))
        case "refusal":
            words = _(
                "The model declined to answer. Further requests contain the declined message, too. Edit that message, "
                "exclude it from context, or switch to another model."
            )
            quoted = _("{problem} The provider says: {words}", problem=words, words=explanation)
            return AnswerRefused(quoted if explanation else words)
        case _:
            return None


def _correct(event: ProviderEvent, model: str, taken: set[str]) -> ProviderEvent:
    """Remove implausible token counts, store the model's name in its reasoning, and make the ids of calls unique.

    Only the model that wrote the reasoning may get it back (MSG-08). A call gets a new id if its id is empty or in
    `taken`, to which its id is added.
    """
    match event:
        case PartDone(Thinking() as part):
            return PartDone(replace(part, model=model))
        case PartDone(ToolCall() as call, key):
            name = call.id
            if not name or name in taken:
                numbered = (f"{call.id or 'call'}_{number}" for number in count(2))
                name = next(each for each in numbered if each not in taken)
            taken.add(name)
            return event if name == call.id else PartDone(replace(call, id=name), key)
        case ResponseDone(usage=usage):
            return replace(event, usage=usage.plausible())
        case _:
            return event


def rounds_begun(history: Iterable[Message]) -> int:
    """Return the number of tool rounds since the last user message, including one without results (RUN-09)."""
    rounds = 0
    for message in history:
        if message.role == "user" and message.text:
            rounds = 0
        rounds += bool(message.tool_calls)
    return rounds


def unanswered_calls(history: Iterable[Message]) -> list[ToolCall]:
    """Return the calls at the end of the history that have no result yet, in order (RUN-12)."""
    unanswered: dict[str, ToolCall] = {}
    for message in history:
        if message.role == "assistant":
            unanswered = {call.id: call for call in message.tool_calls}
        elif message.role == "user":
            answered = {result.call_id for result in message.tool_results}
            unanswered = {} if message.text else {id_: call for id_, call in unanswered.items() if id_ not in answered}
    return list(unanswered.values())
