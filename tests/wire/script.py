"""What a scripted server does with one request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Pause:
    """Say nothing for a while."""

    seconds: float


@dataclass(frozen=True)
class Cut:
    """Drop the connection without a goodbye; nothing after it is sent."""


class RequestRefusedError(Exception):
    """A request that breaks the protocol; the text is what the vendor says, `param` what it says it of."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code


# Bytes go out as they are, one write each; an event is waited for.
Step = bytes | Pause | Cut | asyncio.Event

SSE = "text/event-stream; charset=utf-8"


@dataclass(frozen=True)
class Reply:
    """One answer: the status line first (after `hold`, if given), then the steps in order."""

    steps: Sequence[Step] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = SSE
    hold: asyncio.Event | None = None

    @classmethod
    def of_json(cls, body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
        return cls([json.dumps(body).encode()], status, headers or {}, "application/json")
