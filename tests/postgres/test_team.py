"""Two server processes on one PostgreSQL and one Redis, with a user on each."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from agents.messages import Json
from chat.management.migration_lock import LOCK
from chat.models import ChatMessage, Session, User, Worker
from chat.queries.messages import changes_since
from chat.services.people import accounts
from tests.commands.process import Started, serving
from tests.live.states import assert_shows, is_at
from tests.support.client import EventsClient
from tests.support.database import empty_database
from tests.support.redis import Redis
from tests.support.remote_viewer import RemoteViewer
from tests.support.rest import check_rest
from tests.support.team import Team
from tests.support.testing_node import TestNode, let_in

pytestmark = [pytest.mark.postgres, pytest.mark.server]


@pytest.fixture
def new_database() -> Iterator[str]:
    with empty_database() as found:
        yield found


async def test_servers_that_start_together_prepare_a_new_database_once(
    new_database: str, prepared: Path, tmp_path: Path, redis: Redis
) -> None:
    """After an update of several machines, one server migrates and the others wait."""
    team = Team(prepared, tmp_path, new_database, redis.url)
    try:
        servers = await asyncio.gather(*(team.server(name) for name in ("one", "two", "three")))
        assert [server.line.startswith("Parley is ready at") for server in servers] == [True] * 3
    finally:
        await team.close()


def test_server_that_waits_for_another_says_so(new_database: str, data: Path) -> None:
    """A waiting server logs that it waits until the other one has finished in any way."""
    settings = {"DATABASE_URL": new_database, "SECRET_KEY": "the team's"}
    with psycopg.connect(new_database, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        with serving(data, ready="Waiting for another server", **settings) as server:
            other.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
            assert server.process.stdout is not None
            assert any(line.startswith("Parley is ready.") for line in server.process.stdout)


async def test_killed_server_costs_a_team_nothing(team: Team, ana: User, bo: User) -> None:
    """LIVE-01, LIVE-02, LIVE-05, RUN-15, MSG-03: each user sees the other's messages, and kill -9 in mid-answer loses
    no row. Viewers of the other server continue, and that server finishes the answer and the queue. Disconnected
    clients reconnect to it, and later to their own server."""
    node, people = team.node, [ana, bo]
    session = await node.session(ana)
    await node.do(let_in, session, bo, "editor")
    servers = [await team.server(name) for name in ("first", "second")]
    viewers = [await watch(node, session, *each) for each in zip(people, servers, strict=True)]
    viewers[0].send({"type": "send", "text": "markdown", "key": "once"})
    for viewer in viewers:
        await viewer.until(lambda: set(viewer.client.people) == {"Ana", "Bo"})  # noqa: B023  # waits within the round
        await viewer.until(lambda: len(answer(viewer)) > 40)  # noqa: B023
        assert any(frame["type"] == "text_delta" for frame in viewer.frames)
    viewers[1].send({"type": "send", "text": "echo still there", "key": "twice"})
    await viewers[0].until(lambda: "echo still there" in viewers[0].client.texts)
    fallen = await node.do(running_at, session, servers)
    thrown_out, staying = viewers[fallen], viewers[1 - fallen]
    heard = answer(thrown_out)
    await node.until(lambda: is_kept(session, heard[:40]))  # text of the writer's last interval may be lost
    servers[fallen].end(signal.SIGKILL)
    await thrown_out.leave()
    await node.idle(session)
    await node.do(check_rest, session)
    truth = await node.snapshot(session)
    await staying.until(lambda: is_at(staying.client, truth))
    assert_shows(staying.client, truth)
    cut = await node.do(ChatMessage.objects.get, session=session, status="interrupted", type="text")
    assert cut.text.startswith(heard[:40])
    assert [row["text"] for row in said_by_people(staying)] == ["markdown", "echo still there"]
    assert staying.client.texts[-1] == "still there"
    for server in (servers[1 - fallen], await team.server("third")):
        back = RemoteViewer(thrown_out.client, session, people[fallen])
        await back.open(server.address, await node.do(accounts.sign_in_link, user=people[fallen]))
        await back.until(lambda: is_at(thrown_out.client, truth))
        assert_shows(back.client, truth)
        await back.leave()
    await staying.leave()


async def watch(node: TestNode, session: Session, user: User, server: Started) -> RemoteViewer:
    viewer = RemoteViewer(EventsClient(), session, user)
    await viewer.open(server.address, await node.do(accounts.sign_in_link, user=user))
    await viewer.until(lambda: viewer.client.caught_up)
    return viewer


def running_at(session: Session, servers: list[Started]) -> int:
    """Return which of the servers has the claim."""
    label = Worker.objects.get(runs__session=session).label
    return [server.process.pid for server in servers].index(int(label.split()[-1]))


def is_kept(session: Session, words: str) -> bool:
    """Return whether the rows have a message with these first words."""
    changes = changes_since(session.pk, 0)
    return changes is not None and any(each.text.startswith(words) for each in changes.messages)


def answer(viewer: RemoteViewer) -> str:
    """Return the agent's text so far."""
    return "".join(row["text"] for row in viewer.client.rows if row["type"] == "text" and row["role"] == "assistant")


def said_by_people(viewer: RemoteViewer) -> list[Json]:
    return [row for row in viewer.client.rows if row["type"] == "text" and row["role"] == "user"]
