"""An MCP server without libraries, whose tool `babble` answers with what is no message and whose others say HOME.

With the argument `lists` it also says that it has prompts and resources, and then refuses to list them.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

REFUSED: dict[str, Any] = {"prompts": {}, "resources": {}} if "lists" in sys.argv else {}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    if request["method"] == "initialize":
        info = {"name": "nonsense", "version": "1"}
        version = request["params"]["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}, **REFUSED}, "serverInfo": info}
    if request["method"] == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("babble", "home")]}
    return {"content": [{"type": "text", "text": os.environ["HOME"]}]}


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        is_babble = request["method"] == "tools/call" and request["params"]["name"] == "babble"
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"], "result": answer(request)}
        if request["method"] == "prompts/list":
            reply = {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32603, "message": "no prompts today"}}
        sys.stdout.write("what?\n" if is_babble else json.dumps(reply) + "\n")
        sys.stdout.flush()
