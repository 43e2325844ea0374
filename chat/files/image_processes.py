"""Read images in child processes with limits, because decoding an untrusted file may exhaust memory or take minutes."""

from __future__ import annotations

import json
import logging
from typing import cast

from agents.process_pool import Limits, ProcessPool, WorkFailed
from chat.files.contents import Contents, Problem, Unusable

logger = logging.getLogger(__name__)
# Reading the largest images takes 400 MB and some seconds of CPU time.
_processes = ProcessPool(
    "chat.files.images_child",
    Limits(cpu_seconds=20.0, seconds=40.0, memory_mb=1024, output_bytes=100_000_000, queue_seconds=30.0),
    size=2,
    keep_seconds=20.0,
)


def read(data: bytes) -> Contents:
    """Read an image. Raise Unusable."""
    try:
        return _contents(_processes.run("read", data))
    except WorkFailed as failed:
        raise _unusable(failed) from None


async def read_async(data: bytes) -> Contents:
    """Read an image from a coroutine. Raise Unusable."""
    try:
        return _contents(await _processes.run_async("read", data))
    except WorkFailed as failed:
        raise _unusable(failed) from None


def square(data: bytes, side: int) -> bytes:
    """Return an image as a square WebP for a profile picture. `side` is in pixels. Raise Unusable."""
    try:
        problem, *drawn = _processes.run("square", data, side)
    except WorkFailed as failed:
        raise _unusable(failed) from None
    if not drawn:
        raise Unusable(cast(Problem, problem.decode()))
    return drawn[0]


def _contents(pieces: list[bytes]) -> Contents:
    found = json.loads(pieces[0])
    if "problem" in found:
        raise Unusable(found["problem"])
    kept, thumb, model_image = pieces[1:]
    return Contents(kind="image", **found, data=kept, thumb=thumb, model_image=model_image)


def _unusable(failed: WorkFailed) -> Unusable:
    logger.info("Could not read an image: %s", failed)
    return Unusable("unavailable" if failed.reason == "busy" else "too_many_pixels")
