"""A stranger's first ten minutes with a real model: keys or a base URL in the environment, nothing else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.entering import enter
from tests.support.server import Server
from tests.wire.server import WireServer

pytestmark = pytest.mark.server


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
async def test_environment_alone_connects_a_model(vendor: str, data: Path) -> None:
    """RUN-01, RUN-04, CTX-02: text and a tool round through the real SDK, and the figures of the response."""
    async with WireServer() as model:
        address = {"OPENAI_BASE_URL": model.openai_url}
        if vendor == "anthropic":
            address = {"ANTHROPIC_BASE_URL": model.anthropic_url, "ANTHROPIC_API_KEY": "sk-test"}
        server = Server(data, **address)
        await asyncio.to_thread(server.start)
        try:
            answers, frames = await _ask(server, "calculate 6 * 7")
        finally:
            await asyncio.to_thread(server.stop)
    assert answers == ["Let me calculate that.", "The result is 42."]
    usage = [frame for frame in frames if frame["type"] == "token_usage"]
    assert len(usage) == 2
    assert usage[-1]["session_total_tokens"] == sum(
        _tokens(frame) for frame in frames if frame["type"] == "response_done"
    )
    providers = {frame["row"]["provider"] for frame in frames if frame["type"] == "response_done"}
    assert providers == {vendor}


async def _ask(server: Server, text: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Sign in by the link, send over the events socket, and collect frames until the turn is done."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
        url = f"{server.address}/ws{await enter(client, server.link)}"
        async with client.ws_connect(url, origin=server.address) as socket:
            await socket.send_json({"type": "sync", "since": 0})
            frames = await _frames_until(socket, "changes")
            await socket.send_json({"type": "send", "text": text, "key": "k1"})
            frames += await _frames_until(socket, "turn_done")
            await socket.send_json({"type": "sync", "since": 0})
            *rest, changes = await _frames_until(socket, "changes")
    spoken = [row["text"] for row in changes["messages"] if row["type"] == "text" and row["role"] == "assistant"]
    return spoken, [*frames, *rest]


async def _frames_until(socket: aiohttp.ClientWebSocketResponse, last: str) -> list[dict[str, Any]]:
    frames: list[dict[str, Any]] = []
    async with asyncio.timeout(30):
        while not frames or frames[-1]["type"] != last:
            frames.append(json.loads(await socket.receive_str()))
    return frames


def _tokens(frame: dict[str, Any]) -> int:
    return int(frame["usage"]["total_tokens"])
