"""How much work tests do: a share of the random or repeated cases in `make test`, all in `make test-all`."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from typing import TypeVar

Case = TypeVar("Case")
ALL = os.environ.get("PARLEY_ALL_CASES") == "1"
SHARE = 4


def cases(count: int) -> int:
    """Return how many of `count` random cases to try: all, or a quarter and at least two."""
    return count if ALL else max(count // SHARE, 2)


def share_of(items: Sequence[Case], number: int) -> Sequence[Case]:
    """Return the items to try in round `number`: all, or every fourth, so that four rounds cover each item once."""
    return items if ALL else items[number % SHARE :: SHARE]


def one_of(items: Sequence[Case], number: int) -> Sequence[Case]:
    """Return the items to try in round `number`: all, or one, for tests with many more rounds than items."""
    return items if ALL else items[number % len(items) :][:1]


def shorten_collections() -> None:
    """Leave all present objects out of later garbage collections."""
    gc.collect()
    gc.freeze()
