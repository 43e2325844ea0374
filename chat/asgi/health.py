"""/healthz and /readyz: probes of a process for load balancers and service managers.

They are answered before Django, at any address, without a host check or a login. `/healthz` waits for neither a thread
nor the database. Clients only learn which components work; the reasons are logged.
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
from chat.log_context import described
from chat.models import Worker
from chat.runner import runtime

logger = logging.getLogger("chat.server")
T = TypeVar("T")

LIVENESS, READINESS = "/healthz", "/readyz"
# Seconds in which a probe is answered, even if the database or Redis hangs.
TIME_LIMIT = 2.0
# Seconds for which a check is reused by the probes that follow.
CACHED_SECONDS = 1.0

State = Literal["starting", "running", "stopping"]
# The reason why each component does not work, in the order of /readyz; "" if it works, None if this is unknown.
Problems = dict[str, str | None]
SILENT = "it does not answer"


class Probe(NamedTuple):
    """The answer to a probe."""

    status: int
    text: str


class SharedCheck(Generic[T]):
    """Runs one check at a time.

    Further callers wait for the running check, so that a hanging one holds only one task.
    """

    def __init__(self, work: Callable[[], Awaitable[T]], *, if_silent: T) -> None:
        self._work = work
        self._if_silent = if_silent
        self._task: asyncio.Task[T] | None = None

    async def result(self) -> T:
        """Return the check's result, or `if_silent` after TIME_LIMIT seconds. Raise the errors of the check."""
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
        self._rows = SharedCheck(self._check_rows, if_silent=_database_problems(SILENT))
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
        """Return the reason why each component does not work now.

        `startup` and `draining` concern the process itself. The others are checked only while it runs.
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
        """Return whether the database has not answered for TIME_LIMIT seconds. An error counts as an answer."""
        return (await self._rows.result())["database"] == SILENT

    def _note(self, problems: Problems) -> None:
        found = {name: problem for name, problem in problems.items() if problem}
        if found != {name: problem for name, problem in self._problems.items() if problem}:
            reasons = "; ".join(f"{name}: {problem}" for name, problem in found.items())
            logger.warning("Not ready: %s", reasons) if found else logger.info("Ready")
        self._problems, self._checked_at = problems, time.monotonic()

    async def _check_rows(self) -> Problems:
        try:
            return await self.threads.run(_problems_of_rows, runtime.worker_id())
        except Exception as error:  # of any kind: the process cannot serve
            return _database_problems(f"it cannot be used: {error!r}")


async def _check_layer() -> Problems:
    try:
        # A dead connection would hold the layer's lock, which is needed to connect again.
        async with asyncio.timeout(SEND_TIMEOUT):
            await layer().group_send("readiness", {"type": "readiness"})
    except Exception as error:  # the layer's library can raise any error
        return {"layer": f"it cannot be used: {described(error)}"}
    return {"layer": ""}


def _problems_of_rows(worker_id: str | None) -> Problems:
    """Check the database. `worker_id` is the id of the runner's worker, or None in a process without one."""
    missing = schema.missing_migrations()
    problems: Problems = {"database": "", "migrations": f"{len(missing)} have not been applied" if missing else ""}
    if worker_id is None:
        return {**problems, "lease": ""}
    if missing:  # the table may lack columns
        return {**problems, "lease": None}
    has_lease = Worker.objects.filter(pk=worker_id, lease_until__gt=Now()).exists()
    return {**problems, "lease": "" if has_lease else "the runner has none"}


def _database_problems(problem: str) -> Problems:
    """Return the problems of a database that does not work. The state of its contents is unknown."""
    return {"database": problem, "migrations": None, "lease": None}


def _line(component: tuple[str, str | None]) -> str:
    name, problem = component
    return f"{name} {'unknown' if problem is None else 'not ok' if problem else 'ok'}"
