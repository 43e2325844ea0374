"""The requests that Anthropic's Messages API refuses, with its messages."""

from __future__ import annotations

import base64
import itertools
import re
from collections import Counter

from agents.messages import Json
from tests.wire.anthropic import sign
from tests.wire.script import RequestRefusedError

KNOWN = frozenset(
    {
        "model",
        "messages",
        "max_tokens",
        "system",
        "tools",
        "tool_choice",
        "stream",
        "thinking",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "metadata",
        "service_tier",
        "output_config",
        "cache_control",
    }
)
NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")


def check(body: Json) -> None:
    """Raise RequestRefusedError for a request that the vendor answers with 400 invalid_request_error."""
    for key in body.keys() - KNOWN:
        raise RequestRefusedError(f"{key}: Extra inputs are not permitted")
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        raise RequestRefusedError("max_tokens: Field required")
    messages = [_with_blocks(message) for message in body.get("messages", [])]
    _check_roles(messages)
    for index, message in enumerate(messages):
        _check_message(f"messages.{index}", message)
    _check_pairing(messages)
    _check_end(messages[-1])
    _check_tools(body, messages)
    _check_thinking(body, messages)
    _check_cache(body, messages)


def _with_blocks(message: Json) -> Json:
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise RequestRefusedError("messages: content: Input should be a valid list")
    return message | {"content": content}


def _check_roles(messages: list[Json]) -> None:
    if not messages:
        raise RequestRefusedError("messages: at least one message is required")
    roles = [message["role"] for message in messages]
    if set(roles) - {"user", "assistant"}:
        raise RequestRefusedError("messages: Unexpected role. Allowed roles are `user` or `assistant`")
    if roles[0] != "user":
        raise RequestRefusedError("messages: first message must use the `user` role")
    if any(a == b for a, b in itertools.pairwise(roles)):
        raise RequestRefusedError(
            "messages: roles must alternate between `user` and `assistant`, but found multiple in a row"
        )


MAX_IMAGE_SIZE = 5 * 1024 * 1024
MEDIA = {"image": {"image/png", "image/jpeg", "image/gif", "image/webp"}, "document": {"application/pdf"}}
ALLOWED = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking"},
}


def _check_message(where: str, message: Json) -> None:
    blocks = message["content"]
    if not blocks:
        raise RequestRefusedError(f"{where}: all messages must have non-empty content")
    for block in blocks:
        if block["type"] not in ALLOWED[message["role"]]:
            raise RequestRefusedError(
                f"{where}: `{block['type']}` blocks are not permitted in `{message['role']}` messages"
            )
        if block["type"] == "text" and not block["text"]:
            raise RequestRefusedError("messages: text content blocks must be non-empty")
        if block["type"] == "text" and not block["text"].strip():
            raise RequestRefusedError("messages: text content blocks must contain non-whitespace text")
        if block["type"] in MEDIA:
            _check_source(where, block)
        if block["type"] == "tool_result" and block.get("is_error") and not block.get("content"):
            raise RequestRefusedError(f"{where}.content: tool_result: content cannot be empty if `is_error` is true")
        if block["type"] == "thinking" and block["signature"] != sign(block["thinking"]):
            raise RequestRefusedError(f"{where}.content: Invalid `signature` in `thinking` block")
    if message["role"] == "assistant" and blocks[-1]["type"] in {"thinking", "redacted_thinking"}:
        raise RequestRefusedError(f"{where}: The final block in an assistant message cannot be `thinking`.")
    if message["role"] == "user":
        _check_results_first(where, blocks)


def _check_source(where: str, block: Json) -> None:
    if extra := block.keys() - {"type", "source", "title", "cache_control"}:
        raise RequestRefusedError(f"{where}: {extra}: Extra inputs are not permitted")
    source, kind = block["source"], block["type"]
    if source.keys() != {"type", "media_type", "data"} or source["type"] != "base64":
        raise RequestRefusedError(f"{where}: {kind}.source: Input should be a valid base64 source")
    if source["media_type"] not in MEDIA[kind]:
        raise RequestRefusedError(f"{where}: {kind}.source.base64.media_type: Input should be {MEDIA[kind]}")
    try:
        size = len(base64.b64decode(source["data"], validate=True))
    except ValueError:
        raise RequestRefusedError(f"{where}: {kind}.source.base64.data: Invalid base64 data") from None
    if not size or (kind == "image" and len(source["data"]) > MAX_IMAGE_SIZE):
        raise RequestRefusedError(f"{where}: {kind}.source.base64: image exceeds 5 MB maximum, or is empty")
    if not 0 < len(block.get("title", "x")) <= 500 or (kind == "image" and "title" in block):
        raise RequestRefusedError(f"{where}: {kind}.title: String should have between 1 and 500 characters")


def _check_results_first(where: str, blocks: list[Json]) -> None:
    kinds = [block["type"] for block in blocks]
    said = next((place for place, kind in enumerate(kinds) if kind != "tool_result"), len(kinds))
    if "tool_result" in kinds[said:]:
        raise RequestRefusedError(
            f"{where}: `tool_result` blocks must come before text in a message that answers `tool_use`"
        )


