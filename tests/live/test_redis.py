"""Several web processes on a real Redis, which is also killed, frozen and restarted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from random import Random

import pytest
import pytest_asyncio
from channels.layers import channel_layers, get_channel_layer
from pytest_django.fixtures import Settings

from agents.providers.scripted import Gate
from chat.bus import publisher as publishing
from chat.commands import SYSTEM_PROMPT
from chat.live import feed as feeds
from chat.live import hub as hubs
from chat.live import layer_connection
from chat.live.hub import Hub
from chat.models import Session, User
from chat.services.sessions import lifecycle
from tests.live.conversation import converse
from tests.live.states import assert_shows, is_at
from tests.support.client import EventsClient
from tests.support.loop import TestLoop
from tests.support.page_client import PageClient
from tests.support.redis import Redis
from tests.support.silent_proxy import SilentProxy
from tests.support.testing_node import TestNode, let_in
from tests.support.viewer import HubViewer, SocketViewer, Viewer

STREAM = ("<StreamWriter", "transport", "<socket")
pytestmark = [
    pytest.mark.server,
    # After an outage, the receiver of channels_redis and a subscription may open the same connection twice.
    # redis-py then drops the first stream. Python since 3.11.5 warns about its writer, earlier versions about parts.
    *(pytest.mark.filterwarnings(f"ignore:unclosed {part}:ResourceWarning") for part in STREAM),
]
Anyone = Viewer[EventsClient | PageClient]
INTERFACES = (EventsClient, PageClient)


@pytest_asyncio.fixture
async def proxy(redis: Redis) -> AsyncIterator[SilentProxy]:
    """A proxy between the layer and Redis."""
    async with SilentProxy(redis.port) as proxy:
        yield proxy
        # Otherwise, the garbage collector may find what redis-py has dropped in a later test, which then fails.
        loop = asyncio.get_running_loop()
        assert isinstance(loop, TestLoop)
        loop.abort_connections_to(proxy.port)
        await asyncio.sleep(0)


@pytest.fixture
def layer(proxy: SilentProxy, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The channel layer of installations with several processes."""
    monkeypatch.setattr(hubs, "BEACON_INTERVAL", 0.2)
    monkeypatch.setattr(layer_connection, "ECHO_INTERVAL", 0.2)
    address = f"redis://127.0.0.1:{proxy.port}/0"
    settings.CHANNEL_LAYERS = {
        "default": {"BACKEND": "chat.overrides.redis_layer.RedisLayer", "CONFIG": {"hosts": [address]}}
    }
    assert type(get_channel_layer()).__name__ == "RedisLayer"
    yield
    channel_layers.backends.clear()


@pytest.fixture
def team(layer: None, node: TestNode) -> Iterator[TestNode]:
    """A node on Redis; outages logged by Redis' client are ignored."""
    logging.getLogger("channels_redis.pubsub").disabled = True
    yield node
    logging.getLogger("channels_redis.pubsub").disabled = False


async def everyone(session: Session, user: User, other: Hub) -> list[Anyone]:
    """Return pages and clients on both hubs."""
    viewers: list[Anyone] = [await SocketViewer(face(), session, user).open() for face in INTERFACES]
    viewers += [HubViewer(face(), session, user).open(other) for face in INTERFACES]
    for viewer in viewers:
        await viewer.until(lambda: viewer.client.caught_up)  # noqa: B023  # waits within the round
    return viewers


async def leave(viewers: list[Anyone]) -> None:
    for viewer in viewers:
        if isinstance(viewer, SocketViewer):
            await viewer.leave()
        elif isinstance(viewer, HubViewer):
            viewer.leave()


async def assert_all_show(node: TestNode, session: Session, viewers: list[Anyone]) -> None:
    await node.idle(session)
    truth = await node.snapshot(session)
    for viewer in viewers:
        await viewer.until(lambda: is_at(viewer.client, truth))  # noqa: B023  # waits within the round
        if isinstance(viewer.client, PageClient):
            viewer.client.drawn.clear()  # an outage may have interrupted it
        assert_shows(viewer.client, truth)


@pytest.mark.parametrize("seed", range(2))
async def test_viewers_of_all_processes_see_the_same(
    team: TestNode, second_hub: Hub, ana: User, bo: User, seed: int
) -> None:
    """LIVE-01: viewers on Redis get the same as on the in-memory layer."""
    session = await team.session(ana)
    viewers = await everyone(session, ana, second_hub)
    await converse(team, session, [ana], Random(seed))
    await assert_all_show(team, session, viewers)
    await leave(viewers)


async def test_people_on_all_processes_are_here(team: TestNode, second_hub: Hub, ana: User, bo: User) -> None:
    """LIVE-05, LIVE-08: presence, typing, editors and list notifications work over Redis as in memory."""
    session = await team.session(ana)
    await team.do(let_in, session, bo, "editor")
    there = HubViewer(EventsClient(), session, bo).open(second_hub)
    await there.until(lambda: there.client.people)
    here = await SocketViewer(PageClient(), session, ana).open()
    await there.until(lambda: set(there.client.people) == {"Ana", "Bo"})
    await here.socket.ask(type="typing")
    await there.until(lambda: there.client.people["Ana"])
    await here.socket.ask(type="editing", id=SYSTEM_PROMPT)
    await there.until(lambda: there.client.editors == {SYSTEM_PROMPT: ["Ana"]})
    await team.do(lifecycle.rename, session=session, author=ana, title="New")
    await here.until(lambda: {"op": "rail", "own": True} in here.client.others)
    await here.leave()
    await there.until(lambda: set(there.client.people) == {"Bo"})
    await there.until(lambda: there.client.editors == {})
    there.leave()


