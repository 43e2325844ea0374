"""/healthz and /readyz: what a load balancer or a service manager asks a process.

They are answered before Django: by any address and without a host check, a login, a thread or a database that
`/healthz` would have to wait for. Strangers learn no more than yes or no; the reason is logged.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Literal

from django.db.models.functions import Now
from django.http import HttpResponse

from chat import schema
from chat.asgi.refusals import Scope, Send, send_response
from chat.bus.publisher import layer
from chat.db import Threads
from chat.models import Worker
from chat.runner import runtime

logger = logging.getLogger("chat.server")

LIVENESS, READINESS = "/healthz", "/readyz"
# A probe is answered within this time, whatever the database and Redis do.
TIME_LIMIT = 2.0
# Probes that come in quick succession share one check.
CACHED_SECONDS = 1.0

State = Literal["starting", "running", "stopping"]


class Health:
    """Answers the probes of one process."""

    def __init__(self) -> None:
        self.state: State = "starting"
        self._threads = Threads(1, "parley-health")
        self._check: asyncio.Task[str] | None = None
        self._problem = ""
        self._checked_at = -CACHED_SECONDS

    async def close(self) -> None:
        """End the thread."""
        await self._threads.close()

    def is_probe(self, scope: Scope) -> bool:
        return scope["type"] == "http" and scope["path"] in (LIVENESS, READINESS)

    async def answer(self, scope: Scope, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            status, body = 405, "method not allowed"
        elif scope["path"] == LIVENESS:
            status, body = 200, "ok"
        else:
            status, body = (503, "not ready") if await self.problem() else (200, "ready")
        response = HttpResponse(f"{body}\n", status=status, content_type="text/plain; charset=utf-8")
        response["Content-Length"] = str(len(response.content))
        response["Cache-Control"] = "no-store"
        if status == 405:
            response["Allow"] = "GET, HEAD"
        if scope["method"] == "HEAD":
            response.content = b""
        await send_response(send, response)

    async def problem(self) -> str:
        """Return why this process cannot serve now; "" if it can."""
        if self.state != "running":
            return self.state
        if time.monotonic() - self._checked_at >= CACHED_SECONDS:
            self._note(await self._within_time_limit())
        return self._problem

    def _note(self, problem: str) -> None:
        if problem != self._problem:
            logger.info("Not ready: %s", problem) if problem else logger.info("Ready")
        self._problem, self._checked_at = problem, time.monotonic()

    async def _within_time_limit(self) -> str:
        """Check, or join the check that is still waiting: a hanging database holds one thread, however many ask."""
        if self._check is None:
            self._check = asyncio.get_running_loop().create_task(self._look())
            self._check.add_done_callback(self._checked)
        done, _waiting = await asyncio.wait([self._check], timeout=TIME_LIMIT)
        return done.pop().result() if done else "the database or the channel layer does not answer"

    def _checked(self, task: asyncio.Task[str]) -> None:
        self._check = None

    async def _look(self) -> str:
        try:
            problem = await self._threads.run(_problem_of_rows, runtime.worker_id())
        except Exception as error:  # of whatever kind: the process cannot serve
            return f"the database cannot be used: {error!r}"
        if problem:
            return problem
        try:
            await layer().group_send("readiness", {"type": "readiness"})
        except Exception as error:  # of whatever kind the layer's library raises
            return f"the channel layer cannot be used: {error!r}"
        return ""


def _problem_of_rows(worker_id: str | None) -> str:
    """Look at the database. `worker_id` is the runner's, None in a process without one."""
    if missing := schema.missing_migrations():
        return f"{len(missing)} migrations have not been applied"
    if worker_id is not None and not Worker.objects.filter(pk=worker_id, lease_until__gt=Now()).exists():
        return "the runner has no lease"
    return ""
