"""The mapping of a Request to the body of OpenAI's Chat Completions API. Pure."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from agents.messages import File, Json, Message, Text, Thinking, ToolCall
from agents.providers.arguments import arguments_text
from agents.providers.base import Request, ToolSpec
from agents.providers.conversation import CONTINUE, as_note, safe_name, turns
from agents.providers.dialect import Dialect, without
from agents.providers.openai.calls import EXTRA, maker_of, own_field
from agents.providers.openai.details import DETAILS
from agents.providers.openai.stream import TAGS
from agents.thinking_tags import CLOSE, OPEN

MAX_NAME_LENGTH = 64
# The id for a call that was stored without one, because the vendor refuses an empty id.
NAMELESS = "call"
# Stands for the reasoning of an answer without any, such as another model's. Servers may refuse an empty text.
NO_REASONING = {"reasoning_content": " "}
# Separates results from a user's next message for servers that refuse one directly after the other.
NO_ANSWER = "(No answer yet.)"
# Stands for the signature of a call that another model has made, as the vendor documents it:
# https://ai.google.dev/gemini-api/docs/thought-signatures
UNSIGNED = {EXTRA: {"google": {"thought_signature": "skip_thought_signature_validator"}}}
# By `Dialect.call_ids`: the form of the ids that are sent unchanged, and the length of the ids that replace others.
CALL_IDS: Mapping[str, tuple[re.Pattern[str], int]] = {
    "any": (re.compile(r".+", re.DOTALL), 0),
    "short": (re.compile(r".{1,40}", re.DOTALL), 32),
    "nine": (re.compile(r"[a-zA-Z0-9]{9}"), 9),
}


def to_request(
    request: Request,
    provider: str,
    dialect: Dialect,
    *,
    is_asked: bool = True,
    sent_reasoning: list[Thinking] | None = None,
) -> Json:
    """Return the body of a request. Reasoning is sent only to the provider that made it.

    `provider` is this endpoint's name in the configuration. With `is_asked=False`, nothing is added that only makes the
    model answer. The reasoning that the body contains is added to `sent_reasoning`.
    """
    messages = _messages(request, provider, dialect, [] if sent_reasoning is None else sent_reasoning)
    if is_asked and messages and messages[-1]["role"] == "assistant":
        messages.append({"role": "user", "content": CONTINUE})
    body: Json = {"model": request.model, "messages": messages, "stream": True}
    body["stream_options"] = {"include_usage": True}
    if request.max_tokens:
        body[dialect.limit_field] = request.max_tokens
    if request.reasoning.effort:
        body["reasoning_effort"] = request.reasoning.effort
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
        if request.tool_choice == "none":
            body["tool_choice"] = "none"
        if not dialect.reasoning_with_tools:
            body["reasoning_effort"] = "none"
    return without(dict(request.options) | body, dialect.omitted)


def _tool(spec: ToolSpec) -> Json:
    name = safe_name(spec.name, MAX_NAME_LENGTH)
    parameters = {"type": "object", **spec.parameters}
    return {"type": "function", "function": {"name": name, "description": spec.description, "parameters": parameters}}


def _messages(request: Request, provider: str, dialect: Dialect, sent_reasoning: list[Thinking]) -> list[Json]:
    system, history = request.system if request.system.strip() else "", request.messages
    if system and not dialect.system_role:
        system, history = "", (Message("user", (Text(as_note(system)),)), *history)
    groups = turns(history)
    last_words = max((index for index, (_, group) in enumerate(groups) if _has_words(group)), default=-1)
    messages = [{"role": "system", "content": system}] if system else []
    for index, (is_model, group) in enumerate(groups):
        if is_model:
            messages += _model_side(group, request.model, provider, dialect, index > last_words, sent_reasoning)
        else:
            messages += _people_side(group, dialect)
    return messages


def _has_words(messages: Iterable[Message]) -> bool:
    return any(message.role == "user" and message.text for message in messages)


def _people_side(messages: Sequence[Message], dialect: Dialect) -> Iterator[Json]:
    """Yield the results first, directly after their calls. Then yield one message for adjacent texts of one role."""
    results = [result for message in messages for result in message.tool_results]
    for result in results:
        yield {"role": "tool", "tool_call_id": _call_id(result.call_id, dialect), "content": result.content}
    spoken = [message for message in messages if any(_pieces(message))]
    if dialect.strict_order:
        spoken = [_of_user(message) for message in spoken]
        if results and spoken:
            yield {"role": "assistant", "content": NO_ANSWER}
    for role, run in itertools.groupby(spoken, key=lambda message: message.role):
        pieces = [piece for message in run for piece in _pieces(message)]
        # All servers accept a plain text, not all of them a list of texts.
        is_text = all(piece["type"] == "text" for piece in pieces)
        yield {"role": role, "content": "\n\n".join(piece["text"] for piece in pieces) if is_text else pieces}


def _of_user(message: Message) -> Message:
    """Return the message as a user's, for servers that accept no system message in mid-conversation."""
    return message if message.role == "user" else Message("user", (Text(as_note(message.text)),))


