"""Signing in to MCP servers whose authorization servers are stricter, older or less complete than the SDK's (UI-19)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from agents.mcp.config import AddedServer, ServerConfig
from agents.mcp.oauth import begin, finish, renew
from agents.mcp.sign_in import Callback, Client, Grant, SignInEnded, SignInFailed
from agents.messages import Json
from tests.support.mcp_server import http_answer

BACK = "http://localhost:8000/mcp-servers/callback"
BY_HAND = Client("by-hand", "secret")


@dataclass
class Server:
    """An MCP server and its authorization server at one address. A refused request is answered as Notion does."""

    # The methods of authentication in the metadata; None: the metadata does not list them.
    methods: list[str] | None = None
    token_path: str = "/token"
    # Like GitHub's, the tokens are form-encoded unless the client asks for JSON.
    is_form_encoded: bool = False
    # Like Google's, it refuses only calls of tools.
    lists_tools_to_all: bool = False
    has_sign_in: bool = True
    registers_clients: bool = True
    # What follows the address in the description of the sign-in, and in the metadata.
    described: str = ""
    issuer: str = ""
    resource_path: str = "/mcp"
    scopes: list[str] | None = None
    authorization_endpoint: str = "https://signin.example/authorize"
    address: str = ""
    registered: Json = field(default_factory=dict)
    # The status and error with which it refuses to renew tokens.
    refusal: tuple[int, str] | None = None
    token_requests: list[tuple[Json, str | None]] = field(default_factory=list)

    async def mcp(self, request: web.Request) -> web.Response:
        message = await request.json() if request.method == "POST" else {}
        # Like the Go SDK 1.1, it knows no later version.
        if request.headers.get("mcp-protocol-version", "2025-06-18") > "2025-06-18":
            return web.Response(status=400)
        is_open = self.lists_tools_to_all and message.get("method") != "tools/call"
        if not is_open and request.headers.get("authorization") != "Bearer good":
            return web.Response(status=401)
        return http_answer(message)

    async def resource(self, request: web.Request) -> web.Response:
        if not self.has_sign_in:
            return web.Response(status=404)
        named: Json = {"resource": f"{self.address}{self.resource_path}"}
        if self.scopes is not None:
            named["scopes_supported"] = self.scopes
        return web.json_response({**named, "authorization_servers": [f"{self.address}{self.described}"]})

    async def metadata(self, request: web.Request) -> web.Response:
        found: dict[str, Any] = {
            "issuer": f"{self.address}{self.issuer}",
            "authorization_endpoint": self.authorization_endpoint,
            "token_endpoint": f"{self.address}{self.token_path}",
            "registration_endpoint": f"{self.address}/register",
            "response_types_supported": ["code"],
        }
        if self.methods is not None:
            found["token_endpoint_auth_methods_supported"] = self.methods
        return web.json_response(found)

    async def register(self, request: web.Request) -> web.Response:
        if not self.registers_clients:
            return web.Response(status=404, text="404 page not found")
        self.registered = await request.json()
        method = self.registered.get("token_endpoint_auth_method", "client_secret_basic")
        if self.methods is not None and method not in self.methods:
            return web.json_response({"error": "invalid_client_metadata"}, status=400)
        secret = {} if method == "none" else {"client_secret": "secret"}
        known = {**self.registered, **secret, "client_id": "registered", "token_endpoint_auth_method": method}
        return web.json_response(known, status=201)

    async def token(self, request: web.Request) -> web.Response:
        form, header = dict(await request.post()), request.headers.get("authorization")
        self.token_requests.append((form, header))
        if ("client_id" in form) == (header is not None):
            return web.json_response({"error": "invalid_request"}, status=400)
        if self.refusal and form["grant_type"] == "refresh_token":
            return web.json_response({"error": self.refusal[1]}, status=self.refusal[0])
        if self.is_form_encoded and request.headers.get("accept") != "application/json":
            return web.Response(text="access_token=good&token_type=bearer")
        return web.json_response({"access_token": "good", "token_type": "bearer", "refresh_token": "next"})


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[AddedServer]:
    app = web.Application()
    app.router.add_route("*", "/mcp", server.mcp)
    app.router.add_get("/.well-known/oauth-protected-resource/mcp", server.resource)
    app.router.add_get("/.well-known/oauth-authorization-server", server.metadata)
    app.router.add_post("/register", server.register)
    app.router.add_post(server.token_path, server.token)
    async with TestServer(app) as http:
        server.address = str(http.make_url("")).rstrip("/")
        config = ServerConfig(url=f"{server.address}/mcp", internal_hosts=("127.0.0.1",))
        yield AddedServer("row 1", "1", "notes", config)


async def sign_in(server: AddedServer, client: Client | None = None) -> Grant:
    begun = await begin(server, BACK, client)
    assert parse_qs(urlsplit(begun.url).query)["redirect_uri"] == [BACK]
    return await finish(server, BACK, begun, Callback("code"))


@pytest.mark.parametrize(
    ("methods", "registered", "authenticates"),
    [
        (None, None, "header"),
        (["client_secret_basic"], "client_secret_basic", "header"),
        (["client_secret_basic", "client_secret_post"], "client_secret_post", "body"),
        (["client_secret_basic", "none"], "none", "neither"),
        (["private_key_jwt", "client_secret_basic"], "client_secret_basic", "header"),
    ],
)
async def test_each_token_request_has_one_method_that_the_server_supports(
    methods: list[str] | None, registered: str | None, authenticates: str
) -> None:
    """UI-19: Notion, for example, refuses requests with an ID in the body besides the header."""
    server = Server(methods)
    async with serving(server) as address:
        await renew(address, await sign_in(address))
    assert server.registered.get("token_endpoint_auth_method") == registered
    expected = {"header": (True, False), "body": (False, True), "neither": (False, False)}[authenticates]
    found = [(header is not None, "client_secret" in form) for form, header in server.token_requests]
    assert found == [expected, expected]


@pytest.mark.parametrize(
    ("token_path", "methods", "is_in_body"),
    [
        ("/login/oauth/access_token", None, True),
        ("/login/oauth/access_token", ["client_secret_basic"], False),
        ("/token", None, False),
        ("/token", ["client_secret_post"], True),
    ],
)
async def test_client_that_was_registered_by_hand_authenticates_as_the_server_expects(
    token_path: str, methods: list[str] | None, is_in_body: bool
) -> None:
    """UI-19: without a list of methods, the header is used, but GitHub gets the secret in the body, as it documents."""
    server = Server(methods, token_path)
    async with serving(server) as address:
        await sign_in(address, BY_HAND)
    ((form, header),) = server.token_requests
    assert (form.get("client_secret") == "secret", header is None) == (is_in_body, is_in_body)


async def test_server_that_answers_with_json_only_on_request_gives_a_token() -> None:
    """UI-19: GitHub answers form-encoded unless the request accepts only JSON."""
    async with serving(Server(is_form_encoded=True)) as address:
        grant = await sign_in(address, BY_HAND)
        assert grant.access_token == "good"
        assert (await renew(address, grant)).access_token == "good"


async def test_server_that_refuses_only_calls_can_be_connected() -> None:
    """UI-19: a user signs in to a server whose tools are listed for all, as those of Google's servers are."""
    server = Server(lists_tools_to_all=True)
    async with serving(server) as address:
        assert (await sign_in(address)).access_token == "good"
        server.resource_path = "/other"
        with pytest.raises(SignInFailed, match="does not require a sign-in"):
            await begin(address, BACK)
        server.has_sign_in = False
        with pytest.raises(SignInFailed, match="does not require a sign-in"):
            await begin(address, BACK)


