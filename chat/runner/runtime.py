"""Background services of a server process: the publisher, the hub, maintenance and, if embedded, a runner."""

from __future__ import annotations

import asyncio
import logging
import threading
from dataclasses import dataclass, field

from django.conf import settings
from django.contrib.auth.signals import user_logged_out
from django.http import HttpRequest

from chat.agents_setup import registry, reset
from chat.bus.publisher import notify_login_ended, publisher
from chat.db import Threads
from chat.live.hub import Hub
from chat.runner.runner import Runner
from chat.security.session_store import hash_key
from chat.services.batches import Deadline
from chat.services.maintenance import jobs

logger = logging.getLogger(__name__)

LIST_INTERVAL = 60.0
MAINTENANCE_INTERVAL = 60.0


class Maintenance:
    """Runs maintenance jobs that are due, once a minute, in a thread of its own."""

    def __init__(self) -> None:
        self._threads = Threads(1, "parley-maintenance")
        self._stopping = threading.Event()
        self._task = asyncio.get_running_loop().create_task(self._run_forever())

    async def stop(self) -> None:
        """Stop after the current batch. The next start continues."""
        self._stopping.set()
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._threads.close()

    async def _run_forever(self) -> None:
        while True:
            await asyncio.sleep(MAINTENANCE_INTERVAL)
            try:
                await self._threads.run(jobs.run, Deadline(stopping=self._stopping))
            except Exception as error:  # usually the database is unavailable; the next round tries again
                logger.warning("Maintenance failed: %r", error)


@dataclass(slots=True)
class Runtime:
    hub: Hub
    runner: Runner | None
    tasks: list[asyncio.Task[None]]
    maintenance: Maintenance = field(default_factory=Maintenance)


_runtime: Runtime | None = None


async def start() -> None:
    """Start the services on the running event loop. Raises RuntimeError if they are running already."""
    global _runtime
    if _runtime is not None:
        raise RuntimeError("this process is running already")
    publisher.open()
    hub = Hub()
    loop = asyncio.get_running_loop()
    registry().servers.open()
    tasks = [loop.create_task(_list_models_forever())]
    _runtime = Runtime(hub, Runner() if settings.RUNNER == "embedded" else None, tasks)
    try:
        await _runtime.hub.start()
        if _runtime.runner is not None:
            await _runtime.runner.start()
    except BaseException:
        for task in tasks:
            task.cancel()
        await _runtime.maintenance.stop()
        await _runtime.hub.stop()
        _runtime = None
        raise
    user_logged_out.connect(_on_logged_out)


async def stop() -> None:
    """Stop the services. Running sessions are released for the next worker."""
    global _runtime
    running, _runtime = _runtime, None
    if running is None:
        return
    user_logged_out.disconnect(_on_logged_out)
    for task in running.tasks:
        task.cancel()
    await asyncio.wait(running.tasks)
    await running.maintenance.stop()
    if running.runner is not None:
        await running.runner.stop()
    await publisher.close()
    await running.hub.stop()
    await registry().close()
    reset()


def hub() -> Hub:
    """Return the hub of this process. Raises RuntimeError before `start`."""
    if _runtime is None:
        raise RuntimeError("the live stream has not been started in this process")
    return _runtime.hub


def may_stream(user_id: int) -> bool:
    """Return whether a user may open another stream or waiting request here. Can be called from any thread."""
    return _runtime is None or _runtime.hub.may_stream(user_id)


def worker_id() -> str | None:
    """Return the id of this process's worker; None if other processes run the agents."""
    return _runtime.runner.worker_id if _runtime is not None and _runtime.runner is not None else None


def end_streams() -> None:
    """End endless HTTP responses, so that a server that stops does not wait for them."""
    if _runtime is not None:
        _runtime.hub.end_streams()


async def _list_models_forever() -> None:
    """Keep the model list up to date. The registry decides when to ask the providers."""
    while True:
        await registry().models()
        await asyncio.sleep(LIST_INTERVAL)


def _on_logged_out(request: HttpRequest, **_: object) -> None:
    if request.session.session_key:
        notify_login_ended(hash_key(request.session.session_key))
