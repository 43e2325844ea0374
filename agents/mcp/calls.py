"""Results of calls that break the protocol or their tool's schema, kept as far as a model can read them."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
from mcp.client.session import ClientSession
from mcp_types.methods import parse_server_result
from pydantic import ValidationError

CALL = "tools/call"


class LenientSession(ClientSession):
    """A session that accepts results without their tool's schema, because models get them as text."""

    async def validate_tool_result(self, name: str, result: types.CallToolResult) -> None:
        pass


def readable_result(version: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a call with its invalid parts as text, so that these do not cost the valid ones.

    The server has executed the call: without the result, the model might repeat it.
    """
    content, structured = result.get("content"), result.get("structuredContent")
    if _is_valid(version, result) or (content is None and structured is None):
        return result
    parts = content if isinstance(content, list) else [] if content is None else [content]
    kept = [part if _is_valid(version, {"content": [part]}) else _as_text(part) for part in parts]
    readable: dict[str, Any] = {"content": kept, "isError": result.get("isError") is True}
    if isinstance(structured, dict):
        readable["structuredContent"] = structured
    elif structured is not None:
        kept.append(_as_text(structured))
    return readable


def _is_valid(version: str, result: dict[str, Any]) -> bool:
    try:
        parse_server_result(CALL, version, result)
    except ValidationError:
        return False
    except (KeyError, ValueError):  # a version that has no calls: the session decides
        return True
    return True


def _as_text(part: Any) -> dict[str, Any]:
    return {"type": "text", "text": part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)}
