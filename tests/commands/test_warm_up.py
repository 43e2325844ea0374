"""What a process loads before it is asked, so that its first answer comes as soon as the others."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import httpx2
import pytest

from agents.providers.anthropic.provider import AnthropicProvider
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
    """Otherwise the import of the SDK's call and of the certificates stops every session for a while."""
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
    """RUN-10: the first request says so to the user who sends it."""
    odd = provider("odd", "k", "http://[::1")
    odd.prepare()
    with pytest.raises((httpx2.InvalidURL, ValueError)):
        _ = odd.client
