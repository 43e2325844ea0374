#!/usr/bin/env python
"""The distribution's Firefox, as a program that Playwright can start and control by WebDriver BiDi.

Playwright sets the media features of each context by a command that Firefox does not support. A relay between them
answers this command and forwards all others. `PREFERENCES` in launch.py set the media features instead.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from asyncio import StreamReader, create_subprocess_exec
from asyncio.subprocess import PIPE
from functools import partial

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve

FIREFOX = "firefox-esr"
LISTENING = "WebDriver BiDi listening on ws://"
UNKNOWN = "emulation.setMediaFeaturesOverride"


async def main(arguments: list[str]) -> int:
    """Run Firefox and the relay until Firefox ends. Print the relay's address in the format of Firefox's own."""
    firefox = await create_subprocess_exec(FIREFOX, *arguments, stderr=PIPE)
    assert firefox.stderr
    address = f"ws://{await place(firefox.stderr)}/session"
    async with serve(partial(relay, address), "127.0.0.1", 0, max_size=None, compression=None) as server:
        port = server.sockets[0].getsockname()[1]
        print(f"{LISTENING}127.0.0.1:{port}", file=sys.stderr, flush=True)  # noqa: T201  # Playwright reads it
        async for line in firefox.stderr:
            sys.stderr.write(line.decode())
        return await firefox.wait()


async def place(errors: StreamReader) -> str:
    """Return the host and port on which Firefox listens. Raise RuntimeError if it ends."""
    async for line in errors:
        if found := re.search(rf"{LISTENING}(\S+)", line.decode()):
            return found[1]
        sys.stderr.write(line.decode())
    raise RuntimeError("Firefox ended without listening")


async def relay(address: str, playwright: ServerConnection) -> None:
    async with connect(address, max_size=None, compression=None, proxy=None) as firefox:
        ways = [asyncio.create_task(ask(playwright, firefox)), asyncio.create_task(forward_events(playwright, firefox))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)


async def ask(playwright: ServerConnection, firefox: ClientConnection) -> None:
    async for command in playwright:
        if UNKNOWN in str(command) and (parsed := json.loads(command))["method"] == UNKNOWN:
            await playwright.send(json.dumps({"type": "success", "id": parsed["id"], "result": {}}))
        else:
            await firefox.send(command)


async def forward_events(playwright: ServerConnection, firefox: ClientConnection) -> None:
    async for event in firefox:
        await playwright.send(event)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
