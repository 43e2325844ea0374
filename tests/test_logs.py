"""The console stays readable during attacks and outages. Log lines have ids, and no content of sessions."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import sys
import time
from contextlib import closing
from typing import Any

import psycopg
import pydantic
import pytest
import redis
from django.conf import settings
from django.utils.module_loading import import_string

from chat.asgi.log_ids import ids_of
from chat.db import Threads
from chat.downloads import CutOffError
from chat.log_context import add_log_ids, all_log_ids, logging_ids
from config import logs
from config.logs import EndedResponses, JsonLines, LostRedis, RefusedRequests, RepeatFilter, TextLines


def record(name: str = "chat.db", message: str = "It is away: %s", *args: Any, **options: Any) -> logging.LogRecord:
    return logging.makeLogRecord(
        {"name": name, "msg": message, "args": args, "levelno": logging.WARNING, "levelname": "WARNING", **options}
    )


def test_repeated_log_lines_are_omitted_and_later_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty lines a second went to a log on the disk that was full."""
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    throttle = RepeatFilter()

    shown = [throttle.filter(record("chat.db", "It is away: %s", number)) for number in range(50)]
    assert shown == [True] * logs.BURST + [False] * (50 - logs.BURST)
    assert throttle.filter(record("chat.db", "Something else"))
    now += logs.WINDOW
    later = record("chat.db", "It is away: %s", "still")
    assert throttle.filter(later)
    assert later.getMessage() == f"It is away: still ({50 - logs.BURST} similar messages were omitted)"


def test_stranger_s_request_is_one_line_and_no_error() -> None:
    """Scanners send any Host; a traceback for each would be all that the log holds."""
    refused = record("django.security.DisallowedHost", "Invalid HTTP_HOST header", exc_info=(ValueError, None, None))

    assert RefusedRequests().filter(refused)
    assert (refused.levelname, refused.exc_info) == ("INFO", None)
    assert not RefusedRequests(level="WARNING").filter(record("django.security.DisallowedHost"))
    assert RefusedRequests(level="ERROR").filter(record("chat.db"))


def test_download_that_is_cut_off_is_one_line() -> None:
    """LIVE-06: a download that Parley ends is one INFO line, a lost client is not logged, and a fault is an error."""
    ended, fault = CutOffError(), OSError("The disk is gone")
    cut = record("uvicorn.error", "Exception in ASGI application\n", exc_info=(type(ended), ended, None))
    broken = record("uvicorn.error", "Exception in ASGI application\n", exc_info=(type(fault), fault, None))
    broken.levelname = "ERROR"

    assert EndedResponses().filter(cut)
    assert (cut.levelname, cut.exc_info) == ("INFO", None)
    assert cut.getMessage() == "A download was ended, because its user has lost access"
    assert not EndedResponses(level="ERROR").filter(record("daphne.server", exc_info=(type(ended), ended, None)))
    assert EndedResponses().filter(broken)
    assert (broken.levelname, broken.exc_info) == ("ERROR", (OSError, fault, None))
    assert not EndedResponses().filter(record("asyncio", "socket.send() raised exception."))
    assert EndedResponses().filter(record("asyncio", "Something else"))


def test_outage_of_redis_is_one_line_with_its_reason() -> None:
    """channels_redis logs a traceback each second, and the `repr` of redis-py's errors has no text."""
    lost, fault = redis.ConnectionError("Error 111 connecting to localhost:6379."), AttributeError("a bug")
    outage, broken = (
        record("channels_redis.pubsub", "Unexpected exception", exc_info=(type(error), error, None))
        for error in (lost, fault)
    )
    broken.levelname = "ERROR"

    assert LostRedis().filter(outage)
    assert (outage.levelname, outage.exc_info) == ("WARNING", None)
    assert outage.getMessage() == (
        "Redis is not available, so live updates are delayed: "
        "ConnectionError('Error 111 connecting to localhost:6379.')"
    )
    assert LostRedis().filter(broken)
    assert (broken.levelname, broken.exc_info) == ("ERROR", (AttributeError, fault, None))


def test_text_of_others_is_no_line_and_no_control_sequence() -> None:
    """An MCP server's error, a file's name or a page's title cannot forge a line or move the cursor."""
    hostile = "x\n2026-01-01 00:00:00,000 INFO chat.security: forged\r\x1b[2K\x1b]0;title\x07\u202e\x9b1A"
    shown = TextLines().format(record("agents.mcp", "MCP server %s: it\tfails", hostile))
    first, second = shown.split("\n")
    assert first.endswith("WARNING agents.mcp: MCP server x")
    assert second == (
        r"    2026-01-01 00:00:00,000 INFO chat.security: forged\r\x1b[2K\x1b]0;title\x07\u202e\x9b1A: it"
        "\tfails"
    )


def test_text_of_others_is_no_line_of_json_either() -> None:
    """JSON escapes only ASCII control characters. Programs split lines at others, too, and terminals obey C1 codes."""
    hostile = 'x\u2028{"level": "INFO"}\u2029\x85\x9b2K\x7f\u202e\x1b'
    line = JsonLines().format(record("agents.mcp", "%s", hostile))
    assert line.splitlines() == [line]
    assert not {"\x9b", "\x7f", "\u202e"} & set(line)
    assert json.loads(line)["message"] == hostile


