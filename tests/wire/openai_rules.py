"""The requests that OpenAI's Chat Completions API refuses, with its messages."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection

from agents.messages import Json
from tests.wire.script import RequestRefusedError

KNOWN = frozenset(
    {
        "model",
        "messages",
        "stream",
        "stream_options",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "temperature",
        "top_p",
        "stop",
        "seed",
        "n",
        "user",
        "max_tokens",
        "max_completion_tokens",
        "reasoning_effort",
        "response_format",
        "metadata",
        "service_tier",
    }
)
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


def check(body: Json) -> None:
    """Raise RequestRefusedError for a request that the vendor answers with 400 invalid_request_error."""
    for key in body.keys() - KNOWN:
        raise RequestRefusedError(f"Unrecognized request argument supplied: {key}")
    if "stream_options" in body and not body.get("stream"):
        raise RequestRefusedError("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
    messages = body.get("messages") or []
    if not messages:
        raise RequestRefusedError(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array."
        )
    for index, message in enumerate(messages):
        _check_message(index, message)
    _check_pairing(messages)
    _check_tools(body)


def _check_message(index: int, message: Json) -> None:
    role, content = message.get("role"), message.get("content")
    if role not in {"system", "developer", "user", "assistant", "tool"}:
        raise RequestRefusedError(
            f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user' and 'tool'."
        )
    if content is None and not (role == "assistant" and message.get("tool_calls")):
        raise RequestRefusedError(
            f"Invalid value for 'content': expected a string, got null. (messages.[{index}].content)"
        )
    if isinstance(content, list) and role == "user":
        _check_pieces(index, content)
    elif content is not None and not isinstance(content, str):
        raise RequestRefusedError(f"Invalid type for 'messages[{index}].content': expected a string.")
    if "tool_calls" in message and not message["tool_calls"]:
        raise RequestRefusedError(f"Invalid 'messages[{index}].tool_calls': empty array.")
    for call in message.get("tool_calls", ()):
        _check_call(index, call)


def _check_pieces(index: int, pieces: list[Json]) -> None:
    if not pieces:
        raise RequestRefusedError(f"Invalid 'messages[{index}].content': empty array.")
    for number, piece in enumerate(pieces):
        where = f"messages[{index}].content[{number}]"
        match piece:
            case {"type": "text", "text": str(text), **rest} if text and not rest:
                continue
            case {"type": "image_url", "image_url": {"url": str(url)}, **rest} if not rest:
                check_data_url(where, url, IMAGES)
            case {"type": "file", "file": {"filename": str(name), "file_data": str(url)}, **rest} if name and not rest:
                check_data_url(where, url, {"application/pdf"})
            case _:
                raise RequestRefusedError(f"Invalid value: '{piece.get('type')}' at '{where}'.")


def check_data_url(where: str, url: str, media_types: Collection[str]) -> None:
    """Raise RequestRefusedError unless this is base64 data of such a type."""
    kind, found, data = url.partition(";base64,")
    if not found or kind.removeprefix("data:") not in media_types:
        raise RequestRefusedError(f"Invalid '{where}': you uploaded an unsupported image or file.")
    try:
        empty = not base64.b64decode(data, validate=True)
    except ValueError:
        empty = True
    if empty:
        raise RequestRefusedError(f"Invalid base64 data in '{where}'.")


def _check_call(index: int, call: Json) -> None:
    if call.get("type") != "function" or not call.get("id"):
        raise RequestRefusedError(f"Missing required parameter: 'messages[{index}].tool_calls[0].id'.")
    if not NAME.match(call["function"]["name"]):
        raise RequestRefusedError(
            f"Invalid 'messages[{index}].tool_calls[0].function.name': string does not match pattern."
        )
    if not isinstance(call["function"]["arguments"], str):
        raise RequestRefusedError(
            f"Invalid type for 'messages[{index}].tool_calls[0].function.arguments': expected a string."
        )


def _check_pairing(messages: list[Json]) -> None:
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_calls:
                raise RequestRefusedError(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with"
                    " 'tool_calls'."
                )
            open_calls.remove(message["tool_call_id"])
            continue
        _check_answered(open_calls)
        open_calls = [call["id"] for call in message.get("tool_calls", ())]
    _check_answered(open_calls)


def _check_answered(open_calls: list[str]) -> None:
    if open_calls:
        raise RequestRefusedError(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
            f" 'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_calls)}"
        )


def _check_tools(body: Json) -> None:
    tools = body.get("tools")
    if tools is not None and not tools:
        raise RequestRefusedError("Invalid 'tools': empty array. Expected an array with minimum length 1.")
    for index, tool in enumerate(tools or ()):
        if tool.get("type") != "function" or not NAME.match(tool["function"]["name"]):
            raise RequestRefusedError(f"Invalid 'tools[{index}].function.name': string does not match pattern.")
    if "tool_choice" in body and not tools:
        raise RequestRefusedError(
            "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."
        )
