"""A team of web processes and workers on PostgreSQL and Redis, in which users and agents are in different processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from bench import rows
from bench.figures import both, ms, percentile, print_table
from bench.server import Server
from bench.stage import CONFIG, Stage, Stream
from bench.upstream import Upstream
from bench.viewer import open_viewer
from chat.db import Threads
from chat.models import SessionRun, Worker
from tests.support.own_postgres import OwnPostgres
from tests.support.redis import Redis

WEBS, WORKERS = 2, 3
# Tokens of an answer that does not end during the measurement.
ENDLESS = 20_000
RATE = 20
PATIENCE = 150.0
PAUSE = 0.05
ONE_BY_ONE = 60
TRIES = 5
HANGING_SECONDS = 6.0


@dataclass
class Team:
    """A stage whose server is the first web process, with the other processes and their database."""

    stage: Stage
    webs: list[Server]
    workers: list[Server]
    postgres: OwnPostgres
    threads: Threads


async def measure(postgres: OwnPostgres, counts: list[int]) -> None:
    """Print the times of a team, in milliseconds, for each number of streams."""
    for count in counts:
        async with open_team(postgres) as team:
            streams = await _stream(team, count)
            await _starts_and_stops(team, count)
            await _takeovers(team, streams)
            await _hanging(team)


@asynccontextmanager
async def open_team(postgres: OwnPostgres) -> AsyncIterator[Team]:
    """Start the upstream, Redis, web processes and workers."""
    data = Path(settings.DATA_DIR)
    owner = await asyncio.to_thread(rows.prepare)
    cookie = await asyncio.to_thread(rows.cookie, owner)
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(Upstream())
        redis = Redis(data)
        await redis.start()
        stack.callback(redis.kill)
        config = data / "config.toml"
        config.write_text(CONFIG.format(port=upstream.port))
        shared = {"REDIS_URL": redis.url, "SECRET_KEY": settings.SECRET_KEY, "GRACE_SECONDS": "0"}
        webs = [Server("uvicorn", data, config, f"web{n}", RUNNER="none", **shared) for n in range(WEBS)]
        workers = [Server("uvicorn", data, config, f"agents{n}", "runagents", **shared) for n in range(WORKERS)]
        stack.enter_context(webs[0])
        await webs[0].ready()  # the first process prepares the static files for all
        for server in (*webs[1:], *workers):
            stack.enter_context(server)
        threads = Threads(1, "bench-team")
        stack.push_async_callback(threads.close)
        stack.callback(postgres.thaw)
        for web in webs[1:]:
            await web.ready()
        await _until(threads, lambda: Worker.objects.count() == WORKERS)
        stage = Stage(webs[0], upstream, owner, cookie, "openai", "page")
        yield Team(stage, webs, workers, postgres, threads)
        await stage.leave(stage.streams)


async def _stream(team: Team, count: int) -> list[Stream]:
    """Start sessions that stream during all further measurements."""
    streams = await team.stage.watch(await team.stage.sessions(count))
    for stream in streams:
        team.stage.ask(stream, count=ENDLESS, rate=RATE)
        await asyncio.sleep(PAUSE)
    await team.stage.streaming(streams)
    return streams


async def _starts_and_stops(team: Team, count: int) -> None:
    stage = team.stage
    requests, firsts, stops = [], [], []
    streams = await stage.watch(await stage.sessions(ONE_BY_ONE))
    for stream in streams:
        stage.ask(stream, count=ENDLESS, rate=RATE)
        await stage.streaming([stream])
        sent = stage.sent(stream)
        assert sent is not None
        requests.append(sent.arrived - stream.asked)
        firsts.append(stream.viewer.seen[0] - sent.times[0])
        await asyncio.sleep(PAUSE)
        stopped = stream.viewer.wait_for(b"cancelled")
        began = stream.viewer.send(type="cancel")
        stops.append(await stopped - began)
    await stage.leave(streams)
    own = [before + after for before, after in zip(requests, firsts, strict=True)]
    head = ["beside streams", "what", "p50 ms", "p99 ms"]
    table = [
        [str(count), "send → request at the model", *both(requests)],
        [str(count), "first token → frame", *both(firsts)],
        [str(count), "first token, own share", *both(own)],
        [str(count), "stop → frame that says so", *both(stops)],
    ]
    print_table(f"A team of {WEBS} web processes and {WORKERS} workers", head, table)


async def _takeovers(team: Team, streams: list[Stream]) -> None:
    """Kill a worker, and measure the time until other workers have claimed each of its sessions."""
    claims = [(await team.threads.run(claims_of, worker.pid), worker) for worker in team.workers]
    claimed, victim = max(claims, key=lambda each: len(each[0]))
    killed_at = time.monotonic()
    victim.kill()
    times = []
    for session_id, epoch in claimed:
        await _until(team.threads, lambda: not is_claimed(session_id, epoch))  # noqa: B023  # waits within the round
        times.append(time.monotonic() - killed_at)
    longest = ms(max(times, default=float("nan")))
    row = [str(len(streams)), str(len(times)), ms(percentile(times, 0.5)), longest]
    print_table("Takeover of the sessions of a killed worker", ["streams", "taken over", "p50 ms", "longest ms"], [row])


async def _hanging(team: Team) -> None:
    """Freeze PostgreSQL, and measure the time until sockets are answered."""
    stage = team.stage
    session = (await stage.sessions(1))[0]
    path, web = f"/ws/sessions/{session}/", team.webs[1]
    viewer = await open_viewer(web.port, path, stage.cookie)
    synced = viewer.wait_for(b'"changes"')
    viewer.send(type="sync", since=0, have={})
    await synced
    team.postgres.freeze()
    pongs = []
    late = [asyncio.create_task(_time_refusal(web.port, path, stage.cookie)) for _ in range(TRIES)]
    until = time.monotonic() + HANGING_SECONDS
    while time.monotonic() < until:
        pong = viewer.wait_for(b'"pong"')
        began = viewer.send(type="ping")
        pongs.append(await pong - began)
        await asyncio.sleep(PAUSE)
    first = await asyncio.gather(*late)
    later = [await _time_refusal(web.port, path, stage.cookie) for _ in range(TRIES)]
    team.postgres.thaw()
    viewer.close()
    table = [
        ["ping → pong of an open socket", *both(pongs)],
        [f"first {TRIES} new sockets → closed with 1013", *both(first)],
        ["later ones", *both(later)],
    ]
    print_table("Sockets while PostgreSQL hangs", ["what", "p50 ms", "p99 ms"], table)


async def _time_refusal(port: int, path: str, cookie: str) -> float:
    """Connect a socket, and return the seconds until the server closes it."""
    began = time.monotonic()
    with suppress(ConnectionError):
        viewer = await open_viewer(port, path, cookie)
        while not viewer.closed:  # noqa: ASYNC110  # its end has no event
            await asyncio.sleep(0.001)
    return time.monotonic() - began


async def _until(threads: Threads, condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await threads.run(condition):  # noqa: ASYNC110  # other processes change the rows
            await asyncio.sleep(0.01)


def claims_of(pid: int) -> list[tuple[str, int]]:
    runs = SessionRun.objects.filter(owner__label__endswith=f" {pid}")
    return list(runs.values_list("pk", "epoch"))


def is_claimed(session_id: str, epoch: int) -> bool:
    return SessionRun.objects.filter(pk=session_id, epoch=epoch, owner__isnull=False).exists()
