"""The background services of a server process: publisher, hub, maintenance, webhooks and, if embedded, a runner."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from django.conf import settings
from django.contrib.auth.signals import user_logged_out
from django.http import HttpRequest

from chat.agents_setup import registry, reset
from chat.bus import wakeups
from chat.bus.publisher import notify_login_ended, publisher
from chat.db import Threads
from chat.live.hub import Hub
from chat.runner.mcp_tokens import TokenStore
from chat.runner.runner import Runner
from chat.runner.tracing import close_tracing, open_tracing
from chat.runner.turn_metrics import create_series
from chat.runner.webhook_deliverer import WebhookDeliverer
from chat.security.session_store import hash_key
from chat.services.batches import Deadline
from chat.services.maintenance import jobs, scheduled_runs

logger = logging.getLogger(__name__)

LIST_INTERVAL = 60.0
# The number of threads for blocking calls of libraries, such as lookups of host names. A lookup blocks its thread for
# up to half a minute if a name server does not answer. Python's default is six threads on two cores, so a few such
# addresses of webhooks would block all other lookups of the process.
BLOCKING_THREADS = 64
MAINTENANCE_INTERVAL = 60.0
# The seconds for a statement of the maintenance jobs, unless STATEMENT_SECONDS is longer. No one waits for them, and
# with the limit of requests, an erasure could fail in each round.
MAINTENANCE_SECONDS = 300


class Maintenance:
    """Runs due maintenance jobs once a minute, and starts schedules when they are due.

    Jobs and schedules have one thread each, because a job can take minutes.
    """

    def __init__(self) -> None:
        seconds = settings.STATEMENT_SECONDS and max(MAINTENANCE_SECONDS, settings.STATEMENT_SECONDS)
        self._threads = Threads(1, "parley-maintenance", limits={"statement_timeout": int(seconds * 1000)})
        self._starts = Threads(1, "parley-schedules")
        self._stopping = threading.Event()
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._run_forever()), loop.create_task(self._start_forever())]

    async def stop(self) -> None:
        """Stop after the current batch, or within a statement of PostgreSQL. The next process continues the job."""
        self._stopping.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await self._threads.cancel()
        await self._threads.close()
        await self._starts.close()

    async def _run_forever(self) -> None:
        while True:
            await asyncio.sleep(MAINTENANCE_INTERVAL)
            try:
                await self._threads.run(jobs.run, Deadline(stopping=self._stopping))
            except Exception as error:  # usually the database is unavailable; the next round tries again
                logger.warning("Maintenance failed: %r", error)

    async def _start_forever(self) -> None:
        wait = scheduled_runs.INTERVAL
        while True:
            await asyncio.sleep(wait)
            try:
                deadline = Deadline(stopping=self._stopping)
                wait = await self._starts.run(scheduled_runs.check_schedules, deadline=deadline)
            except Exception as error:  # likewise
                wait = scheduled_runs.INTERVAL
                logger.warning("Could not check for due schedules: %r", error)


@dataclass(slots=True)
class Runtime:
    hub: Hub | None
    runner: Runner | None
    tasks: list[asyncio.Task[None]]
    token_store: TokenStore
    maintenance: Maintenance = field(default_factory=Maintenance)
    webhooks: WebhookDeliverer = field(default_factory=WebhookDeliverer)


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of this process for the metrics. `lease_age` is in seconds, or None without a runner that has a lease."""

    running: int = 0
    lease_age: float | None = None
    subscribers: Mapping[str, int] = field(default_factory=dict)
    feeds: int = 0


_runtime: Runtime | None = None


async def start(*, serves: bool = True, runs: bool | None = None) -> None:
    """Start services on the running loop: with `serves` those for clients, with `runs` those that run agents.

    If `runs` is None, the setting RUNNER decides. Raise RuntimeError if the services are already running.
    """
    global _runtime
    if _runtime is not None:
        raise RuntimeError("this process is running already")
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(BLOCKING_THREADS, "parley-blocking"))
    publisher.open()
    wakeups.open_sender()
    open_tracing()
    token_store = TokenStore()
    registry().servers.open(token_store.of)
    tasks = [loop.create_task(_list_models_forever())]
    runs = settings.RUNNER == "embedded" if runs is None else runs
    if runs:
        create_series(registry().provider_names)
    _runtime = Runtime(Hub() if serves else None, Runner() if runs else None, tasks, token_store)
    try:
        if _runtime.hub is not None:
            await _runtime.hub.start()
        if _runtime.runner is not None:
            await _runtime.runner.start()
    except BaseException:
        for task in tasks:
            task.cancel()
        await _runtime.maintenance.stop()
        await _runtime.webhooks.stop()
        await wakeups.close_sender()
        if _runtime.hub is not None:
            await _runtime.hub.stop()
        _runtime = None
        raise
    user_logged_out.connect(_on_logged_out)


async def drain() -> None:
    """Let running turns end or move to other workers, for up to GRACE_SECONDS. Claim no other session."""
    if _runtime is None or _runtime.runner is None or not settings.GRACE_SECONDS:
        return
    if running := _runtime.runner.running:
        turns = "one running turn" if running == 1 else f"{running} running turns"
        logger.info("Waiting up to %s seconds for %s to end", settings.GRACE_SECONDS, turns)
    await _runtime.runner.drain(settings.GRACE_SECONDS)


async def stop() -> None:
    """Stop the services. Release running sessions for the next worker."""
    global _runtime
    running, _runtime = _runtime, None
    if running is None:
        return
    user_logged_out.disconnect(_on_logged_out)
    for task in running.tasks:
        task.cancel()
    await asyncio.wait(running.tasks)
    if running.runner is not None:
        await running.runner.stop()
    await running.maintenance.stop()
    await running.webhooks.stop()
    await close_tracing()
    await publisher.close()
    await wakeups.close_sender()
    if running.hub is not None:
        await running.hub.stop()
    await registry().close()
    await running.token_store.close()
    reset()


def hub() -> Hub:
    """Return the hub of this process. Raise RuntimeError before `start`."""
    if _runtime is None or _runtime.hub is None:
        raise RuntimeError("the live stream has not been started in this process")
    return _runtime.hub


def may_stream(user_id: int) -> bool:
    """Return whether a user may open another stream or waiting request in this process.

    Can be called from any thread.
    """
    return _runtime is None or _runtime.hub is None or _runtime.hub.may_stream(user_id)


def worker_id() -> str | None:
    """Return the id of this process's worker; return None if other processes run the agents."""
    return _runtime.runner.worker_id if _runtime is not None and _runtime.runner is not None else None


def figures() -> Figures:
    """Return the current figures of this process."""
    if _runtime is None:
        return Figures()
    runner, hub = _runtime.runner, _runtime.hub
    return Figures(
        running=runner.running if runner is not None else 0,
        lease_age=runner.lease_age if runner is not None else None,
        subscribers=hub.counts() if hub is not None else {},
        feeds=hub.watched if hub is not None else 0,
    )


def end_streams() -> None:
    """End HTTP responses that have no end, so that a stopping server does not wait for them."""
    if _runtime is not None and _runtime.hub is not None:
        _runtime.hub.end_streams()


async def _list_models_forever() -> None:
    """Keep the model list up to date. The registry decides when to query the providers."""
    while True:
        await registry().models()
        await asyncio.sleep(LIST_INTERVAL)


def _on_logged_out(request: HttpRequest, **_: object) -> None:
    if request.session.session_key:
        notify_login_ended(hash_key(request.session.session_key))
