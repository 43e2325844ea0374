"""Signing in to an MCP server from the page of a workspace (UI-19), at a real authorization server."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from mcp.client.auth import OAuthRegistrationError
from pytest_django.fixtures import Settings

from agents.mcp import oauth
from agents.mcp.sign_in import Grant, SignInEnded
from chat.models import McpServer, Membership, SecurityEvent, User, Workspace
from chat.queries.mcp_servers import as_added
from chat.runner.mcp_tokens import TokenStore
from chat.services.people import mcp_sign_in
from chat.views import mcp_sign_in as views
from tests.support.mcp_server import AUTH_SERVER, serving
from tests.support.signed_in import signed_in
from tests.support.testing_node import person

pytestmark = pytest.mark.django_db
BACK = "mcp-servers/callback"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(sys.executable, str(AUTH_SERVER)) as address:
        yield address


@pytest.fixture
def page(ana: User, workspace: Workspace, settings: Settings) -> Client:
    settings.MCP_INTERNAL_HOSTS = ("127.0.0.1",)
    Membership.objects.filter(user=ana, workspace=workspace).update(role=Membership.Role.ADMIN)
    return signed_in(ana)


@pytest.fixture
def server(workspace: Workspace, address: str) -> McpServer:
    return McpServer.objects.create(workspace=workspace, name="notes", url=address)


def where(server: McpServer) -> str:
    return reverse("mcp-servers", args=[server.workspace_id])


def begun(page: Client, server: McpServer) -> str:
    """Press Connect and return the address of the link to the authorization server."""
    answer = page.post(where(server), {"part": "connect", "server": server.pk})
    assert answer.status_code == 200
    found = re.search(r'href="([^"]*authorize[^"]*)"', answer.content.decode())
    assert found is not None
    return unescape(found[1])


def allowed(url: str, answer: str = "allow") -> str:
    """Allow access at the authorization server, like a user, and return the query of the redirect to Parley."""
    consent = httpx2.get(url).headers["location"].replace("consent", answer)
    return urlsplit(httpx2.get(consent).headers["location"]).query


def back(page: Client, query: str) -> str:
    """Follow the redirect to Parley and return the text of the page that it leads to."""
    answer = page.get(f"{reverse('mcp-callback')}?{query}", follow=True)
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def connected(page: Client, server: McpServer) -> Grant:
    assert "“notes” is connected." in back(page, allowed(begun(page, server)))
    grant = mcp_sign_in.grant_of(server.pk)
    assert grant is not None
    return grant


@pytest.mark.django_db(transaction=True)
def test_admin_connects_a_server_and_disconnects_it(page: Client, server: McpServer, ana: User) -> None:
    """UI-19: the token is encrypted and never shown; the page says who connected; the test uses it."""
    grant = connected(page, server)
    server.refresh_from_db()
    assert (server.sign_in_status, server.signed_in_by, server.revision) == ("connected", ana, 2)
    assert grant.access_token not in server.sign_in
    shown = page.get(where(server)).content.decode()
    assert "Connected by" in shown
    assert grant.access_token not in shown
    tested = page.post(where(server), {"part": "test", "server": server.pk}).content.decode()
    assert "<code>read_note</code>" in tested
    assert page.post(where(server), {"part": "disconnect", "server": server.pk}).status_code == 302
    server.refresh_from_db()
    assert (server.sign_in, server.sign_in_status, server.signed_in_by) == ("", "", None)
    kinds = set(SecurityEvent.objects.values_list("kind", flat=True))
    assert {"mcp_server_connected", "mcp_server_disconnected"} <= kinds


@pytest.mark.parametrize(
    ("public", "home"), [("https://chat.example.org", "https://chat.example.org"), ("", "http://testserver")]
)
def test_authorization_server_redirects_to_the_public_address(
    page: Client, server: McpServer, settings: Settings, public: str, home: str
) -> None:
    """UI-19: behind a proxy that passes on another host name, the request does not contain the address of users."""
    settings.PUBLIC_URL = public
    query = parse_qs(urlsplit(begun(page, server)).query)
    assert query["redirect_uri"] == [home + reverse("mcp-callback")]


def test_state_is_valid_once_in_its_own_browser(page: Client, server: McpServer, ana: User) -> None:
    """UI-19: a sign-in that was begun in another browser, a second use, or an unknown state connects nothing."""
    query = allowed(begun(page, server))
    assert "no longer valid" in back(signed_in(ana), query)
    assert not McpServer.objects.get().sign_in
    assert "is connected" in back(page, query)
    assert "no longer valid" in back(page, query)
    wrong = urlencode({"code": "x", "state": "y"})
    assert "no longer valid" in back(page, wrong)


def test_state_expires(page: Client, server: McpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    query = allowed(begun(page, server))
    monkeypatch.setattr(views, "PENDING_SECONDS", -1)
    assert "no longer valid" in back(page, query)


def test_who_lost_the_right_in_between_connects_nothing(page: Client, server: McpServer, ana: User) -> None:
    query = allowed(begun(page, server))
    Membership.objects.filter(user=ana).update(role=Membership.Role.MEMBER)
    assert "no longer exists" in back(page, query)
    assert not McpServer.objects.get().sign_in


def test_refused_consent_is_said(page: Client, server: McpServer) -> None:
    assert "Couldn’t connect “notes”: access_denied." in back(page, allowed(begun(page, server), "deny"))


def test_how_to_register_a_client_is_said_in_the_language_of_the_page(
    page: Client, server: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UI-13, UI-19: the instruction names parts of the page, so it is translated, unlike other reasons."""

    def refuse(config: object) -> None:
        raise OAuthRegistrationError("Registration failed: 404")

    monkeypatch.setattr(oauth, "open_client", refuse)
    asked = {"part": "connect", "server": server.pk}
    answer = page.post(where(server), asked, headers={"Accept-Language": "zh-CN"}).content.decode()
    assert "无法连接“notes”：授权服务器不允许 Parley 自行注册。" in answer
    assert f"重定向地址为 http://testserver/{BACK}" in answer
    assert "“编辑 › 高级”中填写 OAuth 客户端 ID 和密钥。服务器的应答：Registration failed: 404。" in answer


