"""Sockets while PostgreSQL hangs: it accepts connections and statements but does not answer."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from chat.asgi.socket_credentials import AuthenticatedSockets
from chat.live import sign_ins
from chat.live.subscriber import SIGN_IN_AGAIN, TRY_LATER
from chat.models import Session, User
from chat.runner import runtime
from tests.postgres.test_silence import connect, server_socket, through
from tests.support.silent_proxy import SilentProxy
from tests.support.socket import ROUTES, Socket, path_of
from tests.support.testing_node import TestNode

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("transactional_db")]
APPLICATION: Any = AuthenticatedSockets(ROUTES)
HEADERS = [(b"host", b"localhost"), (b"origin", b"http://localhost")]


def cookie_of(user: User) -> tuple[bytes, bytes]:
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    return b"cookie", f"theme=dark; {name}={client.cookies[name].value}".encode()


def socket_on(session: Session, cookie: tuple[bytes, bytes]) -> Socket:
    return Socket(path_of(session), app=APPLICATION, headers=[cookie, *HEADERS])


async def test_sockets_are_answered_while_the_database_hangs(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-04: pings are answered while a command waits, and new clients learn when to reconnect.

    The first ones learn it after a timeout and later ones immediately, without waiting behind pages and commands.
    """
    session = await node.session(ana)
    cookie = await node.do(cookie_of, ana)
    hub = runtime.hub()
    async with SilentProxy(server_socket()) as proxy, AsyncExitStack() as sockets:
        with through(proxy):
            await connect(hub.sign_ins._threads, sign_ins.THREADS)
            await connect(hub.threads, 4)
        viewer = await sockets.enter_async_context(socket_on(session, cookie))
        await viewer.let_in()
        proxy.flowing.clear()
        viewer.send(type="rename", title="Later", ref="hangs")
        viewer.send(type="ping")
        pong = len(viewer.frames)
        await viewer.until(lambda: any(each["type"] == "pong" for each in viewer.frames[pong:]))
        assert not [each for each in viewer.frames if each.get("ref") == "hangs"]

        monkeypatch.setattr(sign_ins, "PATIENCE", 0.3)
        first = [await sockets.enter_async_context(socket_on(session, cookie)) for _ in range(sign_ins.THREADS)]
        assert [await each.closed() for each in first] == [TRY_LATER] * sign_ins.THREADS
        monkeypatch.setattr(sign_ins, "PATIENCE", 60.0)
        monkeypatch.setattr(sign_ins, "HANGING", 0.2)
        late = await sockets.enter_async_context(socket_on(session, cookie))
        assert await late.closed() == TRY_LATER

        proxy.flowing.set()
        await viewer.next(ref="hangs", type="ack")
        async with asyncio.timeout(20):
            while hub.sign_ins._began:  # noqa: ASYNC110  # threads have no event
                await asyncio.sleep(0.01)
        await (await sockets.enter_async_context(socket_on(session, cookie))).let_in()


async def test_cookie_of_no_one_lets_no_one_in(node: TestNode, ana: User) -> None:
    """LIVE-06: an unknown session, no session, and one whose login has ended are refused."""
    session = await node.session(ana)
    cookie = await node.do(cookie_of, ana)
    async with socket_on(session, cookie) as known:
        await known.let_in()
    await node.do(lambda: User.objects.filter(pk=ana.pk).update(password="other"))
    for headers in (cookie, (b"cookie", b"sessionid=unknown"), (b"x-other", b"1")):
        async with socket_on(session, headers) as stranger:
            assert await stranger.closed() == SIGN_IN_AGAIN
