"""Caches that do not expire. With DEBUG nothing is cached, because a developer edits the files behind the results."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar, TypeVarTuple

from django.conf import settings

Arguments = TypeVarTuple("Arguments")
T = TypeVar("T")


def cached_unless_debug(function: Callable[[*Arguments], T], size: int | None = None) -> Callable[[*Arguments], T]:
    """Return a function that caches its last `size` results, or all for None, unless DEBUG is set."""
    kept = lru_cache(maxsize=size)(function)

    @wraps(function)
    def result(*arguments: *Arguments) -> T:
        return function(*arguments) if settings.DEBUG else kept(*arguments)

    return result
