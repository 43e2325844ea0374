"""/metrics for Prometheus, and the probes, on a separate port, for web processes and workers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from django.conf import settings
from django.db.models import Count, Min
from django.db.models.functions import Now
from django.utils import timezone
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from chat import metrics
from chat.asgi.health import LIVENESS, READINESS, Health, SharedCheck
from chat.bus.publisher import publisher
from chat.models import SessionRun, Worker
from chat.runner import runtime
from chat.runs.lease import DUE
from config.listening import listen

if TYPE_CHECKING:
    from aiohttp import web

logger = logging.getLogger("chat.server")

# Seconds between two measurements of the event loop's lag.
LAG_INTERVAL = 0.5


class MonitoringError(Exception):
    """The port cannot be used. The message contains the reason."""


class Queue(NamedTuple):
    """The number of waiting sessions, the seconds for which the oldest has waited, and the number of live workers."""

    waiting: int
    oldest: float
    workers: int


class Monitor:
    """Serves the metrics and the probes of one process."""

    def __init__(self, health: Health) -> None:
        self.port = 0
        self._health = health
        self._queue: SharedCheck[Queue | None] = SharedCheck(self._read_queue, if_silent=None)
        self._server: web.AppRunner | None = None
        self._lag: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int) -> None:
        """Serve on an address. Port 0 means any free port. Raise MonitoringError."""
        from aiohttp import web  # imported here, because many servers do not use it

        application = web.Application()
        application.router.add_get("/metrics", self._show_metrics)
        for path in (LIVENESS, READINESS):
            application.router.add_get(path, self._answer_probe)
        server = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await server.setup()
        try:
            # asyncio would listen on `::` for IPv6 only, and `listen` on only one of the addresses of a name.
            site = web.SockSite(server, listen(host, port)) if host == "::" else web.TCPSite(server, host, port)
            await site.start()
        except OSError as error:
            await server.cleanup()
            raise MonitoringError(
                f"it cannot listen on {host}:{port}: {error.strerror}. Set MONITORING_HOST and MONITORING_PORT to an "
                "address that is free."
            ) from error
        self.port = server.addresses[0][1]
        self._server = server
        self._lag = asyncio.get_running_loop().create_task(_measure_lag())

    async def stop(self) -> None:
        if self._lag is not None:
            self._lag.cancel()
        if self._server is not None:
            await self._server.cleanup()

    async def _answer_probe(self, request: web.Request) -> web.Response:
        from aiohttp import web

        probe = await self._health.probe(request.path)
        return web.Response(text=probe.text, status=probe.status, headers={"Cache-Control": "no-store"})

    async def _show_metrics(self, request: web.Request) -> web.Response:
        from aiohttp import web

        registry = CollectorRegistry()
        registry.register(_Gauges(await self._queue.result() if self._health.state == "running" else None))
        body = generate_latest(metrics.REGISTRY) + generate_latest(registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _read_queue(self) -> Queue | None:
        try:
            return await self._health.threads.run(read_queue)
        except Exception as error:  # of any kind: still show the other metrics
            logger.warning("Could not read metrics from the database: %r", error)
            return None


class _Gauges(Collector):
    """Metrics that are read when they are requested. Without a `queue`, those of the database are left out."""

    def __init__(self, queue: Queue | None) -> None:
        self._queue = queue

    def collect(self) -> Iterator[GaugeMetricFamily]:
        figures = runtime.figures()
        if figures.lease_age is not None:
            yield _gauge("parley_streams", "Sessions whose agent runs in this process.", figures.running)
            yield _gauge(
                "parley_capacity", "The maximum number of sessions that this process runs at once.", settings.CAPACITY
            )
            yield _gauge("parley_lease_age_seconds", "Time since this worker renewed its lease.", figures.lease_age)
        sockets = GaugeMetricFamily("parley_sockets", "Open sockets and event streams, by kind.", labels=["kind"])
        for kind, count in figures.subscribers.items():
            sockets.add_metric([kind], count)
        yield sockets
        yield _gauge("parley_watched_sessions", "Sessions that users are viewing in this process.", figures.feeds)
        yield _gauge("parley_publish_queue", "Live events that are waiting for the channel layer.", publisher.waiting)
        if self._queue is not None:
            yield _gauge("parley_queue_sessions", "Sessions that are waiting for a worker.", self._queue.waiting)
            yield _gauge(
                "parley_queue_age_seconds", "How long the oldest waiting session has waited.", self._queue.oldest
            )
            yield _gauge("parley_workers", "Workers with a valid lease.", self._queue.workers)


def read_queue() -> Queue:
    """Read the queue of due sessions, through an index that contains only these."""
    found = SessionRun.objects.filter(DUE).aggregate(count=Count("pk"), since=Min("due_since"))
    waited = timezone.now() - found["since"] if found["since"] else timedelta()
    workers = Worker.objects.filter(lease_until__gt=Now()).count()
    return Queue(found["count"], max(0.0, waited.total_seconds()), workers)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value)


async def _measure_lag() -> None:
    while True:
        began = time.monotonic()
        await asyncio.sleep(LAG_INTERVAL)
        metrics.loop_lag_seconds.observe(max(0.0, time.monotonic() - began - LAG_INTERVAL))
