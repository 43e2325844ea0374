"""The mapping of a Request to the body of Anthropic's Messages API. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agents.messages import File, Json, Message, Part, Text, Thinking, ToolCall, ToolResult
from agents.providers.base import Request, ToolSpec
from agents.providers.conversation import CONTINUE, CallIds, as_note, safe_name, turns
from agents.providers.dialect import USUAL, Dialect, without
from agents.reasoning import ANSWER_ROOM, MIN_BUDGET, ReasoningSupport

MAX_NAME_LENGTH = 128
MAX_ID_LENGTH = 200
MAX_TOKENS = 16_384
# Older models refuse a limit above the most tokens that they can write. For models that choose how much they think,
# thinking counts towards the limit, and takes much of it at the highest levels of effort.
OTHER_LIMITS = (
    (re.compile(r"claude-3-[57]-"), 8_192),
    (re.compile(r"claude-(3-|2|instant)"), 4_096),
)
# The names of models that choose how much they think, for servers whose list does not state it.
THINKING_MODELS = re.compile(r"claude-((opus|sonnet)-4-[6-9]|(opus|sonnet|haiku)-[5-9]|fable|mythos)")
LIMIT_WITH_THINKING, LIMIT_AT_HIGH_EFFORT = 32_000, 64_000
HIGH_EFFORTS = frozenset({"xhigh", "max"})
CACHED = {"type": "ephemeral"}
# A request may have four cache markers: one for the system prompt, one for the tools, and this number for messages.
CACHED_TURNS = 2
# Without `display`, newer models send their thinking only in encrypted form.
ADAPTIVE = {"type": "adaptive", "display": "summarized"}
OPENING = "(The conversation begins here.)"
# The text of a failed result without one, because the vendor refuses an empty error.
NO_MESSAGE = "(The call failed without a message.)"
# Parameters that the vendor refuses in a request with thinking.
SAMPLING = ("temperature", "top_p", "top_k")


def to_request(
    request: Request,
    provider: str,
    dialect: Dialect = USUAL,
    *,
    is_asked: bool = True,
    sent_reasoning: list[Thinking] | None = None,
) -> Json:
    """Return the body of a request. Thinking is sent only to the model that made it.

    `provider` is this endpoint's name in the configuration. With `is_asked=False`, nothing is added that only makes the
    model answer. The reasoning that the body contains is added to `sent_reasoning`.
    """
    thoughts: list[tuple[Thinking, Json]] = []
    messages = _messages(request, provider, is_asked, thoughts)
    tools = _tools(request)
    options = dict(request.options)
    thinking = _within(request.max_tokens, _thinking(request, options, dialect))
    thinking = _fit_turn(thinking, messages, request.support)
    if sent_reasoning is not None:
        blocks = {id(block) for side in messages for block in side["content"]}
        sent_reasoning += [part for part, block in thoughts if id(block) in blocks]
    body: Json = {"model": request.model, "messages": messages} | _limits(request, thinking)
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system, "cache_control": CACHED}]
    if tools:
        body["tools"] = tools
    if tools and (request.tool_choice == "none" or not request.tools):
        body["tool_choice"] = {"type": "none"}
    if thinking:
        body["thinking"] = thinking
        if thinking.get("type") != "disabled":
            options = {key: value for key, value in options.items() if key not in SAMPLING}
    if request.reasoning.effort:
        body["output_config"] = {**options.get("output_config", {}), "effort": request.reasoning.effort}
    return without(options | body, dialect.omitted)


def _limits(request: Request, thinking: Json | None) -> Json:
    """Return the limit of tokens. The default leaves room for an answer, because thinking counts towards the limit.

    The vendor refuses a limit above the most tokens that the model can write.
    """
    if request.max_tokens:
        return {"max_tokens": request.max_tokens}
    support = _support(request)
    limit = min(default_max_tokens(request.model, support, request.reasoning.effort), support.most_tokens)
    budget = (thinking or {}).get("budget_tokens", 0)
    if budget and limit < budget + ANSWER_ROOM:
        limit = min(limit + budget, support.most_tokens)
    return {"max_tokens": limit}


def _within(limit: int | None, thinking: Json | None) -> Json | None:
    """Reduce the budget so that a configured limit leaves room for an answer. Return None if no budget fits into it."""
    budget = (thinking or {}).get("budget_tokens", 0)
    if not (thinking and budget and limit):
        return thinking
    if limit <= MIN_BUDGET:
        return None
    return {**thinking, "budget_tokens": min(budget, max(limit - ANSWER_ROOM, MIN_BUDGET))}


def _support(request: Request) -> ReasoningSupport:
    return request.support or ReasoningSupport()


def default_max_tokens(model: str, support: ReasoningSupport, effort: str = "") -> int:
    """Return the most tokens that a model may write if the request sets no limit."""
    if support.adaptive or THINKING_MODELS.search(model):
        return LIMIT_AT_HIGH_EFFORT if effort in HIGH_EFFORTS else LIMIT_WITH_THINKING
    return next((limit for pattern, limit in OTHER_LIMITS if pattern.search(model)), MAX_TOKENS)


def _thinking(request: Request, options: dict[str, Any], dialect: Dialect) -> Json | None:
    """Return the thinking parameter, or None. Remove `thinking` and `thinking_budget` from the options.

    The session's budget takes precedence over the configuration. There, `thinking` is the vendor's object or its type,
    and `thinking_budget` a number. Without these, a model that chooses how much it thinks is asked to show it.
    """
    budget, thinking = options.pop("thinking_budget", None), options.pop("thinking", None)
    if request.reasoning.budget:
        budget, thinking = request.reasoning.budget, None
    if isinstance(thinking, str):
        thinking = {"type": thinking}
    if thinking is None and budget:
        budget = min(int(budget), _support(request).largest_budget)
        thinking = {"type": "enabled", "budget_tokens": max(budget, MIN_BUDGET)}
    support = request.support
    if not isinstance(thinking, Mapping):
        wanted = support is not None and support.adaptive and (support.always or bool(request.reasoning.effort))
        return dict(ADAPTIVE) if wanted else None
    if thinking.get("type") == "enabled" and not dialect.budgets:
        return dict(ADAPTIVE)
    return dict(thinking)


def _fit_turn(thinking: Json | None, messages: Sequence[Json], support: ReasoningSupport | None) -> Json | None:
    """Return the thinking parameter, or None if the turn cannot go on with it. Without thinking, remove the turn's own.

    With a budget, a model thinks once, at the beginning of a turn with all its tool rounds. The vendor refuses a budget
    in a turn that began without thinking, such as with another model's call, and thinking of the turn in a request
    without thinking. It ignores that of earlier turns. Without the parameter, some models think nevertheless.
    """
    turn = messages[_turn_start(messages) :]
    kind = (thinking or {}).get("type")
    if kind == "enabled" and turn and "thinking" not in turn[0]["content"][0]["type"]:
        thinking, kind = None, "disabled"
    if kind == "disabled" or (kind is None and support is not None and not support.always):
        for message in turn:
            message["content"] = [block for block in message["content"] if "thinking" not in block["type"]]
    return thinking


def _turn_start(messages: Sequence[Json]) -> int:
    """Return the index of the model's first message in a turn that goes on, or the number of messages if none does."""
    start = len(messages)
    while start > 1 and any(block["type"] == "tool_result" for block in messages[start - 1]["content"]):
        start -= 2
    return start


