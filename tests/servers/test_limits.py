"""The counts of connections, and of the unfinished frames of sockets."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django.fixtures import Settings

from chat.live.hub import Hub
from chat.origin import network_of
from chat.servers import limits, uvicorn_server
from chat.servers.limits import ConnectionLimit, FrameBudget

KB = 1024


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_client_is_an_address_or_a_network_of_one_customer(address: str, network: str) -> None:
    assert network_of(address) == network


def test_connections_are_bounded_by_address_and_in_all() -> None:
    limit = ConnectionLimit(per_address=2, in_all=3)

    assert [limit.admit(each) for each in ("192.0.2.1", "192.0.2.1", "192.0.2.1")] == [True, True, False]
    assert [limit.admit(each) for each in ("2001:db8::1", "2001:db8::2", "192.0.2.9")] == [True, False, False]
    limit.release("192.0.2.1")
    assert limit.admit("2001:db8::ffff")
    limit.release("2001:db8::1")
    assert limit.admit("2001:db8::3")


def test_no_limit_is_no_limit() -> None:
    limit = ConnectionLimit(per_address=0)

    assert all(limit.admit("192.0.2.1") for _ in range(5000))


@pytest.mark.parametrize(("https", "uvicorn", "daphne"), [(True, 650, 650), (False, 5, 60)])
def test_idle_connections_of_a_proxy_stay_open(settings: Settings, https: bool, uvicorn: int, daphne: int) -> None:
    """A proxy that keeps a connection for 600 s must not send a request while Parley closes it."""
    from chat.servers import daphne_server  # it installs one of Twisted's event loops next to that of the tests

    settings.HTTPS = https
    assert uvicorn_server.Config(limits.limits()).timeout_keep_alive == uvicorn
    server: Any = daphne_server.BoundedServer(None, endpoints=["unused"])
    server.http_factory = None  # as Daphne does when it starts
    assert server.http_factory.timeOut == daphne


class Socket:
    """A socket that records the code with which it was closed."""

    def __init__(self) -> None:
        self.code: int | None = None

    def give_up(self, code: int) -> None:
        self.code = code


async def test_largest_unfinished_frame_makes_room() -> None:
    """If unfinished frames fill the server, the largest one is closed, not a user's message of ordinary size."""
    budget = FrameBudget(limit=1000 * KB)
    honest, working, hostile = Socket(), Socket(), Socket()

    budget.update(honest, unfinished=200 * KB, whole=0)
    budget.update(working, unfinished=0, whole=500 * KB)
    budget.update(hostile, unfinished=290 * KB, whole=0)
    assert [each.code for each in (honest, working, hostile)] == [None, None, None]
    budget.update(honest, unfinished=220 * KB, whole=0)
    assert [each.code for each in (honest, working, hostile)] == [None, None, 1013]
    assert budget.total == 720 * KB


async def test_small_frames_and_closed_sockets_are_not_counted() -> None:
    budget = FrameBudget(limit=100 * KB)
    socket = Socket()

    for each in [Socket() for _ in range(50)]:
        budget.update(each, unfinished=60 * KB, whole=0)
    assert budget.total == 0
    budget.update(socket, unfinished=90 * KB, whole=0)
    budget.forget(socket)
    assert budget.total == 0


async def test_frame_has_to_grow() -> None:
    budget = FrameBudget(limit=10_000 * KB)
    still, slow, quick, working = (Socket() for _ in range(4))
    enough = int(limits.SLOWEST_BYTES_PER_SECOND * limits.SWEEP_SECONDS)

    for each in (still, slow, quick):
        budget.update(each, unfinished=100 * KB, whole=0)
    budget.update(working, unfinished=0, whole=100 * KB)
    budget.sweep()
    budget.update(slow, unfinished=100 * KB + enough - 1, whole=0)
    budget.update(quick, unfinished=100 * KB + enough, whole=0)
    budget.sweep()
    assert [each.code for each in (still, slow, quick, working)] == [4408, 4408, None, None]
    budget.forget(quick)
    budget.forget(working)


async def test_sockets_that_connect_at_the_same_time_are_counted(settings: Settings) -> None:
    """A socket joins the subscribers only after the database has confirmed its user's access."""
    settings.SOCKETS_PER_USER = 2
    hub = Hub()
    with (
        hub.connecting(1) as first,
        hub.connecting(1) as second,
        hub.connecting(1) as third,
        hub.connecting(2) as other,
    ):
        assert (first, second, third, other) == (True, True, False, True)
    with hub.connecting(1) as again:
        assert again
