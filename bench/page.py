"""The session page in a real Chromium: the bytes transferred, the time until it is usable, and its main thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser, CDPSession, Page, async_playwright, expect

from bench.figures import print_table
from bench.stage import Stage, Stream
from tests.browser.launch import ARGUMENTS, CHROMIUM

MESSAGES = 5000
ROWS = 300
SECONDS = 10.0
LONG_TASKS = """
window.longTasks = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.longTasks.push(entry.duration);
}).observe({ type: "longtask", buffered: true });
"""


@dataclass
class Tab:
    """A page with its own cache, and Chromium's measurements of it. `received` are the bytes of each response."""

    page: Page
    cdp: CDPSession
    received: list[float] = field(default_factory=list)

    async def metrics(self) -> dict[str, float]:
        answer: dict[str, Any] = await self.cdp.send("Performance.getMetrics")
        return {metric["name"]: metric["value"] for metric in answer["metrics"]}

    async def tidy(self) -> None:
        await self.cdp.send("HeapProfiler.collectGarbage")

    async def long_tasks(self) -> list[float]:
        tasks: list[float] = await self.page.evaluate("window.longTasks.splice(0)")
        return tasks


async def measure(stage: Stage) -> None:
    """Print the tables of docs/performance.md about the page."""
    [session_id] = await stage.sessions(1, MESSAGES)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        await _loading(browser, stage, session_id)
        await _streaming(browser, stage)
        await _scrolling(browser, stage, session_id)
        await browser.close()


@asynccontextmanager
async def _tab(browser: Browser, stage: Stage) -> AsyncIterator[Tab]:
    context = await browser.new_context(
        base_url=f"http://127.0.0.1:{stage.server.port}", viewport={"width": 1280, "height": 860}
    )
    name, value = stage.cookie.split("=", 1)
    await context.add_cookies([{"name": name, "value": value, "url": f"http://127.0.0.1:{stage.server.port}"}])
    page = await context.new_page()
    await page.add_init_script(LONG_TASKS)
    tab = Tab(page, await context.new_cdp_session(page))
    tab.cdp.on("Network.loadingFinished", lambda event: tab.received.append(event["encodedDataLength"]))
    await tab.cdp.send("Network.enable")
    # Measure CPU time, because on few cores, a main thread also waits for the compositor, the server and the model.
    await tab.cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
    yield tab
    await context.close()


async def _open(tab: Tab, session_id: str) -> float:
    """Load a session. Return the milliseconds until a user can write and the page is connected."""
    await tab.page.goto(f"/sessions/{session_id}/", wait_until="commit")
    await expect(tab.page.locator("#connection")).to_have_attribute("data-state", "connected")
    now: float = await tab.page.evaluate("performance.now()")
    return now


async def _loading(browser: Browser, stage: Stage, session_id: str) -> None:
    rows = []
    async with _tab(browser, stage) as tab:
        for name in ("first visit", "again"):
            tab.received.clear()
            ready = await _open(tab, session_id)
            await tab.page.wait_for_load_state("networkidle")
            tasks = await tab.long_tasks()
            size = sum(tab.received)
            rows.append([name, f"{size / 1000:.0f}", str(len(tab.received)), f"{ready:.0f}", _tasks(tasks)])
    head = ["", "KB transferred", "answers", "usable after ms", "long tasks"]
    print_table(f"Opening a session of {MESSAGES:,} messages, 50 of them shown", head, rows)


async def _streaming(browser: Browser, stage: Stage) -> None:
    rows = []
    for count in (1, 5):
        streams = await stage.watch(await stage.sessions(count, 50))
        async with AsyncExitStack() as stack:
            tabs = [await stack.enter_async_context(_tab(browser, stage)) for _ in streams]
            for tab, stream in zip(tabs, streams, strict=True):
                await _open(tab, stream.session_id)
            rows.append([str(count), *await _busy(stage, tabs, streams)])
            await stage.cancel(streams)
        await stage.leave(streams)
    head = ["answers", "main thread ms/s each", "of it script", "of it style and layout", "long tasks"]
    print_table("Answers that stream, 50 tokens/s each, 50 messages above", head, rows)


async def _busy(stage: Stage, tabs: Sequence[Tab], streams: Sequence[Stream]) -> list[str]:
    for stream in streams:
        stage.ask(stream, count=3000)
    await stage.streaming(streams)
    await asyncio.sleep(2)
    for tab in tabs:
        await tab.long_tasks()
    before = [await tab.metrics() for tab in tabs]
    await asyncio.sleep(SECONDS)
    after = [await tab.metrics() for tab in tabs]

    def spent(*names: str) -> float:
        seconds = sum(new[name] - old[name] for old, new in zip(before, after, strict=True) for name in names)
        return seconds * 1000 / SECONDS / len(tabs)

    figures = [spent("TaskDuration"), spent("ScriptDuration"), spent("RecalcStyleDuration", "LayoutDuration")]
    tasks = [task for tab in tabs for task in await tab.long_tasks()]
    return [*(f"{figure:.0f}" for figure in figures), _tasks(tasks)]


async def _scrolling(browser: Browser, stage: Stage, session_id: str) -> None:
    """Scroll up, as a reader does, until the page has ROWS rows, and print the measurements."""
    async with _tab(browser, stage) as tab:
        await _open(tab, session_id)
        await tab.long_tasks()
        before = await tab.metrics()
        rows = tab.page.locator("#messages > .message")
        while await rows.count() < ROWS:
            await tab.page.mouse.move(700, 400)
            await tab.page.mouse.wheel(0, -600)
            await asyncio.sleep(0.05)
        tasks = await tab.long_tasks()
        after = await tab.metrics()
        await tab.tidy()
        kept = await tab.metrics()
        took, worked = after["Timestamp"] - before["Timestamp"], after["TaskDuration"] - before["TaskDuration"]
        figures = [
            str(await rows.count()),
            f"{kept['Nodes']:,.0f}",
            f"{kept['JSHeapUsedSize'] / 1e6:.0f}",
            f"{worked * 100 / took:.0f}",
            _tasks(tasks),
        ]
    print_table(
        f"After scrolling up through {ROWS} rows",
        ["rows", "DOM nodes", "heap MB", "main thread % while scrolling", "long tasks"],
        [figures],
    )


def _tasks(durations: Sequence[float]) -> str:
    """Describe the tasks of more than 50 ms: their number, and the longest."""
    return f"{len(durations)}, longest {max(durations):.0f} ms" if durations else "none"
