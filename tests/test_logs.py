"""The console stays readable, whatever strangers and outages do."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest

from config import logs
from config.logs import Strangers, Throttle


def record(name: str = "chat.db", message: str = "It is away: %s", *args: Any, **options: Any) -> logging.LogRecord:
    return logging.makeLogRecord(
        {"name": name, "msg": message, "args": args, "levelno": logging.WARNING, "levelname": "WARNING", **options}
    )


def test_outage_is_told_now_and_then_with_a_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty lines a second went to a log on the disk that was full."""
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    throttle = Throttle()

    shown = [throttle.filter(record("chat.db", "It is away: %s", number)) for number in range(50)]
    assert shown == [True] * logs.BURST + [False] * (50 - logs.BURST)
    assert throttle.filter(record("chat.db", "Something else"))
    now += logs.WINDOW
    later = record("chat.db", "It is away: %s", "still")
    assert throttle.filter(later)
    assert later.getMessage() == f"It is away: still ({50 - logs.BURST} more like this were left out)"


def test_stranger_s_request_is_one_line_and_no_error() -> None:
    """Scanners send any Host; a traceback for each would be all that the log holds."""
    refused = record("django.security.DisallowedHost", "Invalid HTTP_HOST header", exc_info=(ValueError, None, None))

    assert Strangers().filter(refused)
    assert (refused.levelname, refused.exc_info) == ("INFO", None)
    assert not Strangers(level="WARNING").filter(record("django.security.DisallowedHost"))
    assert Strangers(level="ERROR").filter(record("chat.db"))
