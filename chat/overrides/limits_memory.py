"""The memory storage of `limits` starts a thread for every hundredth of a second in which something is counted.

Overridden: `MemoryStorage.__schedule_expiry`, which starts that thread. Called: `MemoryStorage.__expire_events`.
Gain: see docs/performance.md. Off: use `MemoryStorage` where `SweptMemoryStorage` is used.
"""

from __future__ import annotations

import time

from limits.storage import MemoryStorage

SWEEP_SECONDS = 60.0


class SweptMemoryStorage(MemoryStorage):
    """Memory from which expired counts are removed once a minute, by the request that counts then."""

    def __init__(self) -> None:
        self._sweep_at = 0.0
        super().__init__()

    def _MemoryStorage__schedule_expiry(self) -> None:  # noqa: N802  # the private name that the library calls
        if time.monotonic() >= self._sweep_at:
            self._sweep_at = time.monotonic() + SWEEP_SECONDS
            self._MemoryStorage__expire_events()  # type: ignore[attr-defined]  # private, as above