def test_text_of_others_is_no_line_of_the_security_log() -> None:
    """A model chooses the name of a tool, and staff the text of a search."""
    hostile = 'x\u2028{"kind": "sign_in"}\u2029\x85\u202e\x1b'
    configured: Any = settings.LOGGING
    [name] = configured["loggers"]["chat.security"]["handlers"]
    formatter = import_string(configured["formatters"][configured["handlers"][name]["formatter"]]["()"])()
    said = json.dumps({"kind": "tool_decided", "tool": hostile}, ensure_ascii=False)
    line = formatter.format(record("chat.security", "%s", said))
    assert line.splitlines() == [line]
    assert "\u202e" not in line
    assert json.loads(line)["tool"] == hostile


def test_error_of_others_is_no_line_either() -> None:
    """OPS-03: tracebacks end with the words of the error, and those of errors that led to it are in their middle."""
    hostile = "x\n2026-01-01 00:00:00,000 INFO chat.security: forged\nDETAIL:  Key (text)=(secret) exists."
    try:
        try:
            raise ValueError(hostile)
        except ValueError as error:
            raise RuntimeError(hostile) from error
    except RuntimeError:
        shown = TextLines().format(record("chat.runner", "It failed", exc_info=sys.exc_info()))
    first, *others = shown.split("\n")
    assert first.endswith("WARNING chat.runner: It failed")
    assert "    2026-01-01 00:00:00,000 INFO chat.security: forged" in others
    assert [line for line in others if not line.startswith("    ")] == []
    assert "secret" not in shown


def test_rows_in_a_message_are_left_out_of_text_lines() -> None:
    """OPS-03: PostgreSQL quotes them in the line after the error."""
    shown = TextLines().format(
        record("chat.db", "It failed: %s", "duplicate key\nDETAIL:  Key (text)=(secret) exists.")
    )
    assert ("secret" in shown, shown.endswith("duplicate key\n    DETAIL: …")) == (False, True)


def written(**options: Any) -> dict[str, Any]:
    line = JsonLines().format(record("chat.runner", "Session %s is late", "s_1", created=1772282096.5, **options))
    assert "\n" not in line
    parsed: dict[str, Any] = json.loads(line)
    return parsed


def test_json_line_has_the_ids_of_what_it_is_about() -> None:
    """OPS-03: the lines of one request, turn or worker are found by its id."""
    with logging_ids({"request": "r1"}):
        add_log_ids(session="s_1", turn="t_1")
        line = written()

    assert {name: value for name, value in line.items() if name != "worker"} == {
        "level": "WARNING",
        "at": "2026-02-28T12:34:56.500+00:00",
        "logger": "chat.runner",
        "message": "Session s_1 is late",
        "request": "r1",
        "session": "s_1",
        "turn": "t_1",
    }
    assert "request" not in written()


async def test_ids_follow_the_work_into_threads() -> None:
    """OPS-03: a service that runs in a thread of the hub logs the request that it works for."""
    threads = Threads(1, "test-logs")
    try:
        with logging_ids({"request": "r1"}):
            first, task = await threads.run(all_log_ids), asyncio.create_task(threads.run(all_log_ids))
            assert first["request"] == (await task)["request"] == "r1"
        assert "request" not in await threads.run(all_log_ids)
    finally:
        await threads.close()


def raised(error: BaseException) -> Any:
    try:
        raise error
    except BaseException:
        return sys.exc_info()


class Form(pydantic.BaseModel):
    age: int


def form_error(age: str) -> Exception:
    try:
        Form.model_validate({"age": age})
    except pydantic.ValidationError as error:
        return error
    raise AssertionError("it is no number")


def text_error(text: str) -> Exception:
    """Return the error of SQLite's driver for a text that is not UTF-8."""
    with closing(sqlite3.connect(":memory:")) as memory:
        try:
            memory.execute("SELECT CAST(? AS TEXT) AS text", [text.encode() + b"\xff"]).fetchone()
        except sqlite3.OperationalError as error:
            return error
    raise AssertionError("it is UTF-8")


@pytest.mark.parametrize(
    "error",
    [
        psycopg.IntegrityError(
            'violates check constraint "text"\nDETAIL:  Failing row contains (m_1, my secret\n  secret, 3).'
        ),
        form_error("my secret"),
        text_error("my secret, 'quoted',\nand a line"),
        OSError("/accounts/link/secret?next=/"),
    ],
    ids=["row", "value", "text", "link"],
)
def test_errors_are_logged_without_what_they_quote(error: Exception) -> None:
    """OPS-03: databases and libraries put into errors what people wrote, and Django addresses that sign in."""
    exc_info = raised(error)
    line = written(exc_info=exc_info)
    text = TextLines().format(record("chat.runner", "Failed", exc_info=exc_info))

    assert "Traceback" in line["error"]
    assert type(error).__name__ in line["error"]
    assert [shown for shown in (line["error"], text) if "secret" in shown] == []


def test_request_s_id_is_the_proxy_s_if_that_is_trusted(settings: Any) -> None:
    """OPS-03: a stranger cannot choose the id under which the log keeps the request."""
    session = "s_" + 24 * "a"
    scope = {"path": f"/sessions/{session}/", "headers": [(b"x-request-id", b"from-the-proxy")]}
    settings.HTTPS = False
    own = ids_of(scope)
    assert own["session"] == session
    assert own["request"] not in ("from-the-proxy", ids_of(scope)["request"])
    settings.HTTPS = True
    assert ids_of(scope)["request"] == "from-the-proxy"
    assert ids_of({**scope, "headers": [(b"x-request-id", b'x"y')]})["request"] != 'x"y'