@pytest.mark.parametrize(("described", "issuer"), [("/", ""), ("", "/"), ("/", "/")])
async def test_authorization_server_may_be_named_with_a_slash(described: str, issuer: str) -> None:
    """UI-19: Google's servers name it with a slash, and its metadata without."""
    async with serving(Server(described=described, issuer=issuer)) as address:
        assert (await sign_in(address)).access_token == "good"


async def test_authorization_server_with_another_name_is_refused() -> None:
    """UI-19: a server cannot use the metadata of another authorization server."""
    async with serving(Server(issuer="/other")) as address:
        with pytest.raises(SignInFailed, match="issuer mismatch"):
            await begin(address, BACK)


async def test_google_is_asked_for_a_refresh_token() -> None:
    """UI-19: without these parameters, the sign-in would end after an hour."""
    async with serving(Server(authorization_endpoint="https://accounts.google.com/o/oauth2/v2/auth")) as address:
        query = parse_qs(urlsplit((await begin(address, BACK)).url).query)
    assert (query["access_type"], query["prompt"]) == (["offline"], ["consent"])
    async with serving(Server()) as address:
        assert "access_type" not in (await begin(address, BACK)).url


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        ((403, "invalid_grant"), SignInEnded),
        ((200, "bad_refresh_token"), SignInEnded),
        ((403, "access_denied"), SignInFailed),
        ((500, "server_error"), SignInFailed),
    ],
)
async def test_sign_in_ends_if_the_server_says_so_with_any_status(
    refusal: tuple[int, str], expected: type[Exception]
) -> None:
    """UI-19: Atlassian and Auth0 answer with the status 403, GitHub with 200. Otherwise a retry may help."""
    server = Server()
    async with serving(server) as address:
        grant = await sign_in(address)
        server.refusal = refusal
        with pytest.raises(expected):
            await renew(address, grant)


