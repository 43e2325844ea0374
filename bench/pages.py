"""The time to load a session's page from the server, by the number of its messages."""

from __future__ import annotations

import asyncio
import time

import aiohttp

from bench.figures import both, ms, print_table
from bench.stage import Stage

LOADS = 30


async def measure(stage: Stage, sizes: list[int]) -> None:
    """Print the times of first loads of different pages, and of repeated loads of one page."""
    head = ["messages", "first load p50 ms", "p99", "again p50 ms", "p99", "CPU ms per load", "KB"]
    host = {"Cookie": stage.cookie}
    async with aiohttp.ClientSession(f"http://127.0.0.1:{stage.server.port}", headers=host) as client:
        await _load(client, (await stage.sessions(1, 2))[0])
        rows = [[f"{size:,}", *await _row(stage, client, size)] for size in sizes]
    print_table(f"Page load, {stage.server.kind}", head, rows)


async def _row(stage: Stage, client: aiohttp.ClientSession, size: int) -> list[str]:
    sessions = await stage.sessions(5 if size > 500 else 20, size)
    first = [(await _load(client, each))[0] for each in sessions]
    cpu = stage.server.cpu()
    loads = [await _load(client, sessions[0]) for _ in range(LOADS)]
    spent = (stage.server.cpu() - cpu) / LOADS
    return [*both(first), *both([taken for taken, _ in loads]), ms(spent), f"{loads[0][1] / 1000:.0f}"]


async def _load(client: aiohttp.ClientSession, session_id: str) -> tuple[float, int]:
    await asyncio.sleep(0.02)
    began = time.monotonic()
    async with client.get(f"/sessions/{session_id}/") as response:
        body = await response.read()
    if response.status != 200:
        raise RuntimeError(f"the page answers {response.status}")
    return time.monotonic() - began, len(body)
