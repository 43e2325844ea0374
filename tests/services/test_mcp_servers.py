"""MCP servers of workspaces: who may add and change them, and which data is kept."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings as DjangoSettings

from agents.providers.scripted import ScriptedProvider
from chat import agents_setup
from chat.errors import Forbidden, NoSuchWorkspace, ServiceError
from chat.models import McpServer, Membership, SecurityEvent, Session, User, Workspace
from chat.queries import presets
from chat.queries.mcp_servers import as_added, headers_of, patterns_in, with_servers
from chat.services.batches import Deadline
from chat.services.maintenance import jobs
from chat.services.people import mcp_servers
from chat.services.people.mcp_servers import Settings
from chat.services.sessions.lifecycle import configure, create_session
from tests.support.testing_node import ScriptedRegistry

pytestmark = pytest.mark.django_db
URL = "https://tickets.example.com/mcp"


@pytest.fixture
def owner(ana: User, workspace: Workspace) -> User:
    Membership.objects.filter(user=ana, workspace=workspace).update(role=Membership.Role.OWNER)
    return ana


@pytest.fixture
def _notes() -> Iterator[None]:
    """A server named notes that the operator has configured."""
    config = {
        "providers": {"scripted": {"type": "demo", "models": {"one": {}}}},
        "agents": {"agent": {"model": "scripted/one"}},
        "mcp": {"notes": {"url": "https://notes.example.com/mcp"}},
    }
    agents_setup.install(ScriptedRegistry(ScriptedProvider([]), config))
    yield
    agents_setup.reset()


def add(owner: User, workspace: Workspace, **given: Any) -> McpServer:
    values = {"name": "tickets", "url": URL, **given}
    return mcp_servers.add(author=owner, workspace_id=workspace.pk, given=Settings(**values))


def words(owner: User, workspace: Workspace, **given: Any) -> str:
    with pytest.raises(ServiceError) as refused:
        add(owner, workspace, **given)
    return refused.value.message


@pytest.mark.parametrize("role", [Membership.Role.OWNER, Membership.Role.ADMIN])
def test_owners_and_admins_add_servers(ana: User, workspace: Workspace, role: str) -> None:
    Membership.objects.filter(user=ana, workspace=workspace).update(role=role)
    server = add(ana, workspace)
    assert list(mcp_servers.servers_of(ana, workspace.pk)) == [server]
    mcp_servers.remove(author=ana, server_id=server.pk)
    kinds = list(SecurityEvent.objects.order_by("pk").values_list("kind", "details__host"))
    assert kinds == [
        ("mcp_server_added", "tickets.example.com:443"),
        ("mcp_server_removed", "tickets.example.com:443"),
    ]


@pytest.mark.parametrize(
    ("role", "error"), [(Membership.Role.MEMBER, Forbidden), (Membership.Role.GUEST, NoSuchWorkspace)]
)
def test_others_do_not(owner: User, bo: User, workspace: Workspace, role: str, error: type[ServiceError]) -> None:
    Membership.objects.filter(user=bo, workspace=workspace).update(role=role)
    server = add(owner, workspace)
    with pytest.raises(error):
        add(bo, workspace, name="other")
    with pytest.raises(ServiceError, match="no longer exists"):
        mcp_servers.remove(author=bo, server_id=server.pk)
    with pytest.raises(ServiceError, match="no longer exists"):
        mcp_servers.change(author=bo, server_id=server.pk, given=Settings("x", URL))


@pytest.mark.usefixtures("_notes")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "two__parts"}, "letters and digits"),
        ({"name": ""}, "letters and digits"),
        ({"name": "notes"}, "configuration file"),
        ({"name": "TICKETS"}, "already has"),
        ({"name": "a", "url": "http://tickets.example.com/mcp"}, "https://"),
        ({"name": "a", "url": "https://user:password@tickets.example.com/"}, "https://"),
        ({"name": "a", "url": "file:///etc/passwd"}, "https://"),
        ({"name": "a", "url": "https://"}, "https://"),
        ({"name": "a", "url": "https://10.0.0.1/mcp"}, "internal address"),
        ({"name": "a", "url": "https://[::1]/mcp"}, "internal address"),
        ({"name": "a", "url": "https://localhost/mcp"}, "internal address"),
        ({"name": "a", "url": "https://localhost./mcp"}, "internal address"),
        ({"name": "a", "url": "https://2130706433/mcp"}, "internal address"),
        ({"name": "a", "url": "https://010.0.0.1/mcp"}, "internal address"),
        ({"name": "a", "url": "https://192.168.08.1/mcp"}, "internal address"),
        ({"name": "a", "url": "https://08.8.8.8/mcp"}, "valid IP address"),
        ({"name": "a", "url": "https://1.2.3.4.5/mcp"}, "valid IP address"),
        ({"name": "a", "headers": {"Host": "x"}}, "can’t be used"),
        ({"name": "a", "headers": {"A B": "x"}}, "can’t be used"),
        ({"name": "a", "headers": {"A": "x\r\nB: y"}}, "characters that a header"),
        ({"name": "a", "headers": {"A": "x" * 8_001}}, "up to 8000 characters"),
        ({"name": "a", "approval": "perhaps"}, "options"),
        ({"name": "a", "time_limit": 0}, "time limit"),
        ({"name": "a", "time_limit": float("nan")}, "time limit"),
        ({"name": "a", "tools": ["x"] * 201}, "tools"),
    ],
)
def test_what_cannot_work_is_refused(owner: User, workspace: Workspace, given: dict[str, Any], said: str) -> None:
    add(owner, workspace)
    assert said in words(owner, workspace, **given)


@pytest.mark.parametrize("host", ["8.8.8.8", "1.0.0.1", "100.com", "1e100.net", "0x.example", "[2606:4700::1111]"])
def test_public_addresses_with_digits_are_accepted(owner: User, workspace: Workspace, host: str) -> None:
    """The check of unusual forms of IP addresses refuses neither public addresses nor names with digits."""
    assert add(owner, workspace, url=f"https://{host}/mcp").url == f"https://{host}/mcp"


def test_secrets_are_encrypted_and_stay_with_their_host(owner: User, workspace: Workspace) -> None:
    server = add(owner, workspace, headers={"Authorization": "Bearer ${SECRET_KEY}"})
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM chat_mcpserver")
        assert "Bearer" not in str(cursor.fetchall())
    assert mcp_servers.header_names(server) == ["Authorization"]
    assert as_added(server).headers == {"Authorization": "Bearer ${SECRET_KEY}"}
    assert "Bearer" not in repr(as_added(server))
    kept = mcp_servers.change(author=owner, server_id=server.pk, given=Settings("tickets", URL + "/2"))
    assert mcp_servers.header_names(kept) == ["Authorization"]
    moved = mcp_servers.change(
        author=owner, server_id=server.pk, given=Settings("tickets", "https://other.example.com/")
    )
    assert mcp_servers.header_names(moved) == []


def test_another_secret_key_loses_the_headers_only(owner: User, workspace: Workspace, settings: DjangoSettings) -> None:
    server = add(owner, workspace, headers={"Authorization": "Bearer x"})
    settings.SECRET_KEY = "another"
    assert as_added(server).headers == {}


def test_the_operator_allows_internal_hosts(owner: User, workspace: Workspace, settings: DjangoSettings) -> None:
    settings.MCP_INTERNAL_HOSTS = ("127.0.0.1", "*.lan")
    add(owner, workspace, name="one", url="http://127.0.0.1:9/mcp")
    server = add(owner, workspace, name="two", url="http://tickets.lan/mcp")
    assert as_added(server).config.internal_hosts == ("127.0.0.1", "*.lan")
    assert "https://" in words(owner, workspace, name="three", url="http://lan/mcp")


def test_a_removed_server_is_used_by_no_agent_and_can_be_restored(owner: User, workspace: Workspace, bo: User) -> None:
    server = add(owner, workspace, headers={"X-Key": "secret"})
    session = create_session(owner=owner, workspace=workspace)
    mcp_servers.remove(author=owner, server_id=server.pk)
    assert with_servers(presets.own(session), session).servers == ()
    assert patterns_in(workspace.pk) == set()
    for of_gone in (mcp_servers.remove, partial(mcp_servers.change, given=Settings("tickets", URL))):
        with pytest.raises(ServiceError, match="no longer exists"):
            of_gone(author=owner, server_id=server.pk)
    with pytest.raises(ServiceError, match="no longer exists"):
        mcp_servers.restore(author=bo, server_id=server.pk)
    restored = mcp_servers.restore(author=owner, server_id=server.pk)
    assert headers_of(restored) == {"X-Key": "secret"}
    assert [each.name for each in with_servers(presets.own(session), session).servers] == ["tickets"]


def test_another_server_takes_the_name_of_a_removed_one(owner: User, workspace: Workspace) -> None:
    server = add(owner, workspace)
    mcp_servers.remove(author=owner, server_id=server.pk)
    add(owner, workspace, name="Tickets")
    with pytest.raises(ServiceError, match="no longer exists"):
        mcp_servers.restore(author=owner, server_id=server.pk)


def test_a_removed_server_is_deleted_after_a_month(owner: User, workspace: Workspace) -> None:
    first, second = add(owner, workspace), add(owner, workspace, name="second")
    for server in (first, second):
        mcp_servers.remove(author=owner, server_id=server.pk)
    long_ago = timezone.now() - mcp_servers.KEPT - timedelta(seconds=1)
    McpServer.objects.filter(pk=first.pk).update(removed_at=long_ago)
    jobs.delete_expired(Deadline())
    assert list(McpServer.objects.all()) == [second]


def test_sessions_have_the_servers_of_their_workspace(owner: User, workspace: Workspace, bo: User) -> None:
    server = add(owner, workspace)
    add(owner, workspace, name="named", for_all_agents=False)
    session = create_session(owner=owner, workspace=workspace)
    own = with_servers(presets.own(session), session)
    assert [each.name for each in own.servers] == ["named", "tickets"]
    assert own.tools[-1] == "tickets__*"
    assert patterns_in(workspace.pk) == {"tickets__*", "named__*"}
    configure(session=session, author=owner, tools=["named__*"])
    assert presets.agent_copy(Session.objects.get(pk=session.pk)).tools == ("named__*",)
    session.mode = Session.Mode.CHAT
    assert with_servers(presets.own(session), session).servers == ()
    session.mode = Session.Mode.AGENT
    mcp_servers.change(author=owner, server_id=server.pk, given=Settings("tickets", URL, is_enabled=False))
    assert [each.name for each in with_servers(presets.own(session), session).servers] == ["named"]
    elsewhere = create_session(owner=owner, workspace=Workspace.objects.create(name="Other"))
    assert with_servers(presets.own(elsewhere), elsewhere).servers == ()


def test_header_that_is_entered_twice_is_refused() -> None:
    """Otherwise one of the values would be lost without a word, or both would be sent."""
    with pytest.raises(ServiceError, match="Enter “authorization” only once"):
        mcp_servers.headers_from(["Authorization: Bearer a", "authorization: Bearer b"])


@pytest.mark.parametrize("line", ["Authorization", "Authorization:", "Authorization:  "])
def test_header_without_a_value_is_refused(line: str) -> None:
    """Otherwise the server would refuse all requests, and the form would show a header that is set."""
    with pytest.raises(ServiceError, match="Write each header as “Name: value”"):
        mcp_servers.headers_from([line])
