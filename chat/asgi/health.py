"""/healthz and /readyz: what a load balancer or a service manager asks a process.

They are answered before Django: by any address and without a host check, a login, a thread or a database that
`/healthz` would have to wait for. Strangers learn which components can be used, and no more; reasons are logged.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Generic, Literal, NamedTuple, TypeVar

from django.db.models.functions import Now
from django.http import HttpResponse

from chat import schema
from chat.asgi.refusals import Scope, Send, send_response
from chat.bus.publisher import SEND_TIMEOUT, layer
from chat.db import Threads
from chat.models import Worker
from chat.runner import runtime

logger = logging.getLogger("chat.server")
T = TypeVar("T")

LIVENESS, READINESS = "/healthz", "/readyz"
# A probe is answered within this time, whatever the database and Redis do.
TIME_LIMIT = 2.0
# Probes that come in quick succession share one check.
CACHED_SECONDS = 1.0

State = Literal["starting", "running", "stopping"]
# Why each component cannot be used, in the order of /readyz; "" if it can, None if another one hides it.
Problems = dict[str, str | None]
SILENT = "it does not answer"


class Probe(NamedTuple):
    """The answer to a probe."""

    status: int
    text: str


class SharedCheck(Generic[T]):
    """Runs one check at a time. Others that ask while it runs join it: what hangs holds one task, however many ask."""

    def __init__(self, work: Callable[[], Awaitable[T]], *, if_silent: T) -> None:
        self._work = work
        self._if_silent = if_silent
        self._task: asyncio.Task[T] | None = None

    async def result(self) -> T:
        """Return the check's result; `if_silent` if it has none within TIME_LIMIT. Raises what the check raises."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        done, _waiting = await asyncio.wait([self._task], timeout=TIME_LIMIT)
        return done.pop().result() if done else self._if_silent

    async def _run(self) -> T:
        try:
            return await self._work()
        finally:
            self._task = None


class Health:
    """Answers the probes of one process."""

    def __init__(self) -> None:
        self.state: State = "starting"
        self.threads = Threads(1, "parley-health")
        self._rows = SharedCheck(self._check_rows, if_silent=_rows_are_away(SILENT))
        self._layer: SharedCheck[Problems] = SharedCheck(_check_layer, if_silent={"layer": SILENT})
        self._problems: Problems = {}
        self._checked_at = -CACHED_SECONDS

    async def close(self) -> None:
        """End the thread."""
        await self.threads.close()

    def is_probe(self, scope: Scope) -> bool:
        return scope["type"] == "http" and scope["path"] in (LIVENESS, READINESS)

    async def answer(self, scope: Scope, send: Send) -> None:
        if scope["method"] in ("GET", "HEAD"):
            probe = await self.probe(scope["path"])
        else:
            probe = Probe(405, "method not allowed\n")
        response = HttpResponse(probe.text, status=probe.status, content_type="text/plain; charset=utf-8")
        response["Content-Length"] = str(len(response.content))
        response["Cache-Control"] = "no-store"
        if probe.status == 405:
            response["Allow"] = "GET, HEAD"
        if scope["method"] == "HEAD":
            response.content = b""
        await send_response(send, response)

    async def probe(self, path: str) -> Probe:
        """Answer LIVENESS or READINESS."""
        if path == LIVENESS:
            return Probe(200, "ok\n")
        problems = await self.problems()
        is_ready = not any(problems.values())
        lines = ["ready" if is_ready else "not ready", *map(_line, problems.items())]
        return Probe(200 if is_ready else 503, "".join(f"{line}\n" for line in lines))

    async def problems(self) -> Problems:
        """Return why each component cannot be used now.

        `startup` and `draining` are the process itself. The others are looked at only while it runs.
        """
        of_process: Problems = {
            "startup": "the process has not started yet" if self.state == "starting" else "",
            "draining": "the process is stopping" if self.state == "stopping" else "",
        }
        if self.state != "running":
            return of_process
        if time.monotonic() - self._checked_at >= CACHED_SECONDS:
            rows, of_layer = await asyncio.gather(self._rows.result(), self._layer.result())
            self._note({**rows, **of_layer})
        return {**of_process, **self._problems}

    async def is_database_silent(self) -> bool:
        """Return whether the database has not answered for TIME_LIMIT. One that is away or full answers: an error."""
        return (await self._rows.result())["database"] == SILENT

    def _note(self, problems: Problems) -> None:
        found = {name: problem for name, problem in problems.items() if problem}
        if found != {name: problem for name, problem in self._problems.items() if problem}:
            reasons = "; ".join(f"{name}: {problem}" for name, problem in found.items())
            logger.info("Not ready: %s", reasons) if found else logger.info("Ready")
        self._problems, self._checked_at = problems, time.monotonic()

    async def _check_rows(self) -> Problems:
        try:
            return await self.threads.run(_problems_of_rows, runtime.worker_id())
        except Exception as error:  # of whatever kind: the process cannot serve
            return _rows_are_away(f"it cannot be used: {error!r}")


async def _check_layer() -> Problems:
    try:
        # A dead connection would hold the layer's lock, which whatever connects again needs.
        async with asyncio.timeout(SEND_TIMEOUT):
            await layer().group_send("readiness", {"type": "readiness"})
    except Exception as error:  # of whatever kind the layer's library raises
        return {"layer": f"it cannot be used: {error!r}"}
    return {"layer": ""}


def _problems_of_rows(worker_id: str | None) -> Problems:
    """Look at the database. `worker_id` is the runner's, None in a process without one."""
    missing = schema.missing_migrations()
    problems: Problems = {"database": "", "migrations": f"{len(missing)} have not been applied" if missing else ""}
    if worker_id is None:
        return problems
    if missing:  # the table may lack columns
        return {**problems, "lease": None}
    has_lease = Worker.objects.filter(pk=worker_id, lease_until__gt=Now()).exists()
    return {**problems, "lease": "" if has_lease else "the runner has none"}


def _rows_are_away(problem: str) -> Problems:
    """Return the problems of a database that cannot be used, which hides what is in it."""
    return {"database": problem, "migrations": None, "lease": None}


def _line(component: tuple[str, str | None]) -> str:
    name, problem = component
    return f"{name} {'unknown' if problem is None else 'not ok' if problem else 'ok'}"
