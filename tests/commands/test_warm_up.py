"""What a process loads before the first request, so that the first answer is as fast as later ones."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from asyncio.subprocess import PIPE
from pathlib import Path

import httpx2
import pytest
from anthropic import AsyncAnthropic

from agents.errors import ProviderError
from agents.messages import Message, Text
from agents.providers.anthropic.provider import AnthropicProvider
from agents.providers.base import Request
from agents.providers.http import transport
from agents.providers.openai.provider import OpenAIProvider
from tests.commands.process import PATIENCE, ROOT, environment
from tests.wire.script import Reply
from tests.wire.server import WireServer
from tests.wire.vendors import ANTHROPIC, OPENAI, RESPONSES, Vendor

CONFIG = """
[agents.assistant]
model = "{0}/m"
[providers.{0}]
type = "{0}"
base_url = "{1}"
api_key_env = "MODEL_KEY"
models = ["m"]
{2}
"""
FIRST_ANSWER = """
import asyncio, json, sys
import django
django.setup()
from agents.messages import Message, Text
from agents.providers.base import Request
from agents.providers.http import transport
from agents.sandbox import probe
from chat.agents_setup import registry
from config.warm_up import warm_up

def read():
    return transport._certificates.cache_info().misses + probe._problem.cache_info().misses

async def ask():
    request = Request("m", (Message("user", (Text("Hello"),)),), max_tokens=100)
    provider = registry().provider(registry().preset().provider)
    events = [event async for event in provider.stream(request)]
    agent = registry().build_agent(registry().preset())
    await registry().close()
    return len(events), len(agent.tools)

warm_up()
known, were_read = set(sys.modules), read()
events, tools = asyncio.run(ask())
late = sorted(name for name in set(sys.modules) - known if name.startswith(("openai", "anthropic")))
print(json.dumps([late, read() - were_read, events > 0, tools > 0]))
"""


@pytest.mark.parametrize("vendor", [ANTHROPIC, OPENAI, RESPONSES], ids=lambda vendor: vendor.name)
async def test_first_answer_finds_everything_loaded(vendor: Vendor, tmp_path: Path) -> None:
    """The SDK and the certificates are loaded, because loading them later would stop all sessions for a while."""
    async with WireServer() as server:
        server.script(Reply(vendor.text("Good day")))
        kind = "anthropic" if vendor is ANTHROPIC else "openai"
        address = server.anthropic_url if vendor is ANTHROPIC else server.openai_url
        config = tmp_path / "parley.toml"
        config.write_text(CONFIG.format(kind, address, 'api = "responses"' if vendor is RESPONSES else ""))
        settings = {"PARLEY_CONFIG": str(config), "MODEL_KEY": "k", "DJANGO_SETTINGS_MODULE": "config.settings"}
        env = environment(tmp_path / "data", **settings)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", FIRST_ANSWER, cwd=ROOT, env=env, stdout=PIPE
        )
        async with asyncio.timeout(PATIENCE):
            printed, _ = await process.communicate()
    assert json.loads(printed) == [[], 0, True, True]


@pytest.mark.parametrize("provider", [AnthropicProvider, OpenAIProvider])
def test_address_that_is_none_does_not_end_the_warm_up(provider: type[AnthropicProvider | OpenAIProvider]) -> None:
    """RUN-10: an invalid address does not fail the warm-up; the first request reports the error to its user."""
    odd = provider("odd", "k", "http://[::1")
    odd.prepare()
    with pytest.raises((httpx2.InvalidURL, ValueError)):
        _ = odd.client


@pytest.mark.parametrize("provider", [AnthropicProvider, OpenAIProvider])
async def test_certificates_that_cannot_be_read_do_not_end_the_warm_up(
    provider: type[AnthropicProvider | OpenAIProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-10: unreadable certificates do not fail the warm-up, which a worker waits for before a handover.

    The first request reports them.
    """
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    transport._certificates.cache_clear()
    it = provider("it", "k")
    it.prepare()
    with pytest.raises(ProviderError):
        await anext(it.stream(Request("m", (Message("user", (Text("Hello"),)),), max_tokens=100)))


async def test_request_during_the_warm_up_uses_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request during the warm-up uses the same client, because the connections of a replaced one would never be
    closed."""
    it, made = AnthropicProvider("it", "k"), list[object]()
    begun, asked, make = threading.Event(), threading.Event(), it._make_client

    class Watched:
        lock = threading.Lock()

        def __enter__(self) -> None:
            if begun.is_set():
                asked.set()
            self.lock.acquire()

        def __exit__(self, *_error: object) -> None:
            self.lock.release()

    def slowly() -> AsyncAnthropic:
        if begun.is_set():  # the second client
            asked.set()
        begun.set()
        asked.wait(PATIENCE)
        client = make()
        made.append(client)
        return client

    monkeypatch.setattr(it, "_making", Watched(), raising=False)
    monkeypatch.setattr(it, "_make_client", slowly)
    preparing = asyncio.create_task(asyncio.to_thread(it.prepare))
    await asyncio.to_thread(begun.wait, PATIENCE)
    client = await asyncio.to_thread(lambda: it.client)
    await preparing
    assert made == [client]
    assert it.client is client
    await it.close()
