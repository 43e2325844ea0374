"""The limit of files and connections that the process may have open."""

from __future__ import annotations

import logging

try:
    import resource
except ImportError:  # not a POSIX system
    resource = None  # type: ignore[assignment]  # checked below

logger = logging.getLogger("chat.server")

# The soft limit if the hard limit is unlimited, because macOS refuses an unlimited soft limit.
UNLIMITED = 65_536


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files to the hard limit.

    Each connection needs a descriptor. The usual soft limit of 1,024 only exists for `select`, which Parley does not
    use.
    """
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = UNLIMITED if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as error:
            logger.warning("Cannot raise the limit of open files, which stays at %d: %s", soft, error)


def descriptor_limit() -> int | None:
    """Return the number of files that the process may have open, or None if it is unlimited."""
    if resource is None:
        return None
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft
