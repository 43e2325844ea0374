"""OpenAI's Chat Completions: its chunks, its errors and the model's answers in its format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tests.wire.model import Answer, Asked
from tests.wire.script import Reply

Chunk = dict[str, Any]
DONE = b"data: [DONE]\n\n"


def sse(*chunks: Chunk, done: bool = True) -> list[bytes]:
    """Encode chunks like the vendor, with one write for each."""
    return [b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks] + ([DONE] if done else [])


def _head(model: str) -> Chunk:
    return {
        "id": "chatcmpl-C9test",
        "object": "chat.completion.chunk",
        "created": 1_780_000_000,
        "model": model,
        "service_tier": "default",
        "system_fingerprint": "fp_50cad350e4",
    }


def chunk(delta: dict[str, Any], finish_reason: str | None = None, model: str = "gpt-test") -> Chunk:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return _head(model) | {"choices": [choice], "usage": None}


def role() -> Chunk:
    return chunk({"role": "assistant", "content": "", "refusal": None})


def text(*pieces: str) -> list[Chunk]:
    return [chunk({"content": piece}) for piece in pieces]


def reasoning(*pieces: str, field: str = "reasoning_content") -> list[Chunk]:
    return [chunk({field: piece}) for piece in pieces]


def tool_call(index: int, call_id: str, name: str, *fragments: str) -> list[Chunk]:
    """Return the chunks of a whole tool call, in the vendor's fragments."""
    head = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
    rest = [{"index": index, "function": {"arguments": piece}} for piece in fragments]
    return [chunk({"tool_calls": [piece]}) for piece in (head, *rest)]


def finish(reason: str = "stop") -> Chunk:
    return chunk({}, reason)


def usage(prompt: int = 11, completion: int = 7, cached: int = 0, model: str = "gpt-test") -> Chunk:
    numbers = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }
    return _head(model) | {"choices": [], "usage": numbers}


def completion(message: dict[str, Any], finish_reason: str = "stop") -> dict[str, Any]:
    """Return the body of an answer that is not streamed."""
    choice = {"index": 0, "message": {"role": "assistant"} | message, "finish_reason": finish_reason}
    return usage() | {"object": "chat.completion", "choices": [choice]}


def error_body(
    message: str, kind: str = "invalid_request_error", code: Any = None, param: str | None = None
) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def error(status: int, message: str, kind: str = "invalid_request_error", code: Any = None, **headers: str) -> Reply:
    """Return an error before the stream; `retry_after="1"` becomes the header Retry-After."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply.of_json(error_body(message, kind, code), status, named)


def asked(body: dict[str, Any]) -> Asked:
    """Reduce a valid request to what the model needs."""
    messages = body["messages"]
    words = [message["content"] for message in messages if message["role"] == "user"]
    last = messages[-1]
    tools = frozenset(tool["function"]["name"] for tool in body.get("tools", ()))
    if body.get("tool_choice") == "none":
        tools = frozenset()
    text = words[-1] if words else ""
    return Asked(text, last["content"] if last["role"] == "tool" else None, tools, "think" in text.lower())


def stream(answer: Answer, model: str, with_usage: bool) -> tuple[list[bytes], Iterator[bytes], Iterator[bytes]]:
    """Encode an answer: the first chunks, the paced ones, and the last chunks."""
    head = [role()]
    if answer.thinking:
        head += reasoning(answer.thinking)
    return sse(*head, done=False), _tokens(answer, model), _tail(answer, model, with_usage)


def _tokens(answer: Answer, model: str) -> Iterator[bytes]:
    prefix, suffix = sse(chunk({"content": "\0"}, model=model), done=False)[0].split(json.dumps("\0").encode())
    for token in answer.tokens:
        yield prefix + json.dumps(token).encode() + suffix


def _tail(answer: Answer, model: str, with_usage: bool) -> Iterator[bytes]:
    chunks: list[Chunk] = []
    if answer.call:
        name, arguments = answer.call
        text = json.dumps(arguments)
        call_id = "call_" + hashlib.sha256(json.dumps(answer.call).encode()).hexdigest()[:20]
        chunks += tool_call(0, call_id, name, text[: len(text) // 2], text[len(text) // 2 :])
    chunks.append(chunk({}, "tool_calls" if answer.call else "stop", model))
    if with_usage:
        chunks.append(usage(completion=answer.tokens.count, model=model))
    yield from sse(*chunks)
