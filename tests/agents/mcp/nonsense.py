"""An MCP server without libraries and without `ping`.

Its tool `babble` answers with an invalid message, `refuse` with an error, `process` with its process id, and `home`
with HOME. With the argument `lists` it also declares prompts and resources, and then refuses to list them.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

REFUSED: dict[str, Any] = {"prompts": {}, "resources": {}} if "lists" in sys.argv else {}


def tool_of(request: dict[str, Any]) -> str:
    return str((request.get("params") or {}).get("name", ""))


def answer(request: dict[str, Any]) -> dict[str, Any]:
    if request["method"] == "initialize":
        info = {"name": "nonsense", "version": "1"}
        version = request["params"]["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}, **REFUSED}, "serverInfo": info}
    if request["method"] == "tools/list":
        return {
            "tools": [
                {"name": name, "inputSchema": {"type": "object"}} for name in ("babble", "refuse", "process", "home")
            ]
        }
    text = str(os.getpid()) if tool_of(request) == "process" else os.environ["HOME"]
    return {"content": [{"type": "text", "text": text}]}


def error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def reply(request: dict[str, Any]) -> dict[str, Any]:
    match request["method"], tool_of(request):
        case "prompts/list", _:
            return error(-32603, "no prompts today")
        case "ping", _:
            return error(-32601, "no such method")
        case "tools/call", "refuse":
            return error(-32000, "not now")
    return {"result": answer(request)}


if __name__ == "__main__":
    for incoming in sys.stdin:
        request = json.loads(incoming)
        if "id" not in request:
            continue
        if tool_of(request) == "babble":
            line = "what?"
        else:
            line = json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply(request)})
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
