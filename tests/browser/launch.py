"""Find and start Chromium."""

from __future__ import annotations

import shutil

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
