"""Signing in to an MCP server with OAuth, at a real authorization server over real sockets (UI-19)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from mcp.shared.auth import OAuthClientInformationFull

from agents.mcp import connection, oauth
from agents.mcp.config import AddedServer, ServerConfig
from agents.mcp.connection import Connection
from agents.mcp.examine import examine
from agents.mcp.http import connect
from agents.mcp.oauth import SECONDS, Bearer, begin, finish, renew
from agents.mcp.pool import Servers
from agents.mcp.sign_in import Callback, Client, Grant, PendingSignIn, SignInEnded, SignInFailed
from agents.messages import ToolCall
from agents.tools import ToolContext
from tests.support.mcp_server import AUTH_SERVER, serving

BACK = "http://localhost:8000/mcp-servers/callback"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(sys.executable, str(AUTH_SERVER)) as address:
        yield address


def at(address: str, *, is_signed_in: bool = False) -> AddedServer:
    config = ServerConfig(url=address, internal_hosts=("127.0.0.1",))
    return AddedServer("row 1", "1", "notes", config, {"X-Key": "k"}, is_signed_in)


async def do(address: str, what: str) -> None:
    async with httpx2.AsyncClient() as client:
        (await client.post(address.replace("/mcp", f"/test/{what}"))).raise_for_status()


async def facts(address: str) -> dict[str, int]:
    async with httpx2.AsyncClient() as client:
        found: dict[str, int] = (await client.get(address.replace("/mcp", "/test/facts"))).json()
        return found


async def allowed(begun: PendingSignIn, answer: str = "allow") -> dict[str, str]:
    """Allow access at the authorization server, like a user, and return the query of the redirect."""
    async with httpx2.AsyncClient() as browser:
        page = await browser.get(begun.url)
        consent = page.headers["location"].replace("consent", answer)
        back = (await browser.get(consent)).headers["location"]
    assert back.startswith(BACK)
    return {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}


async def signed_in(address: str, client: Client | None = None) -> Grant:
    begun = await begin(at(address), BACK, client)
    back = await allowed(begun)
    assert back["state"] == begun.state
    return await finish(at(address), BACK, begun, Callback(back["code"], back.get("iss")))


class Stored:
    """A store that renews tokens like the server's rows."""

    def __init__(self, server: AddedServer, grant: Grant) -> None:
        self.server, self.grant = server, grant

    async def current(self) -> str:
        return self.grant.access_token

    async def renew(self, refused: str) -> str:
        self.grant = await renew(self.server, self.grant)
        return self.grant.access_token

    async def add_lacking(self, refused: str, scope: str) -> None:
        raise AssertionError(scope)


@asynccontextmanager
async def connected(address: str, grant: Grant) -> AsyncIterator[Connection]:
    tokens = Stored(at(address), grant)
    there = Connection("notes", lambda on_end: connect(at(address).config, {}, Bearer(tokens)))
    try:
        yield there
    finally:
        await there.close()


async def test_person_signs_in_and_the_tools_are_there(address: str) -> None:
    """UI-19: discovery, registration, PKCE and the exchange use the SDK, and each step can run in another process."""
    before = (await facts(address)).get("registered", 0)
    grant = await signed_in(address)
    assert (await facts(address))["registered"] == before + 1
    assert grant.resource == address
    assert Grant.from_json(grant.to_json()) == grant
    assert "X-Key" not in str(grant)
    async with connected(address, grant) as there:
        result = await there.call("read_note", {}, lambda text: None)
    assert "the first note" in str(result.content)
    offer = await examine(at(address), Stored(at(address), grant))
    assert [tool.name for tool in offer.tools] == ["read_note"]


def test_previous_release_reads_a_sign_in_that_lacks_rights() -> None:
    """UI-19: during an update, its processes use the same rows, and a renewal there keeps the values of `client`."""
    grant = Grant({"client_id": "known", "redirect_uris": [BACK]}, "https://as.example/token", None, "token")
    kept = replace(grant, lacking="notes:write").to_json()
    names = {"client", "token_endpoint", "resource", "access_token", "refresh_token", "expires_at"}
    assert kept.keys() == grant.to_json().keys() == names
    assert OAuthClientInformationFull.model_validate(kept["client"]).client_id == "known"
    read = Grant.from_json(kept)
    assert (read, read.lacking) == (grant, "notes:write")


async def test_client_that_was_registered_by_hand_registers_nothing(address: str) -> None:
    """UI-19: this server requires the client's ID in the body, although the header contains it."""
    before = await facts(address)
    begun = await begin(at(address), BACK, Client("by-hand", "by-hand-secret"))
    assert parse_qs(urlsplit(begun.url).query)["client_id"] == ["by-hand"]
    back = await allowed(begun)
    grant = await finish(at(address), BACK, begun, Callback(back["code"]))
    assert (await renew(at(address), grant)).access_token != grant.access_token
    assert (await facts(address)).get("registered") == before.get("registered")


