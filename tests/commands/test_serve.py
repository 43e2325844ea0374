"""`manage.py serve` in a real process: one line of output, a link for one use, clear errors, and a clean end."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, CookieJar, WSMsgType
from pytest_django import Settings

from chat.management.commands.serve import Command
from chat.models import User
from tests.commands.process import Started, in_the_background, manage, manage_forked, serving, workers
from tests.support.entering import enter, sign_in
from tests.support.redis import free_port

pytestmark = pytest.mark.server


def browser() -> ClientSession:
    return ClientSession(cookie_jar=CookieJar(unsafe=True))  # unsafe: allows cookies of an IP address


@asynccontextmanager
async def events(person: ClientSession, server: Started, session: str) -> AsyncIterator[ClientWebSocketResponse]:
    """Open a socket of the JSON protocol and request the session from its beginning."""
    async with person.ws_connect(f"{server.address}/ws{session}", origin=server.address) as socket:
        await socket.send_json({"type": "sync", "since": 0, "have": {}})
        yield socket


async def heard(socket: ClientWebSocketResponse, kind: str) -> None:
    """Wait for an event."""
    while (await socket.receive_json())["type"] != kind:
        pass


async def test_link_signs_in_once_and_lands_at_home(tmp_path: Path) -> None:
    """An empty folder is prepared, and one line with a link is printed, as in the section "two commands"."""
    with serving(tmp_path) as server:
        assert re.fullmatch(r"Parley is ready\..* http://127\.0\.0\.1:\d+/accounts/link/[\w-]{43,}", server.line)
        async with browser() as first, browser() as second:
            home, _html = await sign_in(first, server.link)
            assert home.path == "/"
            async with first.get(home) as again:
                assert again.status == 200
            async with second.get(server.link) as used:
                assert used.status == 410
            async with second.get(home) as stranger:
                assert stranger.url.path == "/accounts/sign-in/"


def test_restart_keeps_the_people_and_prints_a_new_link(data: Path) -> None:
    with serving(data) as server:
        first = server.link
        assert server.end(signal.SIGTERM) == (0, "")
    with serving(data) as server:
        assert server.link.rpartition("/")[2] != first.rpartition("/")[2]


@pytest.mark.parametrize("kind", ["uvicorn", "daphne"])
@pytest.mark.parametrize(
    ("how", "command"), [(signal.SIGTERM, ()), (signal.SIGINT, in_the_background("manage.py", "serve"))]
)
async def test_signal_ends_it_cleanly(data: Path, how: signal.Signals, command: tuple[str, ...], kind: str) -> None:
    """RUN-15, LIVE-04: on a signal, the lease is released, sockets close with 1012, and streams of steps end
    completely. Nothing is printed."""
    with serving(data, *command, WEB_SERVER=kind) as server:
        assert workers(data) == 1
        async with browser() as person:
            path = await enter(person, server.link)
            steps = f"{server.address}/api{path}steps/stream"
            async with events(person, server, path) as socket, person.get(steps) as stream:
                await stream.content.readline()
                await heard(socket, "changes")
                assert await asyncio.to_thread(server.end, how) == (0, "")
                while (message := await socket.receive()).type is WSMsgType.TEXT:
                    pass
                assert (message.type, message.data) == (WSMsgType.CLOSE, 1012)
                assert (await stream.content.read()).endswith(b": that is all\n\n")
    assert workers(data) == 0


async def test_signal_in_mid_answer_ends_it_cleanly_and_the_next_start_goes_on(data: Path) -> None:
    """RUN-15: a running turn is released without waiting for it, and the next start continues it."""
    with serving(data) as server:
        async with browser() as person:
            path = await enter(person, server.link)
            async with events(person, server, path) as socket:
                await socket.send_json({"type": "send", "text": "slow", "key": "only once"})
                await heard(socket, "text_delta")
                assert server.end(signal.SIGTERM) == (0, "")
    assert workers(data) == 0

    with serving(data) as server:
        async with browser() as person:
            await sign_in(person, server.link)
            async with events(person, server, path) as socket:
                await heard(socket, "text_delta")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "password", "line"),
    [
        ({}, None, r"Parley is ready\. Sign in with this one-time link: http://127.0.0.1:8200/accounts/link/.+"),
        ({}, "correct horse", r"Parley is ready at http://127\.0\.0\.1:8200/"),
        ({"REDIS_URL": "redis://localhost"}, None, r"Parley is ready at .+ \(manage\.py signinlink prints .+\)"),
        ({"RUNNER": "none"}, None, r"Parley is ready at .+ \(manage\.py signinlink prints .+\)"),
        ({"REDIS_URL": "redis://localhost"}, "correct horse", r"Parley is ready at http://127\.0\.0\.1:8200/"),
    ],
)
def test_link_is_printed_where_there_is_no_other_way_in(
    settings: Settings, changes: dict[str, object], password: str | None, line: str
) -> None:
    """The link is printed only if there is no other way to sign in, because readers of a service's log could use it."""
    User.objects.create_superuser("boss", password=password)
    for name, value in changes.items():
        setattr(settings, name, value)
    command = Command()
    command.port = 8200

    assert re.fullmatch(line, command._welcome())