def _check_pairing(messages: list[Json]) -> None:
    seen: Counter[str] = Counter()
    for index, message in enumerate(messages):
        after = messages[index + 1]["content"] if index + 1 < len(messages) else []
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        results = [block["tool_use_id"] for block in after if block["type"] == "tool_result"]
        seen.update(calls)
        if missing := [call for call in calls if call not in results]:
            raise RequestRefusedError(
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after:"
                f" {', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the"
                " next message."
            )
        if orphans := [result for result in results if result not in calls]:
            raise RequestRefusedError(
                f"messages.{index + 1}.content: unexpected `tool_use_id` found in `tool_result` blocks:"
                f" {', '.join(orphans)}. Each `tool_result` block must have a corresponding `tool_use` block in the"
                " previous message."
            )
        if len(set(results)) < len(results):
            raise RequestRefusedError(f"messages.{index + 1}: each tool_use must have a single result.")
    if any(count > 1 for count in seen.values()):
        raise RequestRefusedError("messages: `tool_use` ids must be unique")
    for call_id in seen:
        if not re.fullmatch(r"[a-zA-Z0-9_-]+", call_id):
            raise RequestRefusedError("messages: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")


def _check_end(last: Json) -> None:
    if last["role"] == "assistant" and last["content"][-1].get("text", "x")[-1:].isspace():
        raise RequestRefusedError("messages: final assistant content cannot end with trailing whitespace")
    if last["role"] == "assistant":
        raise RequestRefusedError(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )


def _check_tools(body: Json, messages: list[Json]) -> None:
    tools = body.get("tools", [])
    for index, tool in enumerate(tools):
        if not NAME.match(tool["name"]):
            raise RequestRefusedError(
                f"tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            )
        if tool["input_schema"].get("type") != "object":
            raise RequestRefusedError(f"tools.{index}.custom.input_schema.type: Field required")
    if len({tool["name"] for tool in tools}) < len(tools):
        raise RequestRefusedError("tools: Tool names must be unique.")
    blocks = [block for message in messages for block in message["content"]]
    if not tools and any(block["type"] in {"tool_use", "tool_result"} for block in blocks):
        raise RequestRefusedError(
            "Requests which have `tool_use` or `tool_result` blocks in `messages` must define `tools`."
        )
    for block in blocks:
        if block["type"] == "tool_use" and not (NAME.match(block["name"]) and isinstance(block["input"], dict)):
            raise RequestRefusedError("messages: tool_use: Input should be a valid dictionary with a valid name")
    if body.get("tool_choice") and not tools:
        raise RequestRefusedError("tool_choice: may only be specified while providing `tools`.")


# These models think only if a request enables it.
OFF_BY_DEFAULT = re.compile(r"claude-(3-7|(opus|sonnet|haiku)-4)")


def _check_thinking(body: Json, messages: list[Json]) -> None:
    thinking = body.get("thinking", {})
    start = _turn_start(messages)
    if thinking.get("type") not in {"enabled", "adaptive"}:
        if thinking.get("type") == "disabled" or OFF_BY_DEFAULT.match(body["model"]):
            _check_no_thinking(messages, start)
        return
    if body.get("temperature", 1) != 1:
        raise RequestRefusedError("`temperature` may only be set to 1 when thinking is enabled.")
    if "top_k" in body:
        raise RequestRefusedError("`top_k` must be unset when thinking is enabled.")
    if thinking["type"] == "adaptive":
        return
    if thinking["budget_tokens"] < 1024:
        raise RequestRefusedError("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    if thinking["budget_tokens"] >= body["max_tokens"]:
        raise RequestRefusedError("`max_tokens` must be greater than `thinking.budget_tokens`.")
    first = messages[start]["content"][0]["type"] if start < len(messages) else "thinking"
    if "thinking" not in first:
        raise RequestRefusedError(
            f"messages.{start}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`. When"
            " `thinking` is enabled, a final `assistant` message must start with a thinking block."
        )


def _turn_start(messages: list[Json]) -> int:
    """Return the index of the first message of the assistant's turn, which has all tool rounds since the question."""
    start = len(messages)
    while start > 1 and any(block["type"] == "tool_result" for block in messages[start - 1]["content"]):
        start -= 2
    return start


def _check_no_thinking(messages: list[Json], start: int) -> None:
    for index, message in list(enumerate(messages))[start:]:
        for place, block in enumerate(message["content"]):
            if "thinking" in block["type"]:
                raise RequestRefusedError(
                    f"messages.{index}.content.{place}: When thinking is disabled, an `assistant` message in the final"
                    " position cannot contain `thinking`. To use thinking blocks, enable `thinking` in your request."
                )


def _check_cache(body: Json, messages: list[Json]) -> None:
    system = body.get("system", [])
    system = [{"type": "text", "text": system}] if isinstance(system, str) else system
    if any(not block["text"].strip() for block in system):
        raise RequestRefusedError("system: text content blocks must contain non-whitespace text")
    blocks = [*system, *body.get("tools", []), *(block for message in messages for block in message["content"])]
    marked = [block for block in blocks if "cache_control" in block]
    if len(marked) > 4:
        raise RequestRefusedError(f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}.")
    if any("thinking" in block.get("type", "") for block in marked):
        raise RequestRefusedError("messages: `cache_control` cannot be set for thinking blocks")
