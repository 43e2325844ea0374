"""Server-made opaque ids (MSG-02): a letter for the kind, then 12 hex digits of time and 12 random ones.

The time in milliseconds comes first, so that new rows are next to each other in an index; random ids write to pages all
over it. Ids are not secret: access is checked by the rows.
"""

import secrets
import time
from datetime import datetime


def session_id() -> str:
    return _new("s")


def message_id() -> str:
    return _new("m")


def turn_id() -> str:
    return _new("t")


def response_id() -> str:
    return _new("r")


def attachment_id() -> str:
    return _new("a")


def suggestion_id() -> str:
    return _new("e")


def attempt_id() -> str:
    return _new("v")


def knowledge_id() -> str:
    return _new("k")


def delivery_id(at: datetime | None = None) -> str:
    """Return an id that sorts by its time: `at`, or now."""
    return _new("d", at)


def schedule_id() -> str:
    return _new("c")


def worker_id() -> str:
    return _new("w")


def may_be_one(text: object) -> bool:
    """Return whether a text has the form of an id. Databases reject some other texts, such as NUL characters."""
    return isinstance(text, str) and text.isascii() and text.isprintable()


def _new(kind: str, at: datetime | None = None) -> str:
    milliseconds = time.time_ns() // 1_000_000 if at is None else int(at.timestamp() * 1000)
    return f"{kind}_{milliseconds:012x}{secrets.token_hex(6)}"
