"""OpenAI's Responses API: its events, its errors and the model's answers in its format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from tests.wire.model import Answer, Asked

Event = dict[str, Any]
Item = dict[str, Any]
MODEL = "model-1"
# The tail of the ids of items that follow no reasoning.
ALONE = "0"


def sse(*events: Event) -> list[bytes]:
    """Encode events like the vendor, with one write for each."""
    numbered = ({**event, "sequence_number": number} for number, event in enumerate(events))
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in numbered]


def seal(model: str, item_id: str) -> str:
    """Encrypt a model's reasoning, bound to the model and the item."""
    return "gAAAA" + hashlib.sha256(f"wire {model} {item_id}".encode()).hexdigest()


def message_item(text: str, number: int = 0, *, tail: str = ALONE, phase: str = "", status: str = "completed") -> Item:
    content = [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}]
    item = {"id": f"msg_{tail}_{number}", "type": "message", "status": status, "role": "assistant", "content": content}
    return item | ({"phase": phase} if phase else {})


def reasoning_item(summary: Sequence[str], *, tail: str, model: str = MODEL, encrypted: bool = True) -> Item:
    item_id = f"rs_{tail}"
    item = {"id": item_id, "type": "reasoning", "summary": [{"type": "summary_text", "text": one} for one in summary]}
    return item | ({"encrypted_content": seal(model, item_id)} if encrypted else {})


def call_item(
    call_id: str, name: str, arguments: str, number: int = 0, *, tail: str = ALONE, status: str = "completed"
) -> Item:
    head = {"id": f"fc_{tail}_{number}", "type": "function_call", "status": status}
    return head | {"call_id": call_id, "name": name, "arguments": arguments}


def added(index: int, item: Item) -> Event:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, item: Item) -> Event:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def text_delta(index: int, delta: str, content_index: int = 0) -> Event:
    place = {"item_id": "msg", "output_index": index, "content_index": content_index}
    return {"type": "response.output_text.delta", **place, "delta": delta, "logprobs": [], "obfuscation": "x9"}


def summary_delta(index: int, delta: str, summary_index: int = 0) -> Event:
    place = {"item_id": "rs", "output_index": index, "summary_index": summary_index}
    return {"type": "response.reasoning_summary_text.delta", **place, "delta": delta}


def message(index: int, *pieces: str, **fields: Any) -> list[Event]:
    """Return the events of a whole text."""
    item = message_item("".join(pieces), index, **fields)
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    part = item["content"][0]
    return [
        added(index, {**item, "content": [], "status": "in_progress"}),
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *(text_delta(index, piece) for piece in pieces),
        {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
        done(index, item),
    ]


def reasoning(index: int, *sections: Sequence[str], **fields: Any) -> list[Event]:
    """Return the events of a whole reasoning item with its summary. Its encrypted content is incomplete at first."""
    item = reasoning_item(["".join(section) for section in sections], **fields)
    events = [added(index, {**item, "summary": [], "encrypted_content": "gAAAA"})]
    for number, section in enumerate(sections):
        place = {"item_id": item["id"], "output_index": index, "summary_index": number}
        part = {"type": "summary_text", "text": "".join(section)}
        events += [
            {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}},
            *(summary_delta(index, piece, number) for piece in section),
            {"type": "response.reasoning_summary_text.done", **place, "text": part["text"]},
            {"type": "response.reasoning_summary_part.done", **place, "part": part},
        ]
    return [*events, done(index, item)]


def function_call(index: int, call_id: str, name: str, *fragments: str, **fields: Any) -> list[Event]:
    """Return the events of a whole tool call."""
    item = call_item(call_id, name, "".join(fragments), index, **fields)
    place = {"item_id": item["id"], "output_index": index}
    kind = "response.function_call_arguments"
    return [
        added(index, {**item, "arguments": "", "status": "in_progress"}),
        *({"type": f"{kind}.delta", **place, "delta": fragment} for fragment in fragments),
        {"type": f"{kind}.done", **place, "arguments": item["arguments"]},
        done(index, item),
    ]


def refusal(index: int, *pieces: str) -> list[Event]:
    part = {"type": "refusal", "refusal": "".join(pieces)}
    item = {**message_item("", index), "content": [part]}
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    return [
        added(index, {**item, "content": [], "status": "in_progress"}),
        *({"type": "response.refusal.delta", **place, "delta": piece} for piece in pieces),
        {"type": "response.refusal.done", **place, "refusal": part["refusal"]},
        done(index, item),
    ]


def response(output: Sequence[Item] = (), status: str = "in_progress", **fields: Any) -> dict[str, Any]:
    """Return the response object, which the API sends at the beginning and at the end."""
    head = {"id": "resp_1", "object": "response", "created_at": 1_780_000_000, "status": status, "error": None}
    about = {"incomplete_details": None, "instructions": None, "model": MODEL, "store": False, "usage": None}
    return head | about | {"output": list(output)} | fields


def usage(read: int = 11, written: int = 7, cached: int = 0, reasoned: int = 0) -> dict[str, Any]:
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": reasoned},
        "total_tokens": read + written,
    }


def begin() -> list[Event]:
    return [{"type": f"response.{kind}", "response": response()} for kind in ("created", "in_progress")]


def whole(*items: list[Event], status: str = "completed", **fields: Any) -> list[Event]:
    """Return a whole stream, whose end repeats the items."""
    events = [event for item in items for event in item]
    output = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    last = response(output, status, **({"usage": usage()} | fields))
    return [*begin(), *events, {"type": f"response.{status}", "response": last}]


def failed(code: str, words: str) -> Event:
    error = {"code": code, "message": words}
    return {"type": "response.failed", "response": response((), "failed", error=error)}


def error_event(code: str, words: str) -> Event:
    return {"type": "error", "code": code, "message": words, "param": None}


def asked(body: dict[str, Any]) -> Asked:
    """Reduce a valid request to what the model needs."""
    items = body["input"]
    words = [text for item in items if item.get("role") == "user" for text in [_text(item["content"])] if text]
    last = items[-1]
    tools = frozenset(tool["name"] for tool in body.get("tools", ()))
    if body.get("tool_choice") == "none":
        tools = frozenset()
    text = words[-1] if words else ""
    result = last["output"] if last.get("type") == "function_call_output" else None
    return Asked(text, result, tools, "think" in text.lower())


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n\n".join(piece["text"] for piece in content if piece["type"] == "input_text")


def stream(answer: Answer, model: str) -> tuple[list[bytes], Iterator[bytes], Iterator[bytes]]:
    """Encode an answer: the first events, the paced ones, and the last events."""
    tail = hashlib.sha256(repr((answer.thinking, answer.call)).encode()).hexdigest()[:12]
    thought = reasoning(0, [answer.thinking], tail=tail, model=model) if answer.thinking else []
    first, tail = (1, tail) if answer.thinking else (0, ALONE)
    item = message_item("", first, tail=tail, status="in_progress")
    return (
        sse(*begin(), *thought, added(first, {**item, "content": []})),
        _tokens(answer, first),
        _tail(answer, first, tail),
    )


def _tokens(answer: Answer, index: int) -> Iterator[bytes]:
    prefix, suffix = sse(text_delta(index, "\0"))[0].split(json.dumps("\0").encode())
    for token in answer.tokens:
        yield prefix + json.dumps(token).encode() + suffix


def _tail(answer: Answer, index: int, tail: str) -> Iterator[bytes]:
    # The model does not keep its text, which clients have from the deltas.
    events = [done(index, message_item("", index, tail=tail))]
    if answer.call:
        name, arguments = answer.call
        text = json.dumps(arguments)
        call_id = "call_" + hashlib.sha256(json.dumps(answer.call).encode()).hexdigest()[:20]
        events += function_call(index + 1, call_id, name, text[: len(text) // 2], text[len(text) // 2 :], tail=tail)
    last = response((), "completed", usage=usage(written=answer.tokens.count))
    yield from sse(*events, {"type": "response.completed", "response": last})
