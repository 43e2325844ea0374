"""`manage.py runagents`: a worker process, which runs agents and serves no pages."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from chat.asgi.health import Health
from chat.asgi.monitoring import Monitor, MonitoringError
from chat.management.startup import check_configuration, prepare_database
from chat.runner import runtime
from config import service_manager
from config.descriptors import raise_descriptor_limit
from config.warm_up import warm_up

# Seconds. Runs that cannot be released in this time are taken over by other workers, as after a crash.
STOP_SECONDS = 5.0


class Command(BaseCommand):
    help = "Run the agents of sessions, separately from web processes, which have RUNNER=none."
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django's declaration; handle() runs the checks

    def handle(self, *args: Any, **options: Any) -> None:
        raise_descriptor_limit()
        check_configuration(self.stderr.write)
        prepare_database(self._report)
        with suppress(KeyboardInterrupt):
            asyncio.run(self._run())

    def _report(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    async def _run(self) -> None:
        """Run until SIGTERM or SIGINT, then drain. A second signal ends the draining."""
        loop, stops = asyncio.get_running_loop(), asyncio.Queue[None]()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stops.put_nowait, None)
        health = Health()
        monitor = Monitor(health)
        if settings.MONITORING_PORT:
            await self._monitor(monitor)
        await runtime.start(serves=False, runs=True)
        health.state = "running"
        settling = loop.run_in_executor(None, warm_up)
        self._report(f"Worker {runtime.worker_id()} is ready")
        watchdog = await service_manager.ready()
        await stops.get()
        health.state = "stopping"
        service_manager.stopping()
        await asyncio.wait([settling])
        draining = loop.create_task(runtime.drain())
        again = loop.create_task(stops.get())
        await asyncio.wait([draining, again], return_when=asyncio.FIRST_COMPLETED)
        for task in (draining, again):
            task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await runtime.stop()
                await health.close()
                await monitor.stop()
        if watchdog is not None:
            watchdog.cancel()

    async def _monitor(self, monitor: Monitor) -> None:
        try:
            await monitor.start(settings.MONITORING_HOST, settings.MONITORING_PORT)
        except MonitoringError as error:
            raise SystemExit(f"Parley cannot start: {error}") from error
