"""The format of log lines, and filters of the console: invalid requests in one line, and fewer repeated records."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from datetime import UTC, datetime

from chat.log_context import ExpectedEnd, all_log_ids, described

# At most BURST records of the same kind are shown in WINDOW seconds. Further ones are only counted.
BURST = 5
WINDOW = 10.0

# Errors can contain users' texts and secrets: PostgreSQL quotes whole rows, SQLite texts that are not UTF-8, Pydantic
# values, and Django paths.
_QUOTED_ROWS = re.compile(r"^(DETAIL|CONTEXT|QUERY|STATEMENT):.*(?:\n[ \t]+.*)*", re.MULTILINE)
# To the last quote, because the text itself can contain quotes and lines.
_QUOTED_TEXTS = re.compile(r"(Could not decode to UTF-8 column '[^']*' with text) '.*'", re.DOTALL)
_QUOTED_VALUES = re.compile(r"input_value=.*?(?=, input_type=)", re.DOTALL)
# Control characters in foreign text, such as the error of an MCP server, could move the cursor, hide text, or make it
# look like another line.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_CONTINUED = "\n    "
_SECRET_PATHS = re.compile(r"(/accounts/link/|/join/)[^\s/?\"']+")


def without_content(text: str) -> str:
    """Return a log message or traceback without quotes of rows and values, and without secret addresses."""
    text = _QUOTED_ROWS.sub(r"\1: …", text)
    text = _QUOTED_TEXTS.sub(r"\1 …", text)
    text = _QUOTED_VALUES.sub("input_value=…", text)
    return _SECRET_PATHS.sub(r"\1…", text)


def _escaped(sign: re.Match[str]) -> str:
    return sign[0].encode("unicode_escape").decode()


def _escaped_in_json(sign: re.Match[str]) -> str:
    return f"\\u{ord(sign[0]):04x}"


class TextLines(logging.Formatter):
    """Lines for a terminal. All lines of a record except the first are indented."""

    def __init__(self) -> None:
        super().__init__("{asctime} {levelname} {name}: {message}", style="{")

    def format(self, record: logging.LogRecord) -> str:
        # Indent the lines last, because `without_content` finds quoted rows by the beginning of their lines.
        shown = without_content(super().format(record)).replace("\n", _CONTINUED)
        return _CONTROLS.sub(_escaped, shown)


class JsonLines(logging.Formatter):
    """One JSON object per record, with the ids of its request, session, turn and worker."""

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
        return _CONTROLS.sub(_escaped_in_json, json.dumps(line, ensure_ascii=False))


class SecurityLines(logging.Formatter):
    """The lines of the security log, which are JSON objects already. Names of tools, for example, are foreign text."""

    def format(self, record: logging.LogRecord) -> str:
        return _CONTROLS.sub(_escaped_in_json, record.getMessage())


class AtInfo(logging.Filter):
    """A filter that shows some errors as one line at INFO."""

    def __init__(self, level: str = "INFO") -> None:
        super().__init__()
        self._level = logging.getLevelName(level)

    def at_info(self, record: logging.LogRecord) -> bool:
        """Change a record to INFO without a traceback. Return whether the log shows this level."""
        record.levelno, record.levelname = logging.INFO, "INFO"
        record.exc_info = record.exc_text = None
        return bool(self._level <= logging.INFO)


class RefusedRequests(AtInfo):
    """A filter that shows problems of strangers' requests, such as an unknown Host header, as one line at INFO.

    Django logs each of them as an error with a traceback, so anyone could fill the log. So does aiohttp, which serves
    the monitoring port. It also quotes what is wrong in the request.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        # The class is found by its module, because importing aiohttp takes time, and many servers do not use it.
        if record.name == "aiohttp.server" and type(error).__module__ == "aiohttp.http_exceptions":
            record.msg, record.args = "A request to the monitoring port is not valid HTTP", ()
            return self.at_info(record)
        return self.at_info(record) if record.name.startswith("django.security.") else True


class EndedResponses(AtInfo):
    """A filter that shows responses that Parley ends early as one line at INFO, and leaves out clients that have gone.

    Servers log the first as errors with a traceback, and asyncio warns about writes to a client that has gone.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name == "asyncio" and record.msg == "socket.send() raised exception.":
            return False
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, ExpectedEnd):
            return True
        record.msg, record.args = str(error), ()
        return self.at_info(record)


class LostRedis(logging.Filter):
    """A filter that shows an outage of Redis in one line. channels_redis logs it as an error with a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        # The class is found by its module, because importing redis takes 0.1 seconds, and most servers do not need it.
        is_outage = isinstance(error, OSError) or type(error).__module__ == "redis.exceptions"
        if record.name == "channels_redis.pubsub" and error is not None and is_outage:
            record.msg, record.args = "Redis is not available, so live updates are delayed: %s", (described(error),)
            record.levelno, record.levelname = logging.WARNING, "WARNING"
            record.exc_info = record.exc_text = None
        return True


class RepeatFilter(logging.Filter):
    """A filter that leaves out repeated records and reports their number. In an outage, each client causes a record."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        # For each kind: the start of its window, and the number of records in it.
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
            record.msg, record.args = f"{record.getMessage()} ({left_out} similar messages were omitted)", ()
        return count < BURST
