"""An example of an MCP server, in one file without dependencies: it rolls dice, draws a chart and counts slowly.

The demo agent uses it. Run it as any other program: `command = ["python3", "example_server.py"]`. With the official
SDK, your own server would be shorter. This one shows the messages of the protocol: JSON-RPC, one message per line.
"""

from __future__ import annotations

import base64
import json
import random
import struct
import sys
import time
import zlib
from typing import Any

Json = dict[str, Any]
BAR, GAP, HEIGHT = 24, 8, 120
WHITE, BLUE = b"\xff\xff\xff", b"\x4f\x5b\xd5"

TOOLS: list[Json] = [
    {
        "name": "roll_dice",
        "description": "Roll some dice.",
        "inputSchema": {"type": "object", "properties": {"count": {"type": "integer", "minimum": 1, "maximum": 20}}},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "draw_chart",
        "description": "Draw a bar chart of some numbers, as an image.",
        "inputSchema": {
            "type": "object",
            "properties": {"values": {"type": "array", "items": {"type": "number"}, "maxItems": 40}},
            "required": ["values"],
        },
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "count_slowly",
        "description": "Count to a number, one step in half a second, and report progress.",
        "inputSchema": {"type": "object", "properties": {"to": {"type": "integer", "minimum": 1, "maximum": 20}}},
        "annotations": {"readOnlyHint": True},
    },
]


def send(message: Json) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(words: str) -> Json:
    return {"content": [{"type": "text", "text": words}]}


def chart(values: list[float]) -> bytes:
    """Return a bar chart as a PNG file."""
    top = max([1.0, *values])
    heights = [round(max(0.0, value) / top * HEIGHT) for value in values]
    rows = bytearray()
    for y in range(HEIGHT, 0, -1):
        rows += b"\0" + b"".join((BLUE if height >= y else WHITE) * BAR + WHITE * GAP for height in heights)
    size = struct.pack(">II5B", len(values) * (BAR + GAP), HEIGHT, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", size), (b"IDAT", zlib.compress(bytes(rows))), (b"IEND", b"")]
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def call(name: str, arguments: Json, token: object) -> Json:
    """Return the result of a tool. Raise KeyError, TypeError or ValueError if the model has to correct its call."""
    if name == "roll_dice":
        dice = [random.randint(1, 6) for _ in range(int(arguments.get("count", 2)))]  # noqa: S311  # a game
        return text(f"Rolled {dice}, which is {sum(dice)}.")
    if name == "draw_chart":
        values = [float(value) for value in arguments["values"]]
        image = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(chart(values)).decode()}
        return {"content": [{"type": "text", "text": f"A chart of {len(values)} values."}, image]}
    if name == "count_slowly":
        last = int(arguments.get("to", 5))
        for step in range(1, last + 1):
            time.sleep(0.5)
            if token is not None:
                progress = {"progressToken": token, "progress": step, "total": last, "message": f"Counted to {step}"}
                send({"method": "notifications/progress", "params": progress})
        return text(f"Counted to {last}.")
    raise ValueError(f"there is no tool {name!r}")


def answer(method: str, params: Json) -> Json:
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "example", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        try:
            token = params.get("_meta", {}).get("progressToken")
            return call(params["name"], params.get("arguments") or {}, token)
        except (KeyError, TypeError, ValueError) as error:
            return {**text(f"{type(error).__name__}: {error}"), "isError": True}
    return {}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            send({"id": message["id"], "result": answer(message["method"], message.get("params") or {})})


if __name__ == "__main__":
    main()
