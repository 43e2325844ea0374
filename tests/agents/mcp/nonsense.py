"""An MCP server without libraries and without `ping`.

Its tool `babble` answers with an invalid message, `refuse` with an error, `process` with its process id, `home` with
HOME, and `repeat` with its arguments. With the argument `lists` it also declares prompts and resources, and then
refuses to list them. With `invalid` its lists also contain items that the protocol does not allow, a second tool
`home`, and halves of characters. With `http PORT` it serves a web address instead of standard input.
"""

from __future__ import annotations

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LISTS: dict[str, Any] = {"prompts": {}, "resources": {}}
OFFERED = LISTS if {"lists", "invalid"} & set(sys.argv) else {}
NAMES = ("babble", "refuse", "process", "home", "repeat")
SCHEMA = {"type": "object", "properties": {"$filter": {"type": "string"}, "page": {}}, "required": ["$filter"]}
# Invalid values of fields that a tool need not have.
MORE: dict[str, Any] = {"outputSchema": {"$id": "x"}, "icons": "none"} if "invalid" in sys.argv else {}
CUT = "Cut within an emoji\ud83d"
INVALID: list[Any] = [
    {"name": "no_schema"},
    {"name": "no_object", "inputSchema": {"type": "string"}},
    {"name": {"a": "b"}, "inputSchema": {"type": "object"}},
    "no tool",
    {"name": "half\ud83d", "inputSchema": {"type": "object"}},
]


def tool_of(request: dict[str, Any]) -> str:
    return str((request.get("params") or {}).get("name", ""))


def answer(request: dict[str, Any]) -> dict[str, Any]:
    if request["method"] == "initialize":
        info = {"name": "nonsense", "version": "1"}
        version = request["params"]["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}, **OFFERED}, "serverInfo": info}
    if request["method"] == "tools/list":
        tools: list[Any] = [{"name": name, "inputSchema": SCHEMA, **MORE} for name in NAMES]
        second = {"name": "home", "description": CUT, "inputSchema": {"type": "object"}}
        return {"tools": [*INVALID, *tools, second] if "invalid" in sys.argv else tools}
    if request["method"] == "prompts/list":
        return {"prompts": [{"name": 5}, {"name": "greet"}]}
    if request["method"] == "resources/list" and "invalid" in sys.argv:
        return {"resources": [{"uri": "notes://first", "name": "first", "description": CUT}, {"uri": "notes://second"}]}
    texts = {"process": str(os.getpid()), "repeat": json.dumps((request.get("params") or {}).get("arguments"))}
    text = texts.get(tool_of(request), os.environ["HOME"])
    return {"content": [{"type": "text", "text": text}]}


def error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def reply(request: dict[str, Any]) -> dict[str, Any]:
    match request["method"], tool_of(request):
        case "prompts/list", _ if "invalid" not in sys.argv:
            return error(-32603, "no prompts today")
        case "ping", _:
            return error(-32601, "no such method")
        case "tools/call", "refuse":
            return error(-32000, "not now")
    return {"result": answer(request)}


class Address(BaseHTTPRequestHandler):
    """Answers each request with one JSON message."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        has_answer = "id" in request
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply(request)}) if has_answer else ""
        self.send_response(200 if has_answer else 202)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_GET(self) -> None:
        self.send_error(405)


if __name__ == "__main__":
    if "http" in sys.argv:
        server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[-1])), Address)
        sys.stderr.write(f"Nonsense running on {server.server_address}\n")
        sys.stderr.flush()
        server.serve_forever()
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
