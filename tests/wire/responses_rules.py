"""The requests that OpenAI's Responses API refuses, with its messages."""

from __future__ import annotations

import re

from agents.messages import Json
from tests.wire.openai_rules import IMAGES, NAME, check_data_url
from tests.wire.responses import ALONE, seal
from tests.wire.script import RequestRefusedError

# The parameters of openai.types.responses.ResponseCreateParams.
KNOWN = frozenset(
    {
        "background",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "model",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt_cache_key",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    }
)
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
REASONS = re.compile(r"^(o\d|gpt-[56])")
PLAIN = re.compile(r"^gpt-4")
MAX_ID_LENGTH = 64
FIELDS = {
    "message": {"type", "id", "role", "content", "status", "phase"},
    "function_call": {"type", "id", "call_id", "name", "arguments", "status"},
    "function_call_output": {"type", "id", "call_id", "output", "status"},
    "reasoning": {"type", "id", "summary", "content", "encrypted_content", "status"},
}
PREFIX = {"message": "msg", "function_call": "fc", "reasoning": "rs", "function_call_output": "fc"}


def check(body: Json) -> None:
    """Raise RequestRefusedError for a request that the vendor answers with 400 invalid_request_error."""
    for key in body.keys() - KNOWN:
        raise RequestRefusedError(f"Unknown parameter: '{key}'.", key)
    if body.get("store") is not False and any(item.get("type") == "reasoning" for item in body.get("input", ())):
        raise RequestRefusedError("This server keeps nothing: ask it with `store` set to false.", "store")
    items = body.get("input")
    if not isinstance(items, list) or not items:
        raise RequestRefusedError("Invalid 'input': empty array. Expected an array with minimum length 1.", "input")
    for index, item in enumerate(items):
        _check_item(f"input[{index}]", item)
    _check_ids(items)
    _check_reasoning_items(body["model"], items)
    _check_pairing(items)
    _check_tools(body)
    _check_limit(body)
    _check_reasoning(body)


def _check_item(where: str, item: Json) -> None:
    kind = item.get("type", "message")
    if kind not in FIELDS:
        raise RequestRefusedError(f"Invalid value: '{kind}'.", f"{where}.type")
    for key in item.keys() - FIELDS[kind]:
        raise RequestRefusedError(f"Unknown parameter: '{where}.{key}'.", f"{where}.{key}")
    if "id" in item and not (item["id"].startswith(f"{PREFIX[kind]}_") and len(item["id"]) <= MAX_ID_LENGTH):
        raise RequestRefusedError(
            f"Invalid '{where}.id': '{item['id']}'. Expected an ID that begins with '{PREFIX[kind]}'.", f"{where}.id"
        )
    match kind:
        case "message":
            _check_message(where, item)
        case "function_call":
            _check_call(where, item)
        case "function_call_output":
            if not isinstance(item.get("output"), str):
                raise RequestRefusedError(f"Invalid type for '{where}.output': expected a string.")
        case "reasoning":
            if not isinstance(item.get("summary"), list):
                raise RequestRefusedError(f"Missing required parameter: '{where}.summary'.", f"{where}.summary")


def _check_message(where: str, item: Json) -> None:
    role, content = item.get("role"), item.get("content")
    if role not in {"user", "assistant", "system", "developer"}:
        raise RequestRefusedError(f"Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'user'.")
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        raise RequestRefusedError(f"Invalid type for '{where}.content': expected one of a string or array.")
    for number, piece in enumerate(content):
        _check_piece(f"{where}.content[{number}]", piece, role)


def _check_piece(where: str, piece: Json, role: str) -> None:
    match piece:
        case {"type": "input_text", "text": str(), **rest} if not rest and role != "assistant":
            return
        case {"type": "input_image", "image_url": str(url), "detail": str(), **rest} if not rest and role == "user":
            check_data_url(where, url, IMAGES)
        case {"type": "input_file", "filename": str(name), "file_data": str(url), **rest} if (
            name and not rest and role == "user"
        ):
            check_data_url(where, url, {"application/pdf"})
        case {"type": "output_text", "text": str(), "annotations": list(), **rest} if not rest and role == "assistant":
            return
        case _:
            raise RequestRefusedError(f"Invalid value: '{piece.get('type')}'.", where)


def _check_call(where: str, item: Json) -> None:
    if not NAME.match(item.get("name", "")):
        raise RequestRefusedError(f"Invalid '{where}.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.")
    if not isinstance(item.get("arguments"), str):
        raise RequestRefusedError(f"Invalid type for '{where}.arguments': expected a string.")
    if not item.get("call_id") or len(item["call_id"]) > MAX_ID_LENGTH:
        raise RequestRefusedError(
            f"Invalid '{where}.call_id': string too long. Expected a string with maximum length 64.", f"{where}.call_id"
        )


def _check_ids(items: list[Json]) -> None:
    seen: set[str] = set()
    for item in items:
        if item.get("id") in seen:
            raise RequestRefusedError(f"Duplicate item found with id {item['id']}. Remove duplicate items.")
        seen |= {item["id"]} if "id" in item else set()


def _check_reasoning_items(model: str, items: list[Json]) -> None:
    """Check that reasoning and its following items come together, by the tails of their ids."""
    known: set[str] = set()
    for place, item in enumerate(items):
        kind, item_id = item.get("type", "message"), item.get("id", "")
        tail = item_id.split("_")[1] if item_id else ALONE
        if kind == "reasoning":
            known.add(tail)
            _check_seal(model, item)
            following = items[place + 1] if place + 1 < len(items) else {}
            if following.get("type") != "reasoning" and following.get("id", "__").split("_")[1] != tail:
                raise RequestRefusedError(
                    f"Item '{item_id}' of type 'reasoning' was provided without its required following item.", "input"
                )
        elif tail != ALONE and tail not in known:
            raise RequestRefusedError(
                f"Item '{item_id}' of type '{kind}' was provided without its required 'reasoning' item: 'rs_{tail}'.",
                "input",
            )


def _check_seal(model: str, item: Json) -> None:
    content = item.get("encrypted_content")
    if content is None:
        raise RequestRefusedError(
            f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false. Try again"
            " with `store` set to true, or remove this item from your input.",
            "input",
        )
    if content != seal(model, item["id"]):
        raise RequestRefusedError(
            f"The encrypted content for item {item['id']} could not be verified.", code="invalid_encrypted_content"
        )


def _check_pairing(items: list[Json]) -> None:
    calls: list[str] = []
    answered: list[str] = []
    for item in items:
        if item.get("type") == "function_call":
            calls.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            if item["call_id"] not in calls or item["call_id"] in answered:
                raise RequestRefusedError(
                    f"No tool call found for function call output with call_id {item['call_id']}.", "input"
                )
            answered.append(item["call_id"])
        elif item.get("role") in {"user", "system"}:
            _check_answered(calls, answered)
    _check_answered(calls, answered)
    if len(set(calls)) < len(calls):
        raise RequestRefusedError("Duplicate function call ids were provided.", "input")


def _check_answered(calls: list[str], answered: list[str]) -> None:
    for call_id in calls:
        if call_id not in answered:
            raise RequestRefusedError(f"No tool output found for function call {call_id}.", "input")


def _check_tools(body: Json) -> None:
    tools = body.get("tools")
    if tools is not None and not tools:
        raise RequestRefusedError("Invalid 'tools': empty array. Expected an array with minimum length 1.", "tools")
    for index, tool in enumerate(tools or ()):
        if tool.get("type") != "function" or not NAME.match(tool.get("name", "")):
            raise RequestRefusedError(f"Invalid 'tools[{index}].name': string does not match pattern.")
        if tool.get("strict", True) and tool["parameters"].get("additionalProperties") is not False:
            raise RequestRefusedError(
                f"Invalid schema for function '{tool['name']}': In context=(), 'additionalProperties' is required to be"
                " supplied and to be false."
            )
    if "tool_choice" in body and not tools:
        raise RequestRefusedError("Tool choice 'none' must be specified with 'tools' parameter.", "tool_choice")


def _check_limit(body: Json) -> None:
    if body.get("max_output_tokens", 16) < 16:
        raise RequestRefusedError(
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.", "max_output_tokens"
        )


def _check_reasoning(body: Json) -> None:
    model, reasoning = body["model"], body.get("reasoning", {})
    effort = reasoning.get("effort", "medium")
    if effort not in EFFORTS:
        raise RequestRefusedError(f"Invalid value: '{effort}'.", "reasoning.effort")
    if PLAIN.match(model) and "effort" in reasoning:
        raise _unsupported("reasoning.effort")
    if PLAIN.match(model) and body.get("include"):
        raise RequestRefusedError("Encrypted content is not supported with this model.", "include")
    for name in ("temperature", "top_p") if REASONS.match(model) and effort != "none" else ():
        if name in body:
            raise _unsupported(name)


def _unsupported(name: str) -> RequestRefusedError:
    message = f"Unsupported parameter: '{name}' is not supported with this model."
    return RequestRefusedError(message, name, "unsupported_parameter")