async def test_server_that_registers_no_clients_says_what_to_do() -> None:
    """UI-19: the way out is a client that a user registers, as at Google and GitHub."""
    async with serving(Server(registers_clients=False)) as address:
        with pytest.raises(SignInFailed) as failed:
            await begin(address, BACK)
        assert f"Register a client there with the redirect address {BACK}" in str(failed.value)
        assert "Edit › Advanced" in str(failed.value)
        assert "404 page not found" in str(failed.value)
        assert (await sign_in(address, BY_HAND)).access_token == "good"


@pytest.mark.parametrize("has_sign_in", [True, False])
async def test_older_server_can_be_connected(has_sign_in: bool) -> None:
    """UI-19: no request before the handshake names a version of the protocol, and each one names the server."""
    server = Server(has_sign_in=has_sign_in)
    async with serving(server) as address:
        resource = f"{server.address}/mcp"
        assert parse_qs(urlsplit((await begin(address, BACK)).url).query)["resource"] == [resource]
        assert (await sign_in(address)).resource == resource
    ((form, _header),) = server.token_requests
    assert form["resource"] == resource


@pytest.mark.parametrize(
    ("scopes", "lacking", "asked"),
    [
        (["notes"], "", "notes"),
        (["notes"], "notes notes:write", "notes notes:write"),
        (None, "notes:write", "notes:write"),
    ],
)
async def test_sign_in_asks_for_the_rights_that_calls_have_lacked(
    scopes: list[str] | None, lacking: str, asked: str
) -> None:
    """UI-19: the registration and the address name the rights of the server, and those that calls have lacked."""
    server = Server(scopes=scopes)
    async with serving(server) as address:
        begun = await begin(address, BACK, lacking=lacking)
    assert parse_qs(urlsplit(begun.url).query)["scope"] == [asked]
    assert server.registered["scope"] == asked


async def test_entra_gets_requests_that_do_not_name_the_server() -> None:
    """UI-19: Microsoft's authorization server refuses the parameter in the address, the exchange and the renewal."""
    server = Server(authorization_endpoint="https://login.microsoftonline.com/tenant/oauth2/v2.0/authorize")
    async with serving(server) as address:
        assert "resource" not in parse_qs(urlsplit((await begin(address, BACK, BY_HAND)).url).query)
        grant = await sign_in(address, BY_HAND)
        await renew(address, grant)
    assert grant.resource is None
    assert [form["grant_type"] for form, _header in server.token_requests] == ["authorization_code", "refresh_token"]
    assert not any("resource" in form for form, _header in server.token_requests)
