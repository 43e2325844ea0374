"""The answers to load balancers and service managers."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from django.utils import timezone

from chat import schema
from chat.asgi import health as module
from chat.asgi.health import Health
from chat.bus.memory_layer import MemoryLayer
from chat.models import Worker
from chat.runner import runtime
from chat.runs import lease
from tests.support.testing_node import TestNode

Answer = tuple[int, str, dict[str, str]]


@pytest_asyncio.fixture
async def health(node: TestNode) -> AsyncIterator[Health]:
    health = Health()
    health.state = "running"
    yield health
    await health.close()


async def ask(health: Health, path: str, method: str = "GET") -> Answer:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "path": path, "method": method, "headers": [(b"host", b"10.0.0.7")]}
    assert health.is_probe(scope)
    await health.answer(scope, send)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], sent[1]["body"].decode(), headers


READY = "ready\nstartup ok\ndraining ok\ndatabase ok\nmigrations ok\nlease ok\nlayer ok\n"


async def found(health: Health) -> dict[str, str]:
    return {name: problem for name, problem in (await health.problems()).items() if problem}


async def test_process_that_serves_is_alive_and_ready(health: Health) -> None:
    """OPS-01: load balancers and service managers get the state without signing in."""
    status, body, headers = await ask(health, "/readyz")

    assert (status, body, headers["cache-control"]) == (200, READY, "no-store")
    assert (await ask(health, "/healthz"))[:2] == (200, "ok\n")
    status, body, headers = await ask(health, "/readyz", "HEAD")
    assert (status, body, headers["content-length"]) == (200, "", str(len(READY)))
    assert (await ask(health, "/readyz", "POST"))[0] == 405


@pytest.mark.parametrize(
    ("state", "component"), [("starting", "startup not ok\ndraining ok"), ("stopping", "startup ok\ndraining not ok")]
)
async def test_process_that_starts_or_stops_is_alive_but_not_ready(health: Health, state: Any, component: str) -> None:
    assert not any((await health.problems()).values())
    health.state = state

    assert (await ask(health, "/readyz"))[:2] == (503, f"not ready\n{component}\n")
    assert (await ask(health, "/healthz"))[0] == 200


async def test_process_without_a_worker_has_an_ok_lease(health: Health, monkeypatch: pytest.MonkeyPatch) -> None:
    """Monitoring can read the same lines from web processes and workers."""
    monkeypatch.setattr(runtime, "worker_id", lambda: None)

    assert (await ask(health, "/readyz"))[:2] == (200, READY)


async def test_runner_without_a_lease_is_not_ready(health: Health, node: TestNode) -> None:
    await node.do(Worker.objects.all().delete)

    assert await found(health) == {"lease": "the runner has none"}


async def test_runner_whose_lease_has_run_out_is_not_ready(
    health: Health, node: TestNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "renew", lambda worker_id: True)  # a heartbeat that does not reach the database
    past = timezone.now() - timedelta(seconds=1)
    await node.do(Worker.objects.update, lease_until=past)

    assert await found(health) == {"lease": "the runner has none"}


async def test_database_of_an_older_version_is_not_ready(health: Health, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "known_migrations", lambda: frozenset({("chat", "9999_next")}))

    assert await found(health) == {"migrations": "1 have not been applied"}
    assert (await ask(health, "/readyz"))[1].splitlines()[3:] == [
        "database ok",
        "migrations not ok",
        "lease unknown",
        "layer ok",
    ]


async def test_broken_layer_is_not_ready_and_only_the_log_says_why(
    health: Health, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """OPS-01: the probe does not show internal addresses and errors to strangers."""

    async def broken(layer: MemoryLayer, group: str, message: object) -> None:
        raise ConnectionError("redis.internal refused")

    monkeypatch.setattr(MemoryLayer, "group_send", broken)

    with caplog.at_level("WARNING", "chat.server"):
        status, body, _headers = await ask(health, "/readyz")
    assert (status, body) == (503, READY.replace("ready", "not ready").replace("layer ok", "layer not ok"))
    assert "redis.internal refused" in caplog.text


async def test_hanging_database_holds_one_thread_and_no_probe(health: Health, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-01: each of many probes is answered in time, and only the first check waits for the database."""
    checks: list[int] = []
    answers = threading.Event()

    def hanging(worker_id: str | None) -> module.Problems:
        checks.append(1)
        answers.wait()
        return {"database": "", "migrations": "", "lease": ""}

    monkeypatch.setattr(module, "_problems_of_rows", hanging)
    monkeypatch.setattr(module, "TIME_LIMIT", 0.01)
    monkeypatch.setattr(module, "CACHED_SECONDS", 0.0)
    try:
        assert [(await ask(health, "/readyz"))[0] for _ in range(3)] == [503, 503, 503]
        assert (await ask(health, "/readyz"))[1].splitlines()[3:] == [
            "database not ok",
            "migrations unknown",
            "lease unknown",
            "layer ok",
        ]
        assert (await ask(health, "/healthz"))[0] == 200
        assert len(checks) == 1
    finally:
        answers.set()
    monkeypatch.setattr(module, "TIME_LIMIT", 20.0)
    assert (await ask(health, "/readyz"))[0] == 200