def _tools(request: Request) -> list[Json]:
    """Return the definitions of the tools. If there are none, define the tools that earlier calls used, because the
    vendor requires their definitions.
    """
    tools = [_tool(spec) for spec in request.tools]
    if not tools:
        names = {safe_name(call.name, MAX_NAME_LENGTH) for message in request.messages for call in message.tool_calls}
        tools = [_tool(ToolSpec(name, "No longer available.", {"properties": {}})) for name in sorted(names)]
    if tools:
        tools[-1]["cache_control"] = CACHED
    return tools


def _tool(spec: ToolSpec) -> Json:
    schema = {"type": "object", **spec.parameters}
    return {"name": safe_name(spec.name, MAX_NAME_LENGTH), "description": spec.description, "input_schema": schema}


def _messages(request: Request, provider: str, is_asked: bool, thoughts: list[tuple[Thinking, Json]]) -> list[Json]:
    """Return alternating messages of user and assistant, without the blocks that the vendor refuses.

    The first and the last message are the user's. With `is_asked=False`, the list may also be empty or end with the
    assistant. The thinking in it is added to `thoughts`: each part with its block.
    """
    ids = CallIds(MAX_ID_LENGTH)
    sides: list[Json] = []
    for is_model, group in turns(request.messages):
        if is_model:
            made = _model_blocks(group, provider, request.model, ids)
            thoughts += [(part, block) for part, block in made if isinstance(part, Thinking)]
            blocks = [block for _part, block in made]
        else:
            blocks = _people_blocks(group, ids)
        _append(sides, "assistant" if is_model else "user", blocks)
    if (is_asked and not sides) or (sides and sides[0]["role"] != "user"):
        sides.insert(0, {"role": "user", "content": [{"type": "text", "text": OPENING}]})
    if is_asked and sides[-1]["role"] != "user":
        sides.append({"role": "user", "content": [{"type": "text", "text": CONTINUE}]})
    for side in [side for side in sides if side["role"] == "user"][-CACHED_TURNS:]:
        side["content"][-1]["cache_control"] = CACHED
    return sides


