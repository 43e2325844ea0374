"""Remove expired counts of `limits` without threads. Its memory storage can start a thread every 0.01 seconds.

Overridden: `MemoryStorage.__schedule_expiry`, which starts that thread. Called: `MemoryStorage.__expire_events`. Gain:
see docs/performance.md. Off: use `MemoryStorage` instead of `SweptMemoryStorage`.
"""

from __future__ import annotations

import time

from limits.storage import MemoryStorage

SWEEP_SECONDS = 60.0


class SweptMemoryStorage(MemoryStorage):
    """A memory storage from which expired counts are removed once a minute, during a request that counts."""

    def __init__(self) -> None:
        self._sweep_at = 0.0
        super().__init__()

    def _MemoryStorage__schedule_expiry(self) -> None:  # noqa: N802  # the private name that the library calls
        if time.monotonic() >= self._sweep_at:
            self._sweep_at = time.monotonic() + SWEEP_SECONDS
            self._MemoryStorage__expire_events()  # type: ignore[attr-defined]  # private, as above
