"""The form of log lines, and the filters of the console: invalid requests in one line, and no repeated records."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from datetime import UTC, datetime

from chat.log_context import all_log_ids

# So many records of one kind are shown in a window of so many seconds; the others are counted.
BURST = 5
WINDOW = 10.0

# What people wrote, or what signs in, can be in errors: PostgreSQL quotes whole rows, Pydantic values, Django paths.
_QUOTED_ROWS = re.compile(r"^(DETAIL|CONTEXT|QUERY|STATEMENT):.*(?:\n[ \t]+.*)*", re.MULTILINE)
_QUOTED_VALUES = re.compile(r"input_value=.*?(?=, input_type=)", re.DOTALL)
# What others wrote, such as the error of an MCP server, could move the cursor, hide text, or look like another line.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_CONTINUED = "\n    "
_SECRET_PATHS = re.compile(r"(/accounts/link/|/join/)[^\s/?\"']+")


def without_content(text: str) -> str:
    """Return a log message or traceback without what errors quote from rows, values and secret addresses."""
    text = _QUOTED_ROWS.sub(r"\1: …", text)
    text = _QUOTED_VALUES.sub("input_value=…", text)
    return _SECRET_PATHS.sub(r"\1…", text)


def _escaped(sign: re.Match[str]) -> str:
    return sign[0].encode("unicode_escape").decode()


class TextLines(logging.Formatter):
    """Lines for a terminal. All lines of a record but its first are indented."""

    def __init__(self) -> None:
        super().__init__("{asctime} {levelname} {name}: {message}", style="{")

    def format(self, record: logging.LogRecord) -> str:
        # Errors quote rows in lines of their own, which are found by their beginning: they are indented afterwards.
        shown = without_content(super().format(record)).replace("\n", _CONTINUED)
        return _CONTROLS.sub(_escaped, shown)


class JsonLines(logging.Formatter):
    """One JSON object per record, with the ids of the request, session, turn and worker that it concerns."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "level": record.levelname,
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "logger": record.name,
            "message": without_content(record.getMessage()),
            **all_log_ids(),
        }
        if record.exc_info:
            line["error"] = without_content(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


class Strangers(logging.Filter):
    """Show what a stranger's request brings about, such as a foreign Host header, as one line at INFO.

    Django logs these as errors with a traceback, as often as anybody likes.
    """

    def __init__(self, level: str = "INFO") -> None:
        super().__init__()
        self._level = logging.getLevelName(level)

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith("django.security."):
            return True
        record.levelno, record.levelname = logging.INFO, "INFO"
        record.exc_info = record.exc_text = None
        return bool(self._level <= logging.INFO)


class Throttle(logging.Filter):
    """Leave out records that repeat, and say how many they were: in an outage every client brings the same one."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        # By kind: when its window began, and how many came in it.
        self._windows: dict[tuple[str, int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind = (record.name, record.levelno, str(record.msg))
        now = time.monotonic()
        with self._lock:
            began, count = self._windows.get(kind, (now, 0))
            left_out = 0
            if now - began >= WINDOW:
                left_out, began, count = max(0, count - BURST), now, 0
            self._windows[kind] = (began, count + 1)
            if len(self._windows) > 1000:
                self._windows = {key: found for key, found in self._windows.items() if now - found[0] < WINDOW}
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out} more like this were left out)", ()
        return count < BURST
