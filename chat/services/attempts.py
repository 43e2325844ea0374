"""How often somebody may try a password: enough for whoever mistypes, too little for whoever guesses."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from hashlib import sha256

from django.core.cache import cache

logger = logging.getLogger(__name__)

# In a window: for one name from one address, and for all names from one address, which may be a whole office's.
MOST = 8
MOST_OF_ADDRESS = 100
WINDOW = 600  # seconds; after each all is forgotten


def begin(*, username: str, address: str) -> int:
    """Count a try before its password is looked at, so that those at the same time count as well.

    Returns in how many seconds it may be made; 0: now.
    """
    of_name, of_address = _keys(username, address)
    if _counted(of_name) <= MOST and _counted(of_address) <= MOST_OF_ADDRESS:
        return 0
    return WINDOW - int(time.time()) % WINDOW


def forget(*, username: str, address: str) -> None:
    """The right password was given: nobody has guessed."""
    of_name, of_address = _keys(username, address)
    _cached(lambda: cache.delete(of_name))
    _cached(lambda: cache.decr(of_address))


def _counted(key: str) -> int:
    _cached(lambda: cache.add(key, 0, WINDOW))
    return _cached(lambda: cache.incr(key)) or 0


def _cached(ask: Callable[[], int | bool]) -> int | None:
    """Ask the cache; whoever cannot be counted is let through."""
    try:
        return ask()
    except ValueError:  # it was forgotten in between
        return None
    except Exception as error:  # whatever the cache's own library raises
        logger.warning("Attempts to sign in cannot be counted: %r", error)
        return None


def _keys(username: str, address: str) -> tuple[str, str]:
    window = int(time.time()) // WINDOW
    return _key(window, address, username.casefold()), _key(window, address)


def _key(*parts: object) -> str:
    return "attempts:" + sha256("\0".join(map(str, parts)).encode()).hexdigest()
