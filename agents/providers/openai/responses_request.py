"""The mapping of a Request to the body of OpenAI's Responses API. The body forbids the API to store it. Pure."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agents.messages import File, Json, Message, Part, Text, Thinking, ToolCall
from agents.providers.arguments import arguments_text
from agents.providers.base import Request, ToolSpec
from agents.providers.conversation import CONTINUE, CallIds, safe_name, turns
from agents.providers.dialect import Dialect, without

MAX_NAME_LENGTH = 64
MAX_ID_LENGTH = 64
MIN_TOKENS = 16
# Names of options in Chat Completions, which a configuration may use, and their names in this API.
RENAMED = {
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
}
# This makes the API return reasoning in encrypted form, so that later requests can send it back (MSG-08).
ENCRYPTED = "reasoning.encrypted_content"


def to_request(
    request: Request,
    provider: str,
    dialect: Dialect,
    *,
    is_asked: bool = True,
    sent_reasoning: list[Thinking] | None = None,
) -> Json:
    """Return the body of a request. Reasoning is sent only to the provider and model that made it.

    `provider` is this endpoint's name in the configuration. With `is_asked=False`, nothing is added that only makes the
    model answer. The reasoning that the body contains is added to `sent_reasoning`.
    """
    options = _options(request.options)
    items = _input(request, provider, [] if sent_reasoning is None else sent_reasoning)
    if is_asked and (not items or items[-1].get("role") == "assistant"):
        items.append({"role": "user", "content": [{"type": "input_text", "text": CONTINUE}]})
    body: Json = {"model": request.model, "input": items, "stream": True, "store": False}
    if request.cache_key:
        body["prompt_cache_key"] = request.cache_key
    if request.system.strip():
        body["instructions"] = request.system
    if request.max_tokens:
        body["max_output_tokens"] = max(request.max_tokens, MIN_TOKENS)
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
        if request.tool_choice == "none":
            body["tool_choice"] = "none"
    if request.support is None or request.support.reasons:
        effort = {"effort": request.reasoning.effort} if request.reasoning.effort else {}
        body["reasoning"] = {"summary": "auto", **_object(options.get("reasoning")), **effort}
        body["include"] = [ENCRYPTED]
    return without(options | body, dialect.omitted)


def _options(options: Mapping[str, Any]) -> Json:
    """Return the options with the names and nesting of this API."""
    found: Json = {}
    for name, value in options.items():
        outer, _dot, inner = RENAMED.get(name, name).partition(".")
        merged = {inner: value} if inner else value
        found[outer] = {**_object(found.get(outer)), **merged} if isinstance(merged, Mapping) else merged
    return found


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _tool(spec: ToolSpec) -> Json:
    return {
        "type": "function",
        "name": safe_name(spec.name, MAX_NAME_LENGTH),
        "description": spec.description,
        "parameters": {"type": "object", **spec.parameters},
        # Strict schemas may not have defaults or optional parameters.
        "strict": False,
    }


def _input(request: Request, provider: str, sent_reasoning: list[Thinking]) -> list[Json]:
    ids = CallIds(MAX_ID_LENGTH)
    sent: set[str] = set()
    items: list[Json] = []
    for is_model, group in turns(request.messages):
        if not is_model:
            items += _people_items(group, ids)
        for message in group if is_model else ():
            own = _items_to_replay(message.parts, provider, request.model, sent)
            sent_reasoning += [part for place in sorted(own) if isinstance(part := message.parts[place], Thinking)]
            items += _model_items(message.parts, own, ids)
    return items


def _people_items(messages: Sequence[Message], ids: CallIds) -> Iterator[Json]:
    """Yield the results first, directly after their calls. Then yield one message for adjacent texts of one role."""
    for message in messages:
        for result in message.tool_results:
            yield {"type": "function_call_output", "call_id": ids.of(result.call_id), "output": result.content}
    spoken = [message for message in messages if any(_pieces(message))]
    for role, run in itertools.groupby(spoken, key=lambda message: message.role):
        yield {"role": role, "content": [piece for message in run for piece in _pieces(message)]}


def _pieces(message: Message) -> Iterator[Json]:
    for part in message.parts:
        match part:
            case Text(text=text) if text:
                yield {"type": "input_text", "text": text}
            case File(kind="image"):
                yield {"type": "input_image", "image_url": _data_url(part), "detail": "auto"}
            case File():
                yield {"type": "input_file", "filename": part.name, "file_data": _data_url(part)}


def _data_url(file: File) -> str:
    return f"data:{file.media_type};base64,{file.data}"


def _model_items(parts: Sequence[Part], own: Mapping[int, Json], ids: CallIds) -> Iterator[Json]:
    """Yield the items of a model's response. `own` has the API's own items that `_items_to_replay` chose, by index."""
    for place, part in enumerate(parts):
        match part:
            case Thinking() if place in own:
                yield own[place]
            case Text(text=text) if text:
                yield _text_item(part, own.get(place, {}))
            case ToolCall():
                yield _call_item(part, own.get(place, {}), ids)


def _items_to_replay(parts: Sequence[Part], provider: str, model: str, sent: set[str]) -> dict[int, Json]:
    """Return, by index, the parts that are sent as the API's own items: reasoning as a whole, of other items the id.

    The API refuses a reasoning item without the item that followed it, an item without the reasoning before it, and
    repeated ids. So a chain of items begins with reasoning and ends with a text or a call. In between, each item must
    come directly after the item that preceded it in its response (`after`). Rows without `after` start no chain.
    """
    own: dict[int, Json] = {}
    waiting: dict[int, Json] = {}  # reasoning that needs the item after it
    last = ""  # the id of the item directly before, while the chain is whole
    for place, part in enumerate(parts):
        item, after = _own_item(part, provider, model)
        begins = isinstance(part, Thinking) and not after.startswith("rs_")
        waiting = {} if begins else waiting
        is_linked = begins or (last != "" and after == last)
        if item is None or item["id"] in sent or not is_linked:
            waiting, last = {}, ""
            continue
        waiting[place], last = item, item["id"]
        sent.add(last)
        if not isinstance(part, Thinking):
            own |= waiting
            waiting = {}
    return own


def _own_item(part: Part, provider: str, model: str) -> tuple[Json | None, str]:
    """Return the API's own item of a part, or None if it has none, and the id of the item before it, or ""."""
    match part:
        case Thinking(data=data):
            return (_reasoning_item(part) if part.is_of(provider, model) else None), data.get("after", "")
        case Text(data=data) | ToolCall(data=data):
            prefix, item_id = "fc_" if isinstance(part, ToolCall) else "msg_", data.get("item_id", "")
            is_known = item_id.startswith(prefix) and len(item_id) <= MAX_ID_LENGTH
            is_empty = isinstance(part, Text) and not part.text
            return ({"id": item_id} if is_known and not is_empty else None), data.get("after", "")
    return None, ""


def _reasoning_item(part: Thinking) -> Json | None:
    """Return a reasoning item as the API sent it, or None if the API could not read it in a request."""
    try:
        item = json.loads(part.data.get("item", ""))
    except (ValueError, RecursionError):
        return None
    match item:
        case {"type": "reasoning", "id": str(item_id), "summary": list()} if item_id.startswith("rs_"):
            readable = isinstance(item.get("encrypted_content"), str) or isinstance(item.get("content"), list)
            return item if readable and len(item_id) <= MAX_ID_LENGTH else None
    return None


def _text_item(part: Text, own: Json) -> Json:
    phase = {"phase": part.data["phase"]} if "phase" in part.data else {}
    if not own:
        return {"role": "assistant", "content": part.text, **phase}
    content = [{"type": "output_text", "text": part.text, "annotations": []}]
    head = {"type": "message", **own, "role": "assistant", "status": "completed"}
    return {**head, "content": content, **phase}


def _call_item(part: ToolCall, own: Json, ids: CallIds) -> Json:
    name = safe_name(part.name, MAX_NAME_LENGTH)
    head = {"type": "function_call", **own}
    return {**head, "call_id": ids.new(part.id), "name": name, "arguments": arguments_text(part)}