def _pieces(message: Message) -> Iterator[Json]:
    for part in message.parts:
        match part:
            case Text(text=text) if text:
                yield {"type": "text", "text": text}
            case File(kind="image"):
                yield {"type": "image_url", "image_url": {"url": _data_url(part)}}
            case File():
                yield {"type": "file", "file": {"filename": part.name, "file_data": _data_url(part)}}


def _data_url(file: File) -> str:
    return f"data:{file.media_type};base64,{file.data}"


def _model_side(
    messages: Sequence[Message],
    model: str,
    provider: str,
    dialect: Dialect,
    in_this_turn: bool,
    sent_reasoning: list[Thinking],
) -> Iterator[Json]:
    text = "\n\n".join(message.text for message in messages if message.text)
    maker = maker_of(provider, model)
    calls = [_tool_call(call, dialect, maker) for message in messages for call in message.tool_calls]
    if dialect.signed_calls and calls and not any(EXTRA in call for call in calls):
        calls[0] |= UNSIGNED  # the vendor signs and checks only the first call of a response
    if not text and not calls:
        return
    side: Json = {"role": "assistant", "content": text or None}
    if calls:
        side["tool_calls"] = calls
    if dialect.all_reasoning:
        side |= _reasoning(messages, text, provider, sent_reasoning) or NO_REASONING
    elif calls and in_this_turn:
        side |= _reasoning(messages, text, provider, sent_reasoning)
    if dialect.all_reasoning or in_this_turn:
        side |= _details(messages, maker)
    yield side


def _tool_call(call: ToolCall, dialect: Dialect, maker: str) -> Json:
    function = {"name": safe_name(call.name, MAX_NAME_LENGTH), "arguments": arguments_text(call)}
    return {"id": _call_id(call.id, dialect), "type": "function", "function": function, **own_field(EXTRA, call, maker)}


def _call_id(call_id: str, dialect: Dialect) -> str:
    """Return the id to send for a call or its result. It depends only on the call's own id, so it never changes.

    The id may be another vendor's, in a form that this server refuses.
    """
    call_id = call_id or NAMELESS
    form, length = CALL_IDS[dialect.call_ids]
    return call_id if form.fullmatch(call_id) else hashlib.sha256(call_id.encode()).hexdigest()[:length]


def _details(messages: Iterable[Message], maker: str) -> Json:
    """Return the details of the model's reasoning, which are in the data of its first call."""
    found = [own_field(DETAILS, call, maker) for message in messages for call in message.tool_calls]
    details = [detail for field in found if field for detail in field[DETAILS]]
    return {DETAILS: details} if details else {}


def _reasoning(messages: Iterable[Message], text: str, provider: str, sent_reasoning: list[Thinking]) -> Json:
    """Return the reasoning in the field in which the server sent it, or between tags before the answer's text.

    Models that think across tool rounds need it there. Most servers do not expect it in later turns; for those that
    refuse a request without it, see `Dialect.all_reasoning`.
    """
    parts = (part for message in messages for part in message.parts if isinstance(part, Thinking))
    own = [part for part in parts if part.provider == provider and "field" in part.data]
    sent_reasoning += own
    if not own:
        return {}
    field, reasoning = own[0].data["field"], "".join(part.text for part in own)
    if field == TAGS:
        return {"content": f"{OPEN}\n{reasoning.strip()}\n{CLOSE}\n\n{text}"}
    return {field: reasoning}
