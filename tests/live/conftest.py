"""Fixtures for tests of the live stream."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from chat.live import hub as hubs
from chat.live.hub import Hub
from tests.support.house import House


@pytest.fixture(autouse=True)
def _nothing_goes_wrong(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What the live stream meets in these tests is never an error to an operator."""
    yield
    for when in ("setup", "call"):
        records = [record for record in caplog.get_records(when) if record.levelno >= logging.ERROR]
        assert [record.getMessage() for record in records] == []


@pytest.fixture
def no_beacon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shown must not have waited for it. Before the hubs: they sleep already when they have started."""
    monkeypatch.setattr(hubs, "BEACON_INTERVAL", 3600.0)


@pytest_asyncio.fixture
async def second_hub(house: House) -> AsyncIterator[Hub]:
    """Another web process on the same channel layer, as far as the live stream goes."""
    hub = Hub()
    await hub.start()
    yield hub
    await hub.stop()
