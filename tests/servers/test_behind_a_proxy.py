"""Connections of a proxy (HTTPS=1), on both servers."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.conftest import SERVERS
from tests.support.prepared import copy
from tests.support.server import ForkedServer, Server

pytestmark = pytest.mark.server
FORWARDED = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7"}
# Seconds after which uvicorn and most servers close an idle connection by default.
USUAL_SECONDS = 5


@pytest.fixture(params=SERVERS)
def proxied(request: pytest.FixtureRequest, prepared: Path, tmp_path: Path) -> Iterator[Server]:
    server = ForkedServer(copy(prepared, tmp_path / "data"), WEB_SERVER=request.param, HTTPS="1")
    server.start()
    yield server
    server.stop()


def test_idle_connection_is_kept_until_the_server_stops(proxied: Server) -> None:
    """A proxy sends the next request on a connection that was idle. The stop closes idle connections immediately."""
    connection = http.client.HTTPConnection("127.0.0.1", proxied.port, timeout=30)
    connection.connect()
    first = connection.sock
    for pause in (0, USUAL_SECONDS + 1):
        time.sleep(pause)
        connection.request("GET", "/accounts/sign-in/", headers=FORWARDED)
        response = connection.getresponse()
        response.read()
        assert (response.status, connection.sock) == (200, first)
    began = time.monotonic()
    proxied.stop()
    assert first.recv(1) == b""
    assert time.monotonic() - began < USUAL_SECONDS
    connection.close()
