"""The application under other servers: the runner starts and stops with it, with or without lifespan."""

from __future__ import annotations

import asyncio
import signal
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import ClientConnectorError, ClientSession

from tests.commands.process import PATIENCE, environment, in_the_background, running, serving, workers

pytestmark = pytest.mark.server


def test_uvicorn_starts_and_stops_the_runner_by_lifespan(data: Path) -> None:
    command = (
        "-m",
        "uvicorn",
        "config.asgi:application",
        "--port",
        "0",
        "--lifespan",
        "on",
        "--ws",
        "websockets-sansio",
    )
    with serving(data, *command, ready="running on") as server:
        assert workers(data) == 1
        server.end(signal.SIGTERM)
    assert workers(data) == 0


async def test_server_without_lifespan_starts_the_runner_with_its_first_request(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/accounts/sign-in/"
        command = ("-m", "daphne", "--fd", str(listening.fileno()), "config.asgi:application")
        with running(command, environment(data), pass_fds=(listening.fileno(),)):
            async with ClientSession() as person, person.get(address) as page:
                assert page.status == 200
            assert workers(data) == 1


async def test_developers_server_runs_the_agents_and_gives_them_back(data: Path) -> None:
    """`manage.py runserver` is Daphne. The test leaves out its reloader, which watches files."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = in_the_background("-u", "manage.py", "runserver", "--noreload", str(port))
    with serving(data, *command, ready="Quit the server") as server:
        async with ClientSession() as person:
            async with asyncio.timeout(PATIENCE):
                while True:
                    with suppress(ClientConnectorError):  # the output tells that it starts, not that it has started
                        async with person.get(f"http://127.0.0.1:{port}/readyz") as probe:
                            if probe.status == 200:
                                break
        assert workers(data) == 1
        server.end(signal.SIGINT)
    assert workers(data) == 0