async def test_viewers_catch_up_after_redis_was_killed(
    team: TestNode, redis: Redis, second_hub: Hub, ana: User
) -> None:
    """LIVE-02: after Redis was killed in mid-stream, the beacon reports the missed text, and later text is live."""
    before, during, after = Gate(), Gate(), Gate()
    team.script([["One ", before, "*two* ", during, "three ", after, "four"], ["Five"]])
    session = await team.session(ana)
    viewers = await everyone(session, ana, second_hub)
    await team.send(session, ana, "Go")
    await before.reached()
    redis.kill()
    before.open()
    await during.reached()
    await team.do(lifecycle.rename, session=session, author=ana, title="While it was away")
    during.open()
    await after.reached()
    for viewer in viewers:
        await viewer.until(lambda: _title(viewer) == "While it was away")  # noqa: B023  # by the beacon alone
    await redis.start()
    after.open()
    await assert_all_show(team, session, viewers)
    await team.send(session, ana, "Again")
    await assert_all_show(team, session, viewers)
    await leave(viewers)


def _title(viewer: Anyone) -> str:
    client = viewer.client
    return client.session["title"] if isinstance(client, EventsClient) else client.parts["title"].strip()


async def test_last_event_lost_in_an_outage_is_fetched(
    team: TestNode, redis: Redis, second_hub: Hub, ana: User
) -> None:
    """LIVE-02: the beacon reports the end of a turn that was lost while Redis was away."""
    end = Gate()
    team.script([["One ", end, "two"]])
    session = await team.session(ana)
    viewers = await everyone(session, ana, second_hub)
    await team.send(session, ana, "Go")
    await end.reached()
    redis.kill()
    end.open()
    await assert_all_show(team, session, viewers)
    await leave(viewers)


async def test_session_first_watched_in_an_outage_is_live_after_it(
    team: TestNode, redis: Redis, second_hub: Hub, ana: User
) -> None:
    """LIVE-02: viewers who join while Redis is away see the rows, and get live events when it returns."""
    team.script(lambda request: ["Yes."])
    session = await team.session(ana)
    redis.kill()
    viewers = await everyone(session, ana, second_hub)
    await team.send(session, ana, "Go")
    await assert_all_show(team, session, viewers)
    await redis.start()
    async with asyncio.timeout(20):
        while not all(_hears(viewer) for viewer in viewers):  # Redis' client reconnects after a second
            await team.send(session, ana, "Live?")
            await assert_all_show(team, session, viewers)
    await leave(viewers)


def _hears(viewer: Anyone) -> bool:
    """Return whether the viewer gets events of the stream; the beacon sends only heads and changes."""
    return any(frame.get("type") == "text_delta" or frame.get("op") == "delta" for frame in viewer.frames)


async def test_frozen_redis_delays_no_turn_and_no_viewer(
    team: TestNode, redis: Redis, second_hub: Hub, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-02, RUN-14: while a frozen Redis accepts requests without answering, turns run and viewers join."""
    for module, name in ((publishing, "SEND_TIMEOUT"), (feeds, "SUBSCRIBE_TIMEOUT")):
        monkeypatch.setattr(module, name, 0.05)
    team.script([["One"], ["Two"]])
    session = await team.session(ana)
    redis.freeze()
    viewers = await everyone(session, ana, second_hub)
    await team.send(session, ana, "Go")
    await assert_all_show(team, session, viewers)
    redis.thaw()
    await team.send(session, ana, "Again")
    await assert_all_show(team, session, viewers)
    await leave(viewers)


async def test_live_stream_returns_after_a_network_that_lost_everything(
    team: TestNode, proxy: SilentProxy, second_hub: Hub, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-02, RUN-14: connections to Redis that are dead without an error delay no turn, and are replaced."""
    for module, name in ((publishing, "SEND_TIMEOUT"), (layer_connection, "TIMEOUT")):
        monkeypatch.setattr(module, name, 0.5)
    silent = Gate()
    team.script(lambda request: ["One ", silent, "two"] if not silent._reached.is_set() else ["Yes."])
    session = await team.session(ana)
    viewers = await everyone(session, ana, second_hub)
    await team.send(session, ana, "Go")
    await silent.reached()
    proxy.lose()
    silent.open()
    await assert_all_show(team, session, viewers)
    proxy.recover()
    for viewer in viewers:
        viewer.frames.clear()
    async with asyncio.timeout(20):
        while not all(_hears(viewer) for viewer in viewers):  # until both hubs have reconnected
            await team.send(session, ana, "Live?")
            await assert_all_show(team, session, viewers)
    await leave(viewers)
