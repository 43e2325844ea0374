"""A check that a context satisfies the model vendors' requirements, and that each of their APIs accepts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agents.messages import Message, Part, Thinking, ToolResult
from agents.providers.anthropic.request import to_request as to_anthropic
from agents.providers.base import Request, ToolSpec
from agents.providers.dialect import Dialect
from agents.providers.openai.request import to_request as to_openai
from agents.providers.openai.responses_request import to_request as to_responses
from chat.models import ChatMessage
from chat.projections.context import context
from chat.projections.invariants import problems_of_calls
from tests.wire import anthropic_rules, openai_rules, responses_rules
from tests.wire.anthropic import sign

PROVIDER = "scripted"
TOOLS = (ToolSpec("double", "Double a number.", {"properties": {"n": {"type": "integer"}}}),)


def check_context(rows: Sequence[ChatMessage], *, may_wait: bool = False) -> list[Message]:
    """CTX-02, CTX-03: check that the vendors' APIs accept the context of the rows, and return it.

    Each call must have one result right after its message, and ids must be unique.
    """
    messages = context(rows)
    assert list(problems_of_calls(messages, may_wait=may_wait)) == []
    owed = _owed(messages)
    answers = tuple(ToolResult(call_id, "later") for call_id in owed)
    said = [_signed(message) for message in messages] + ([Message("user", answers)] if answers else [])
    request = Request(model="one", messages=tuple(said), system="Be kind.", tools=TOOLS)
    anthropic_rules.check(to_anthropic(request, PROVIDER) | {"stream": True})
    openai_rules.check(to_openai(request, PROVIDER, Dialect()))
    responses_rules.check(to_responses(request, PROVIDER, Dialect()))
    return messages


def _owed(messages: Sequence[Message]) -> list[str]:
    """Return the ids of the calls that still need a result."""
    answered = {result.call_id for message in messages for result in message.tool_results}
    return [call.id for message in messages for call in message.tool_calls if call.id not in answered]


def _signed(message: Message) -> Message:
    return replace(message, parts=tuple(_with_signature(part) for part in message.parts))


def _with_signature(part: Part) -> Part:
    """Return the part with a signature derived from its text, which the checks of the vendor's format expect."""
    if isinstance(part, Thinking) and "signature" in part.data:
        return replace(part, data={"signature": sign(part.text)})
    return part
