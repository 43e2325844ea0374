"""The steps of a scripted server's reply to one request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Pause:
    """A pause in which nothing is sent."""

    seconds: float


@dataclass(frozen=True)
class Cut:
    """A connection that is dropped without an orderly close; nothing after it is sent."""


class RequestRefusedError(Exception):
    """A request that breaks the protocol; the text is the vendor's message, and `param` is the parameter that it
    names."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code


# Bytes are sent unchanged, one write each; for an event, the server waits until it is set.
Step = bytes | Pause | Cut | asyncio.Event

SSE = "text/event-stream; charset=utf-8"


@dataclass(frozen=True)
class Reply:
    """One reply: the status line, after `hold` if given, and then the steps in order."""

    steps: Sequence[Step] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = SSE
    hold: asyncio.Event | None = None

    @classmethod
    def of_json(cls, body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
        return cls([json.dumps(body).encode()], status, headers or {}, "application/json")
