"""What lives in a server process besides its pages: the publisher, the hub and, unless others run agents, a runner."""

from __future__ import annotations

import asyncio
import logging
import threading
from dataclasses import dataclass, field

from django.conf import settings
from django.contrib.auth.signals import user_logged_out
from django.http import HttpRequest

from chat.agents_setup import registry, reset
from chat.bus.publisher import publisher, sign_out
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
    """Looks every minute for maintenance that is due, in a thread of its own."""

    def __init__(self) -> None:
        self._threads = Threads(1, "parley-maintenance")
        self._stopping = threading.Event()
        self._task = asyncio.get_running_loop().create_task(self._run_forever())

    async def stop(self) -> None:
        """Stop after the batch that is being worked on; the next start continues."""
        self._stopping.set()
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._threads.close()

    async def _run_forever(self) -> None:
        while True:
            await asyncio.sleep(MAINTENANCE_INTERVAL)
            try:
                await self._threads.run(jobs.run, Deadline(stopping=self._stopping))
            except Exception as error:  # most likely the database is away; the next round may do better
                logger.warning("Maintenance failed: %r", error)


@dataclass(slots=True)
class Runtime:
    hub: Hub
    runner: Runner | None
    tasks: list[asyncio.Task[None]]
    maintenance: Maintenance = field(default_factory=Maintenance)


_node: Runtime | None = None


async def start() -> None:
    """Start everything on the running event loop. Raises RuntimeError when it is running already."""
    global _node
    if _node is not None:
        raise RuntimeError("this process is running already")
    publisher.open()
    hub = Hub()
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(_list_models_forever())]
    _node = Runtime(hub, Runner() if settings.RUNNER == "embedded" else None, tasks)
    try:
        await _node.hub.start()
        if _node.runner is not None:
            await _node.runner.start()
    except BaseException:
        for task in tasks:
            task.cancel()
        await _node.maintenance.stop()
        await _node.hub.stop()
        _node = None
        raise
    user_logged_out.connect(_signed_out)


async def stop() -> None:
    """Stop everything. Running sessions are released for the next worker."""
    global _node
    node, _node = _node, None
    if node is None:
        return
    user_logged_out.disconnect(_signed_out)
    for task in node.tasks:
        task.cancel()
    await asyncio.wait(node.tasks)
    await node.maintenance.stop()
    if node.runner is not None:
        await node.runner.stop()
    await publisher.close()
    await node.hub.stop()
    await registry().close()
    reset()


def hub() -> Hub:
    """The hub of this process. Raises RuntimeError before `start`."""
    if _node is None:
        raise RuntimeError("the live stream has not been started in this process")
    return _node.hub


def may_stream(user_id: int) -> bool:
    """Return whether a user may open one more stream or waiting request here. Any thread may ask."""
    return _node is None or _node.hub.may_stream(user_id)


def worker_id() -> str | None:
    """Return the id of this process's worker; None where other processes run the agents."""
    return _node.runner.worker_id if _node is not None and _node.runner is not None else None


def end_streams() -> None:
    """End the answers that never do, so that a server which is about to stop need not wait for them."""
    if _node is not None:
        _node.hub.end_streams()


async def _list_models_forever() -> None:
    """Keep the models that the pages offer fresh; the registry asks only when it is time."""
    while True:
        await registry().models()
        await asyncio.sleep(LIST_INTERVAL)


def _signed_out(request: HttpRequest, **_: object) -> None:
    if request.session.session_key:
        sign_out(hash_key(request.session.session_key))
