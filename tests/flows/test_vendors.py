"""The first use of a real model, with only keys or a base URL in the environment."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.entering import enter
from tests.support.server import ForkedServer
from tests.wire.server import WireServer

pytestmark = pytest.mark.server


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
async def test_environment_alone_connects_a_model(vendor: str, data: Path) -> None:
    """RUN-01, RUN-04, CTX-02: text, a tool round and the figures of a response work through the real SDK."""
    async with WireServer() as model:
        address = {"OPENAI_BASE_URL": model.openai_url}
        if vendor == "anthropic":
            address = {"ANTHROPIC_BASE_URL": model.anthropic_url, "ANTHROPIC_API_KEY": "sk-test"}
        server = ForkedServer(data, **address)
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


@pytest.mark.parametrize(
    ("kind", "api"),
    [("openai", "chat"), ("openai", "responses"), ("anthropic", "")],
    ids=["chat", "responses", "claude"],
)
async def test_each_request_begins_as_the_one_before(kind: str, api: str, data: Path, tmp_path: Path) -> None:
    """RUN-04: each request begins with the previous one byte for byte, within and between turns, so that vendors'
    caches apply."""
    async with WireServer() as model:
        url = model.anthropic_url if kind == "anthropic" else model.openai_url
        file = tmp_path / "parley.toml"
        file.write_text(
            f'[providers.mine]\ntype = "{kind}"\nbase_url = "{url}"\n' + (f'api = "{api}"\n' if api else "")
        )
        server = ForkedServer(data, PARLEY_CONFIG=str(file), TITLES="words")
        await asyncio.to_thread(server.start)
        try:
            await _ask(server, "calculate 6 * 7", "calculate 7 * 8")
        finally:
            await asyncio.to_thread(server.stop)
    bodies = [_without_marks(each.body) for each in model.requests if each.body and each.body.get("tools")]
    assert len(bodies) == 4
    for before, after in pairwise(bodies):
        for part in ("model", "system", "instructions", "tools", "prompt_cache_key"):
            assert json.dumps(before.get(part)) == json.dumps(after.get(part))
        said, more = (json.dumps(body.get("messages") or body["input"]) for body in (before, after))
        assert more.startswith(said.removesuffix("]"))
    assert bool(bodies[0].get("prompt_cache_key")) == (api == "responses")


def _without_marks(value: Any) -> Any:
    """Remove the cache marks, which are not part of the content."""
    if isinstance(value, dict):
        return {name: _without_marks(each) for name, each in value.items() if name != "cache_control"}
    return [_without_marks(each) for each in value] if isinstance(value, list) else value


async def _ask(server: ForkedServer, *texts: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Sign in by the link, send over the events socket, and return the answers and the frames until the turns are
    done."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
        url = f"{server.address}/ws{await enter(client, server.link)}"
        await _models_are_listed(client, server)
        async with client.ws_connect(url, origin=server.address) as socket:
            await socket.send_json({"type": "sync", "since": 0})
            frames = await _frames_until(socket, "changes")
            for text in texts:
                await socket.send_json({"type": "send", "text": text, "key": text})
                frames += await _frames_until(socket, "turn_done")
            await socket.send_json({"type": "sync", "since": 0})
            *rest, changes = await _frames_until(socket, "changes")
    spoken = [row["text"] for row in changes["messages"] if row["type"] == "text" and row["role"] == "assistant"]
    return spoken, [*frames, *rest]


async def _models_are_listed(client: aiohttp.ClientSession, server: ForkedServer) -> None:
    """Wait until the home page offers the model, which can take longer on a busy machine than the page waits."""
    async with asyncio.timeout(30):
        while True:
            async with client.get(server.address) as home:
                if "wire-large" in await home.text():
                    return


async def _frames_until(socket: aiohttp.ClientWebSocketResponse, last: str) -> list[dict[str, Any]]:
    frames: list[dict[str, Any]] = []
    async with asyncio.timeout(30):
        while not frames or frames[-1]["type"] != last:
            frames.append(json.loads(await socket.receive_str()))
    return frames


def _tokens(frame: dict[str, Any]) -> int:
    return int(frame["usage"]["total_tokens"])