def test_address_that_changed_in_between_gets_no_token(page: Client, server: McpServer) -> None:
    query = allowed(begun(page, server))
    with serving(sys.executable, str(AUTH_SERVER)) as other:
        McpServer.objects.update(url=other)
        assert "Couldn’t connect “" in back(page, query)
    assert not McpServer.objects.get().sign_in


def test_new_host_forgets_the_sign_in(page: Client, server: McpServer) -> None:
    """UI-19: a token is used only for the server that issued it, so a new host removes it."""
    connected(page, server)
    given = {"name": "notes", "approval": "never", "time_limit": "60", "is_enabled": "on"}
    change = {"part": "change", "server": server.pk, "url": "https://other.example/mcp", **given}
    assert page.post(where(server), change).status_code == 302
    server.refresh_from_db()
    assert (server.sign_in, server.sign_in_status) == ("", "")


def test_server_without_a_sign_in_says_so(page: Client, server: McpServer) -> None:
    with serving() as plain:
        McpServer.objects.update(url=plain)
        answer = page.post(where(server), {"part": "connect", "server": server.pk})
    assert answer.status_code == 422
    assert "does not require a sign-in" in answer.content.decode()


def test_client_that_was_registered_by_hand(page: Client, server: McpServer) -> None:
    """UI-19: the id and secret of a client that an admin registered are stored encrypted and replace a registration."""
    given = {"name": "notes", "url": server.url, "approval": "never", "time_limit": "60", "is_enabled": "on"}
    client = {"client_id": "by-hand", "client_secret": "by-hand-secret"}
    assert page.post(where(server), {"part": "change", "server": server.pk, **given, **client}).status_code == 302
    server.refresh_from_db()
    shown = page.get(where(server)).content.decode()
    assert ("OAuth client" in shown, "by-hand" in server.oauth_client + shown) == (True, False)
    assert parse_qs(urlsplit(begun(page, server)).query)["client_id"] == ["by-hand"]
    secret_alone = {**given, "client_secret": "x"}
    assert page.post(where(server), {"part": "change", "server": server.pk, **secret_alone}).status_code == 422


def test_member_cannot_connect(server: McpServer, workspace: Workspace, page: Client) -> None:
    bo = signed_in(person("Bo", workspace))
    assert bo.post(where(server), {"part": "connect", "server": server.pk}).status_code == 403


def ask(server: McpServer, use: Callable[[TokenStore], object]) -> None:
    async def run() -> None:
        store = TokenStore()
        try:
            await use(store)  # type: ignore[misc]  # a coroutine
        finally:
            await store.close()

    asyncio.run(run())


