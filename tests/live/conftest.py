"""Fixtures for tests of the live stream."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from pytest_django.fixtures import Settings

from chat.live import hub as hubs
from chat.live.hub import Hub
from tests.support.catalog import write_catalog
from tests.support.testing_node import TestNode

# Interface texts of the frames that the server pushes, with their translations.
SENTENCES = {
    "Edit": "编辑",
    "Interrupted": "已中断",
    "Queued by %(name)s": "%(name)s 的待发消息",
    "Retry": "重试",
    "Thinking…": "思考中…",
    "Calling %(tool_name)s…": "调用 %(tool_name)s…",
    "New session": "新会话",
    "Context:": "上下文：",
    "The message is empty.": "消息为空。",
}
LANGUAGES = ("en", "zh-hans", "zh-hant")


@pytest.fixture(autouse=True)
def _nothing_goes_wrong(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A check that the live stream logs no error."""
    yield
    for when in ("setup", "call"):
        records = [record for record in caplog.get_records(when) if record.levelno >= logging.ERROR]
        assert [record.getMessage() for record in records] == []


@pytest.fixture
def no_beacon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hubs without a beacon, so that no test passes because of it. Request this before a hub starts."""
    monkeypatch.setattr(hubs, "BEACON_INTERVAL", 3600.0)


@pytest_asyncio.fixture
async def second_hub(node: TestNode) -> AsyncIterator[Hub]:
    """The live stream of another web process, on the same channel layer."""
    hub = Hub()
    await hub.start()
    yield hub
    await hub.stop()


@pytest.fixture
def translated(tmp_path: Path, settings: Settings) -> None:
    """Catalogs of some sentences, which replace Parley's own."""
    write_catalog(tmp_path, "zh-hans", SENTENCES)
    write_catalog(tmp_path, "zh-hant", {english: f"繁{words}" for english, words in SENTENCES.items()})
    settings.LOCALE_PATHS = [tmp_path]
