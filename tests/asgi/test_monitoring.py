"""The port of metrics and probes."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from datetime import timedelta

import aiohttp
import pytest
import pytest_asyncio
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families as parse
from pytest_django.fixtures import Settings

from agents.errors import Overloaded
from agents.events import Usage
from agents.providers.scripted import Gate
from chat import metrics
from chat.asgi import health as module
from chat.asgi import monitoring
from chat.asgi.health import Health
from chat.asgi.monitoring import Monitor, MonitoringError
from chat.models import ChatMessage, SessionRun, User, Worker
from config.logs import RefusedRequests
from tests.support.testing_node import TestNode

Figures = dict[tuple[str, ...], float]
PATIENCE = 20.0


@pytest_asyncio.fixture
async def monitor(node: TestNode) -> AsyncIterator[Monitor]:
    health = Health()
    health.state = "running"
    monitor = Monitor(health)
    await monitor.start("127.0.0.1", 0)
    yield monitor
    await monitor.stop()
    await health.close()


async def get(monitor: Monitor, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{monitor.port}{path}") as response:
        return response.status, await response.text()


async def figures(monitor: Monitor) -> Figures:
    """Return the figures by name and the values of the labels, in the order of the labels' names."""
    status, text = await get(monitor, "/metrics")
    assert status == 200
    samples = [sample for family in parse(text) for sample in family.samples]
    return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


async def test_turn_is_counted(node: TestNode, monitor: Monitor, ana: User) -> None:
    """OPS-02: the metrics have running, waiting and ended turns, and their tokens."""
    before = await figures(monitor)
    gate = Gate()
    node.script([["One", gate, " two.", Usage(30, 7, cache_read_tokens=20)]])
    session = await node.session(ana)
    await node.send(session, ana, "Count")
    await gate.reached()
    await node.until(ChatMessage.objects.filter(session=session, text="One").exists)  # one flush; the end is another
    during = await figures(monitor)
    gate.open()
    await node.idle(session)
    after = await figures(monitor)
    flushes = ("parley_flush_seconds_count",)
    async with asyncio.timeout(PATIENCE):  # the last write is counted shortly after its rows can be read
        while after[flushes] - before.get(flushes, 0) < 2:
            after = await figures(monitor)

    def grown(*name: str) -> float:
        return after[name] - before.get(name, 0)

    assert during[("parley_streams",)] == 1
    assert 0 <= during[("parley_lease_age_seconds",)] < 60
    assert (after[("parley_queue_sessions",)], after[("parley_queue_age_seconds",)]) == (0, 0)
    assert after[("parley_workers",)] == 1
    assert [grown(f"parley_{name}_total") for name in ("turns_started", "claims")] == [1, 1]
    assert grown("parley_turns_ended_total", "done") == 1
    kinds = ("input", "output", "cache_read")
    assert [grown("parley_tokens_total", kind, "one", "scripted") for kind in kinds] == [30, 7, 20]
    assert grown("parley_first_token_seconds_count", "scripted") == 1
    assert ("parley_claim_seconds_count",) in after


async def test_errors_of_providers_are_counted_by_kind(node: TestNode, monitor: Monitor, ana: User) -> None:
    """OPS-02: errors are counted by kind, so an expired key differs from a vendor's outage."""
    before = await figures(monitor)
    node.script([[Overloaded("busy", retry_after=0)], ["Done."]])
    session = await node.session(ana)
    await node.send(session, ana, "Go")
    await node.idle(session)
    name = ("parley_provider_errors_total", "overloaded", "scripted")
    assert (await figures(monitor))[name] - before.get(name, 0) == 1


async def test_queue_age_is_that_of_the_oldest_session_that_waits(
    node: TestNode, monitor: Monitor, ana: User, settings: Settings
) -> None:
    """OPS-02: the age of the queue shows unclaimed sessions, the first sign of too few workers."""
    settings.CAPACITY = 0
    before = timezone.now() - timedelta(seconds=100)
    await node.do(Worker.objects.create, id="w_dead", lease_until=before)
    for since in (before, timezone.now()):
        session = await node.session(ana)
        await node.do(SessionRun.objects.filter(pk=session.pk).update, wanted=1, due_since=since)

    found = await figures(monitor)

    assert (found[("parley_queue_sessions",)], found[("parley_workers",)]) == (2, 1)
    assert found[("parley_queue_age_seconds",)] >= 100


async def test_hanging_database_leaves_out_its_figures(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch, node: TestNode
) -> None:
    """OPS-02: if the database hangs, the other figures are still reported, because they are needed most then."""
    answers = threading.Event()
    monkeypatch.setattr(monitoring, "read_queue", answers.wait)
    monkeypatch.setattr(module, "TIME_LIMIT", 0.01)
    try:
        found = await figures(monitor)
    finally:
        answers.set()
    assert ("parley_queue_age_seconds",) not in found
    assert ("parley_streams",) in found


async def test_port_answers_probes_and_nothing_else(monitor: Monitor) -> None:
    """OPS-01: the port serves probes, because workers have no other port."""
    assert await get(monitor, "/healthz") == (200, "ok\n")
    status, text = await get(monitor, "/readyz")
    assert (status, text.splitlines()[0]) == (200, "ready")
    monitor._health.state = "stopping"
    assert (await get(monitor, "/readyz"))[0] == 503
    assert (await get(monitor, "/"))[0] == 404


async def test_invalid_request_is_one_line(monitor: Monitor, caplog: pytest.LogCaptureFixture) -> None:
    """OPS-02: clients cannot fill the log with tracebacks that quote what they have sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", monitor.port)
    writer.write(b"GET /metrics HTTP/1.1\r\nCookie: " + b"secret" * 2000 + b"\r\n\r\n")
    assert b" 400 " in await reader.readline()
    writer.close()
    [refused] = [record for record in caplog.records if record.name == "aiohttp.server"]
    assert RefusedRequests().filter(refused)
    assert (refused.levelname, refused.exc_info) == ("INFO", None)
    assert "secret" not in refused.getMessage()


async def test_taken_port_is_one_clear_error(monitor: Monitor) -> None:
    """OPS-01: a port that is in use gives one clear error, because two processes on a machine need different ports."""
    with pytest.raises(MonitoringError, match="MONITORING_PORT"):
        await Monitor(monitor._health).start("127.0.0.1", monitor.port)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
async def test_port_on_all_addresses_is_reachable_over_ipv4(node: TestNode) -> None:
    """OPS-01: with `HOST=::`, the image's health check asks 127.0.0.1."""
    monitor = Monitor(Health())
    await monitor.start("::", 0)
    assert (await get(monitor, "/healthz"))[0] == 200
    await monitor.stop()


def test_metrics_have_no_name_twice() -> None:
    names = [family.name for family in metrics.REGISTRY.collect()]
    assert len(names) == len(set(names))
