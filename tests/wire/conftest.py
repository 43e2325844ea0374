"""A running wire server and providers that use it, without retries."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from agents.providers.anthropic.provider import AnthropicProvider
from agents.providers.openai.provider import OpenAIProvider
from tests.wire.server import WireServer
from tests.wire.vendors import ALL, ANTHROPIC, OPENAI, RESPONSES, Vendor


@pytest_asyncio.fixture
async def wire() -> AsyncIterator[WireServer]:
    async with WireServer() as server:
        yield server


@pytest_asyncio.fixture
async def claude(wire: WireServer) -> AsyncIterator[AnthropicProvider]:
    provider = ANTHROPIC.make(wire)
    assert isinstance(provider, AnthropicProvider)
    yield provider
    await provider.close()


@pytest_asyncio.fixture
async def gpt(wire: WireServer) -> AsyncIterator[OpenAIProvider]:
    provider = OPENAI.make(wire)
    assert isinstance(provider, OpenAIProvider)
    yield provider
    await provider.close()


@pytest_asyncio.fixture
async def o(wire: WireServer) -> AsyncIterator[OpenAIProvider]:
    """A provider for OpenAI, over its Responses API."""
    provider = RESPONSES.make(wire)
    assert isinstance(provider, OpenAIProvider)
    yield provider
    await provider.close()


@pytest.fixture(params=ALL, ids=lambda vendor: str(vendor.name))
def vendor(request: pytest.FixtureRequest) -> Vendor:
    chosen: Vendor = request.param
    return chosen