@pytest.mark.django_db(transaction=True)
def test_processes_renew_a_token_once(page: Client, server: McpServer, address: str) -> None:
    """UI-19: a refresh token can be used once, so a second process uses the token that the first one got."""
    grant = connected(page, server)
    added = as_added(McpServer.objects.get())
    got: list[str] = []

    async def use(store: TokenStore) -> None:
        others = [store.of(added) for _ in range(3)]
        got.extend(await asyncio.gather(*(each.renew(grant.access_token) for each in others)))

    before = httpx2.get(address.replace("/mcp", "/test/facts")).json().get("renewed", 0)
    ask(server, use)
    assert (len(set(got)), got[0] == grant.access_token) == (1, False)
    assert httpx2.get(address.replace("/mcp", "/test/facts")).json()["renewed"] == before + 1
    present = mcp_sign_in.grant_of(server.pk)
    assert present is not None
    assert present.access_token == got[0]


@pytest.mark.django_db(transaction=True)
def test_sign_in_that_has_ended_is_shown_as_expired(page: Client, server: McpServer, address: str) -> None:
    """UI-19: the page reports that the sign-in has expired, and offers to connect again."""
    grant = connected(page, server)
    httpx2.post(address.replace("/mcp", "/test/end-all"))
    added = as_added(McpServer.objects.get())

    async def use(store: TokenStore) -> None:
        for _ in range(2):
            with pytest.raises(SignInEnded, match="owner or admin"):
                await store.of(added).renew(grant.access_token)

    ask(server, use)
    assert McpServer.objects.get().sign_in_status == "expired"
    shown = page.get(where(server)).content.decode()
    assert "The sign-in has expired." in shown
    assert 'value="connect"' in shown
    connected(page, server)
    assert McpServer.objects.get().sign_in_status == "connected"


@pytest.mark.django_db(transaction=True)
def test_rights_that_calls_have_lacked_are_asked_for(page: Client, server: McpServer) -> None:
    """UI-19: the page offers to connect again for them, also if they are unknown, or the token is being renewed."""
    grant = connected(page, server)
    assert "Connect again" not in page.get(where(server)).content.decode()
    added = as_added(McpServer.objects.get())

    async def use(store: TokenStore) -> None:
        for scope in scopes:
            await store.of(added).add_lacking(grant.access_token, scope)

    scopes = [""]
    ask(server, use)
    assert "Connect again" in page.get(where(server)).content.decode()
    scopes = ["notes:write", "notes:write notes"]
    ask(server, use)
    renewed = mcp_sign_in.end_renewal(server.pk, grant, replace(grant, access_token="new"))
    assert renewed is not None
    assert (renewed.access_token, renewed.lacking) == ("new", "notes:write notes")
    assert "Connect again" in page.get(where(server)).content.decode()
    url = begun(page, server)
    assert set(parse_qs(urlsplit(url).query)["scope"][0].split()) == {"notes", "notes:write"}
    assert "“notes” is connected." in back(page, allowed(url))
    mcp_sign_in.add_lacking(server.pk, "new", "notes:write")  # by a call that began before
    assert "Connect again" not in page.get(where(server)).content.decode()


@pytest.mark.django_db(transaction=True)
def test_token_that_is_renewed_while_its_server_is_removed_is_kept(page: Client, server: McpServer) -> None:
    """UI-19: a token that is renewed while its server is removed is stored, because the server can be restored."""
    before = connected(page, server)
    after = replace(before, access_token="new")
    McpServer.objects.filter(pk=server.pk).update(removed_at=timezone.now())
    assert mcp_sign_in.end_renewal(server.pk, before, after) is None
    McpServer.objects.filter(pk=server.pk).update(removed_at=None)
    assert mcp_sign_in.grant_of(server.pk) == after


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("moment", [(mcp_sign_in, "begin_renewal"), (mcp_sign_in, "end_renewal")])
def test_token_of_a_server_that_is_disconnected_during_the_renewal_is_not_used(
    page: Client, server: McpServer, monkeypatch: pytest.MonkeyPatch, moment: tuple[object, str]
) -> None:
    """UI-19: after a disconnect, neither the old token nor one that was just renewed is used."""
    grant = connected(page, server)
    added = as_added(McpServer.objects.get())
    place, name = moment
    function = getattr(place, name)

    def disconnect_first(*args: object) -> object:
        McpServer.objects.filter(pk=server.pk).update(sign_in="", sign_in_status="")
        return function(*args)

    monkeypatch.setattr(place, name, disconnect_first)

    async def use(store: TokenStore) -> None:
        with pytest.raises(SignInEnded):
            await store.of(added).renew(grant.access_token)

    ask(server, use)
    assert McpServer.objects.get().renewing_until is None
