"""The browsers of the tests: where they are, and how they are started."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, Playwright

Name = Literal["chromium", "firefox"]
CHROMIUM = shutil.which("chromium-headless-shell")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FIREFOX = Path(__file__).parent / "firefox.py"
PREFERENCES: dict[str, str | float | bool] = {
    # Contexts set these in Chromium, but Firefox has no command for them. The theme is light by default.
    "ui.prefersReducedMotion": 1,
    "ui.systemUsesDarkTheme": 0,
    # A mouse: 2 for exact pointing plus 4 for hovering. Without a screen, Firefox detects no mouse.
    "ui.primaryPointerCapabilities": 6,
    "ui.allPointerCapabilities": 6,
    # Remote control switches off connections in advance, such as those of <link rel="preconnect">.
    "network.http.speculative-parallel-limit": 6,
}


async def launch(playwright: Playwright, name: Name) -> Browser:
    if name == "chromium":
        return await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
    # firefox.py runs in this environment's Python.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return await playwright.firefox.launch(
        channel="moz-firefox",  # uses BiDi, because only Playwright's own Firefox supports its protocol
        executable_path=FIREFOX,
        env={**os.environ, "PATH": path},
        firefox_user_prefs=PREFERENCES,
    )


class Browsers:
    """The browsers of a test process. Each is started on first use, because that takes longer than most tests."""

    def __init__(self, playwright: Playwright) -> None:
        self._playwright = playwright
        self._started: dict[Name, Browser] = {}

    async def get(self, name: Name) -> Browser:
        if name not in self._started:
            self._started[name] = await launch(self._playwright, name)
        return self._started[name]

    async def close(self) -> None:
        for browser in self._started.values():
            await browser.close()
