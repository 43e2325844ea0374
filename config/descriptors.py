"""How many files and connections the process may have open."""

from __future__ import annotations

import logging

try:
    import resource
except ImportError:  # not a POSIX system
    resource = None  # type: ignore[assignment]  # told apart below

logger = logging.getLogger("chat.server")

# What an unlimited hard limit is taken for: macOS refuses to set a soft limit without a bound.
UNLIMITED = 65_536


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files to the hard one.

    Each connection takes a descriptor, and the usual soft limit, 1,024, is what `select` can bear, which nothing here
    uses.
    """
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = UNLIMITED if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as error:
            logger.warning("The limit of open files stays at %d: %s", soft, error)


def descriptor_limit() -> int | None:
    """Return how many files the process may have open; None if that is not bounded."""
    if resource is None:
        return None
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft
