"""What log lines contain: the ids of the request or socket, the session, the turn and the worker, and errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar


class ExpectedEnd(Exception):
    """An exception that ends a response without a fault of the server. The log has only its message, in one line."""


def described(error: BaseException) -> str:
    """Return the class and the text of an error for a log line, as `repr` does. The `repr` of redis-py has no text."""
    return f"{type(error).__name__}({str(error)!r})"


_ids: ContextVar[Mapping[str, str]] = ContextVar("log_ids")
_NONE: Mapping[str, str] = {}
# The ids of the whole process.
_of_process: dict[str, str] = {}


def log_ids() -> Mapping[str, str]:
    """Return the ids of the current task or thread."""
    return _ids.get(_NONE)


def all_log_ids() -> Mapping[str, str]:
    """Return the ids of the current task or thread, and those of the process."""
    return {**_of_process, **log_ids()}


def add_log_ids(**ids: str) -> None:
    """Add ids for the rest of the current task, and for tasks that it starts from now on."""
    _ids.set({**log_ids(), **ids})


def set_worker(worker_id: str) -> None:
    """Set the worker of this process."""
    _of_process["worker"] = worker_id


@contextmanager
def logging_ids(ids: Mapping[str, str]) -> Iterator[None]:
    """Use these ids for a block."""
    token = _ids.set(ids)
    try:
        yield
    finally:
        _ids.reset(token)
