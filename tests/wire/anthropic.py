"""Anthropic's Messages API: its events, its errors and the model's answers in its format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tests.wire.model import Answer, Asked
from tests.wire.script import Reply

Event = dict[str, Any]


def sse(*events: Event) -> list[bytes]:
    """Encode events like the vendor, with one write for each."""
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]


def message_start(
    model: str = "claude-test", *, input_tokens: int = 11, cache_read: int = 0, cache_write: int = 0
) -> Event:
    usage = {
        "input_tokens": input_tokens,
        "cache_creation_input_tokens": cache_write,
        "cache_read_input_tokens": cache_read,
        "output_tokens": 1,
        "service_tier": "standard",
    }
    head = {"id": "msg_01", "type": "message", "role": "assistant", "model": model, "content": []}
    return {"type": "message_start", "message": head | {"stop_reason": None, "stop_sequence": None, "usage": usage}}


def block_start(index: int, block: dict[str, Any]) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, delta: dict[str, Any]) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def block_stop(index: int) -> Event:
    return {"type": "content_block_stop", "index": index}


def text(index: int, *pieces: str) -> list[Event]:
    """Return the events of a whole text block."""
    deltas = [delta(index, {"type": "text_delta", "text": piece}) for piece in pieces]
    return [block_start(index, {"type": "text", "text": ""}), *deltas, block_stop(index)]


def thinking(index: int, *pieces: str) -> list[Event]:
    """Return the events of a whole thinking block, whose signature comes last, as with the vendor."""
    deltas = [delta(index, {"type": "thinking_delta", "thinking": piece}) for piece in pieces]
    signed = delta(index, {"type": "signature_delta", "signature": sign("".join(pieces))})
    head = block_start(index, {"type": "thinking", "thinking": "", "signature": ""})
    return [head, *deltas, signed, block_stop(index)]


def redacted_thinking(index: int, data: str) -> list[Event]:
    return [block_start(index, {"type": "redacted_thinking", "data": data}), block_stop(index)]


def tool_use(index: int, call_id: str, name: str, *fragments: str) -> list[Event]:
    """Return the events of a whole tool call, whose first fragment is empty, as with the vendor."""
    head = block_start(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}})
    deltas = [delta(index, {"type": "input_json_delta", "partial_json": piece}) for piece in ("", *fragments)]
    return [head, *deltas, block_stop(index)]


def ping() -> Event:
    return {"type": "ping"}


def end(stop_reason: str = "end_turn", output_tokens: int = 7, thinking_tokens: int | None = None) -> list[Event]:
    change = {"stop_reason": stop_reason, "stop_sequence": None}
    details = None if thinking_tokens is None else {"thinking_tokens": thinking_tokens}
    usage = {"output_tokens": output_tokens, "output_tokens_details": details}
    return [
        {"type": "message_delta", "delta": change, "usage": usage},
        {"type": "message_stop"},
    ]


def error_event(kind: str, message: str) -> Event:
    return {"type": "error", "error": {"type": kind, "message": message}}


def error(status: int, kind: str, message: str, **headers: str) -> Reply:
    """Return an error before the stream; `retry_after="1"` becomes the header Retry-After."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply.of_json(error_event(kind, message) | {"request_id": "req_01"}, status, named)


def sign(thought: str) -> str:
    """Return the signature of reasoning, which is checked when the reasoning comes back."""
    return hashlib.sha256(b"wire" + thought.encode()).hexdigest()


def asked(body: dict[str, Any]) -> Asked:
    """Reduce a valid request to what the model needs."""
    content = body["messages"][-1]["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    results = [block.get("content", "") for block in blocks if block["type"] == "tool_result"]
    words = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    tools = frozenset(tool["name"] for tool in body.get("tools", ()))
    if body.get("tool_choice", {}).get("type") == "none":
        tools = frozenset()
    think = body.get("thinking", {}).get("type") in {"enabled", "adaptive"}
    return Asked(words, results[-1] if results else None, tools, think)


def stream(answer: Answer, model: str) -> tuple[list[bytes], Iterator[bytes], Iterator[bytes]]:
    """Encode an answer: the first events, the paced ones, and the last events."""
    first = 1 if answer.thinking else 0
    head = [message_start(model), ping()]
    if answer.thinking:
        head += thinking(0, answer.thinking)
    head.append(block_start(first, {"type": "text", "text": ""}))
    return sse(*head), _tokens(answer, first), _tail(answer, first)


def _tokens(answer: Answer, index: int) -> Iterator[bytes]:
    kind = "content_block_delta"
    prefix = f'event: {kind}\ndata: {{"type":"{kind}","index":{index},"delta":{{"type":"text_delta","text":'.encode()
    for token in answer.tokens:
        yield prefix + json.dumps(token).encode() + b"}}\n\n"


def _tail(answer: Answer, index: int) -> Iterator[bytes]:
    events = [block_stop(index)]
    if answer.call:
        name, arguments = answer.call
        call_id = "toolu_" + hashlib.sha256(json.dumps(answer.call).encode()).hexdigest()[:20]
        events += tool_use(index + 1, call_id, name, *_halves(json.dumps(arguments)))
    events += end("tool_use" if answer.call else "end_turn", answer.tokens.count)
    yield from sse(*events)


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]