def _append(sides: list[Json], role: str, blocks: list[Json]) -> None:
    """Append blocks as a new message. If the last message has the same role, add the blocks to it."""
    if blocks and sides and sides[-1]["role"] == role:
        sides[-1]["content"] += blocks
    elif blocks:
        sides.append({"role": role, "content": blocks})


def _people_blocks(messages: Iterable[Message], ids: CallIds) -> list[Json]:
    blocks = [block for message in messages for part in message.parts for block in _content_blocks(part, message, ids)]
    return sorted(blocks, key=lambda block: block["type"] != "tool_result")


def _content_blocks(part: Part, message: Message, ids: CallIds) -> Iterator[Json]:
    match part:
        case Text(text=text) if text.strip():
            yield {"type": "text", "text": as_note(text) if message.role == "system" else text}
        case File():
            source = {"type": "base64", "media_type": part.media_type, "data": part.data}
            if part.kind == "image":
                yield {"type": "image", "source": source}
            else:
                yield {"type": "document", "source": source, "title": part.name}
        case ToolResult():
            block: Json = {"type": "tool_result", "tool_use_id": ids.of(part.call_id)}
            if content := NO_MESSAGE if part.is_error and not part.content.strip() else part.content:
                block["content"] = content
            yield block | ({"is_error": True} if part.is_error else {})


def _model_blocks(messages: Iterable[Message], provider: str, model: str, ids: CallIds) -> list[tuple[Part, Json]]:
    """Return the blocks of the model's messages, each with the part from which it is made."""
    parts = (part for message in messages for part in message.parts)
    blocks = [(part, block) for part in parts for block in _blocks_of_part(part, provider, model, ids)]
    while blocks and isinstance(blocks[-1][0], Thinking):
        blocks.pop()  # An answer may not end with thinking. This one was interrupted before its first word.
    return blocks


def _blocks_of_part(part: Part, provider: str, model: str, ids: CallIds) -> Iterator[Json]:
    match part:
        case Text(text=text) if text.strip():
            yield {"type": "text", "text": text}
        case Thinking(data=data) if "signature" in data and part.is_of(provider, model):
            yield {"type": "thinking", "thinking": part.text, "signature": data["signature"]}
        case Thinking(data=data) if "redacted" in data and part.is_of(provider, model):
            yield {"type": "redacted_thinking", "data": data["redacted"]}
        case ToolCall():
            name = safe_name(part.name, MAX_NAME_LENGTH)
            yield {"type": "tool_use", "id": ids.new(part.id), "name": name, "input": part.arguments}