async def test_expired_token_is_renewed_in_a_call(address: str) -> None:
    """UI-19: an expired token is renewed during a call, and the call succeeds."""
    grant = await signed_in(address)
    async with connected(address, grant) as there:
        await there.call("read_note", {}, lambda text: None)
        await do(address, "end-access")
        result = await there.call("read_note", {"name": "second"}, lambda text: None)
    assert "the second note" in str(result.content)


async def test_sign_in_that_has_ended_says_who_can_connect_again(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-19: the tools stay, and their error tells the model who can connect again."""
    monkeypatch.setattr(connection, "FIRST_WAIT", 60.0)
    grant = await signed_in(address)
    servers = Servers({}, {})
    server = at(address, is_signed_in=True)
    servers.open(lambda each: Stored(each, grant))
    try:
        servers.tools(["notes__*"], [server])
        await asyncio.sleep(0)
        await servers.settle(["notes__*"], [server])
        tools = servers.tools(["notes__*"], [server])
        await do(address, "end-all")
        results = [await tools[0].run(ToolCall("1", tools[0].name, {}), ToolContext()) for _ in range(2)]
        assert servers.tools(["notes__*"], [server])
    finally:
        await servers.close()
    assert [result.is_error for result in results] == [True, True]
    # The first call finds out that the sign-in has ended, the second one knows it before.
    for result in results:
        assert "an owner or admin of the workspace can connect it again" in result.content


async def test_examining_a_server_reports_that_it_requires_a_sign_in(address: str) -> None:
    assert (await examine(at(address))).problem == "it requires a sign-in (status 401)"


async def test_refused_consent_and_wrong_code_fail(address: str) -> None:
    begun = await begin(at(address), BACK)
    assert (await allowed(begun, "deny"))["error"] == "access_denied"
    with pytest.raises(SignInFailed):
        await finish(at(address), BACK, begun, Callback("wrong"))


async def test_code_is_not_sent_to_another_token_endpoint(address: str) -> None:
    """A server that names another authorization server during the sign-in does not get the code."""
    begun = await begin(at(address), BACK)
    back = await allowed(begun)
    elsewhere = replace(begun, token_endpoint="https://evil.example/token")
    with pytest.raises(SignInFailed, match="another authorization server"):
        await finish(at(address), BACK, elsewhere, Callback(back["code"], back.get("iss")))
    assert (await finish(at(address), BACK, begun, Callback(back["code"], back.get("iss")))).access_token


async def test_refresh_token_that_is_refused_ends_the_sign_in(address: str) -> None:
    grant = await signed_in(address)
    renewed = await renew(at(address), grant)
    assert renewed.refresh_token != grant.refresh_token
    with pytest.raises(SignInEnded):
        await renew(at(address), grant)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (web.Response(status=503), "the authorization server answered with the status 503"),
        (web.Response(text="<html>"), "the answer of the authorization server is not valid"),
        (None, "the authorization server did not answer within 0.1 seconds"),
    ],
)
async def test_renewal_that_fails_is_explained(
    answer: web.Response | None, words: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UI-19: the reason is in plain words, without an exception's text, and the sign-in stays valid for a retry."""
    grant, is_over = await signed_in(address), asyncio.Event()

    async def reply(_request: web.Request) -> web.Response:
        if answer is None:
            await is_over.wait()
        return answer or web.Response()

    monkeypatch.setattr(oauth, "SECONDS", SECONDS if answer else 0.1)
    app = web.Application()
    app.router.add_post("/token", reply)
    async with TestServer(app) as http:
        with pytest.raises(SignInFailed) as failed:
            await renew(at(address), replace(grant, token_endpoint=str(http.make_url("/token"))))
        is_over.set()
    assert str(failed.value) == f"its sign-in could not be renewed: {words}"


async def test_server_without_a_sign_in_and_server_that_is_away(address: str) -> None:
    with serving() as plain, pytest.raises(SignInFailed, match="does not require a sign-in"):
        await begin(at(plain), BACK)
    with pytest.raises(SignInFailed):
        await begin(at("http://127.0.0.1:1/mcp"), BACK)


async def test_addresses_of_the_sign_in_obey_the_rules_for_addresses(address: str) -> None:
    """UI-19: internal addresses and addresses without https are refused unless the operator allows the host."""
    closed = AddedServer("row 1", "1", "notes", ServerConfig(url=address))
    with pytest.raises(SignInFailed, match="does not use https"):
        await begin(closed, BACK)
    grant = await signed_in(address)
    with pytest.raises(SignInFailed, match="not public"):
        await renew(closed, replace(grant, token_endpoint="https://127.0.0.1:1/token"))