def test_taken_port_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = manage_forked("serve", data=tmp_path, PORT=str(port))

    assert ended.returncode == 1
    assert ended.stdout == ""
    problem = f"Parley cannot listen on 127.0.0.1:{port}: Address already in use."
    assert ended.stderr == f"{problem} Set HOST and PORT to an address that is free.\n"


def test_port_is_taken_before_anything_is_changed(tmp_path: Path) -> None:
    """A start on a port that is in use ends before it creates or changes a database."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        manage_forked("serve", data=tmp_path, PORT=str(taken.getsockname()[1]))

    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret_key", "vapid_key"]


@pytest.mark.parametrize("given", [{}, {"SECRET_KEY": "given" * 10}])
def test_unusable_data_folder_is_one_clear_line(tmp_path: Path, given: dict[str, str]) -> None:
    blocked = tmp_path / "file" / "data"
    blocked.parent.write_text("no folder")

    ended = manage("serve", data=blocked, **given)

    assert ended.returncode == 1
    assert re.fullmatch(rf"Parley cannot .*{blocked}: Not a directory\. Set PARLEY_DATA to .+\n", ended.stderr)


def test_broken_database_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "parley.sqlite3").write_text("this is no database, " * 100)

    ended = manage_forked("serve", data=tmp_path)

    assert ended.returncode == 1
    assert re.fullmatch(
        rf"Parley cannot use its database: {tmp_path}/parley\.sqlite3: file is not a database\. Check .+ a backup\.\n",
        ended.stderr,
    )


@pytest.mark.parametrize("command", ["serve", "verify"])
def test_postgresql_that_cannot_be_used_is_one_line_with_the_reason(tmp_path: Path, command: str) -> None:
    """Before, five warnings of the pool came first, and the last line only said that it got no connection."""
    ended = manage_forked(command, data=tmp_path, DATABASE_URL="postgres://u:secret@127.0.0.1:9/n")

    assert ended.returncode == 1
    assert re.fullmatch(
        r".*annot use (its|the) database: .*127\.0\.0\.1.*refused\. Check DATABASE_URL, and .+\n", ended.stderr
    )


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("PORT", "many", "PORT must be a whole number, not 'many'"),
        ("PORT", "99999", "PORT must be a number from 0 to 65535, not 99999"),
        ("CONNECTIONS_PER_ADDRESS", "-1", "CONNECTIONS_PER_ADDRESS must be a number from 0 to 2147483647, not -1"),
        ("RUNNER", "everywhere", "RUNNER must be one of embedded, none, not 'everywhere'"),
        ("RECOVERY", "pray", "RECOVERY must be one of resume, close, not 'pray'"),
        ("LOG_LEVEL", "loud", "LOG_LEVEL must be one of"),
        ("DEBUG", "perhaps", "DEBUG must be 1 or 0, not 'perhaps'"),
        ("DATABASE_URL", "oracle://u:secret@h/n", "DATABASE_URL must be sqlite:"),
        ("DATABASE_URL", "postgres://", "DATABASE_URL must be sqlite:"),
        ("DATABASE_URL", "sqlite://", "DATABASE_URL must be sqlite:"),
        ("REDIS_URL", "localhost:6379", "REDIS_URL must be redis://"),
        ("REDIS_URL", "http://u:secret@h", "REDIS_URL must be redis://"),
    ],
)
def test_bad_setting_is_reported_without_a_traceback(tmp_path: Path, name: str, value: str, words: str) -> None:
    assert_refused(manage("serve", data=tmp_path, **{name: value}), words)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("HOST", "no such host", "HOST=no such host is not a host name or an IP address."),
        ("HOST", "203.0.113.1", "cannot listen on 203.0.113.1:0: "),
        ("LEASE_SECONDS", "0.1", "LEASE_SECONDS=0.1 is too short"),
        ("DATABASE_URL", "postgres://u:secret@127.0.0.1:9/n", "DATABASE_URL"),
        ("PARLEY_CONFIG", "/no/such/file.toml", "/no/such/file.toml"),
    ],
)
def test_setting_that_fails_later_is_reported_without_a_traceback(
    tmp_path: Path, name: str, value: str, words: str
) -> None:
    """The settings are loaded, so the test needs no interpreter of its own: a check or the start finds the error."""
    assert_refused(manage_forked("serve", data=tmp_path, **{name: value}), words)


def assert_refused(ended: CompletedProcess[str], words: str) -> None:
    assert ended.returncode == 1
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "secret" not in ended.stderr


async def test_monitoring_port_answers_beside_the_pages(data: Path) -> None:
    """OPS-01, OPS-02: metrics have their own port, which serves no pages, and the port of the pages serves no
    metrics."""
    port = free_port()
    monitoring = f"http://127.0.0.1:{port}"
    with serving(data, MONITORING_PORT=str(port)) as server:
        async with browser() as stranger:

            async def get(address: str) -> tuple[int, str]:
                async with stranger.get(address) as response:
                    return response.status, await response.text()

            figures = (await get(f"{monitoring}/metrics"))[1]
            assert "parley_streams 0.0" in figures
            # Without it, an alert on an increase would miss the first error.
            assert 'parley_provider_errors_total{kind="authentication",provider="demo"} 0.0' in figures
            assert await get(f"{monitoring}/readyz") == await get(f"{server.address}/readyz")
            assert (await get(f"{monitoring}/accounts/sign-in/"))[0] == 404
            assert (await get(f"{server.address}/metrics"))[0] == 404
        assert server.end(signal.SIGTERM) == (0, "")


def test_taken_monitoring_port_is_one_clear_line(data: Path) -> None:
    """OPS-01: a port that is in use ends the process with one line, because it should not run unmonitored."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = manage_forked("serve", data=data, MONITORING_PORT=str(port), LOG_FORMAT="text")

    assert ended.returncode == 1
    assert f"Parley cannot start: it cannot listen on 127.0.0.1:{port}" in ended.stderr
    assert "Traceback" not in ended.stderr


async def test_log_lines_of_a_request_have_its_id(data: Path) -> None:
    """OPS-03: the log is JSON, because the output is not a terminal, and has the id of the session in the address."""
    session = "s_" + 24 * "a"
    with serving(data) as server:
        async with browser() as stranger:
            headers = {"Host": "elsewhere.example"}
            async with stranger.get(f"{server.address}/sessions/{session}/", headers=headers) as response:
                assert response.status == 400
        _code, printed = server.end(signal.SIGTERM)
    (line,) = [
        found for found in map(json.loads, printed.splitlines()) if found["logger"].startswith("django.security")
    ]
    assert (line["level"], line["session"]) == ("INFO", session)
    assert re.fullmatch(r"[0-9a-f]{16}", line["request"])
    assert line["worker"].startswith("w_")
