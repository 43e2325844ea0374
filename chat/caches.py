"""Results that are kept for good, except while a developer edits the files that they are made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar, TypeVarTuple

from django.conf import settings

Arguments = TypeVarTuple("Arguments")
T = TypeVar("T")


def kept_unless_debug(function: Callable[[*Arguments], T], size: int | None = None) -> Callable[[*Arguments], T]:
    """Decorate a function whose results are kept, the last `size` of them or all, unless DEBUG is set."""
    kept = lru_cache(maxsize=size)(function)

    @wraps(function)
    def result(*arguments: *Arguments) -> T:
        return function(*arguments) if settings.DEBUG else kept(*arguments)

    return result
