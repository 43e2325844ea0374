"""An MCP server over HTTP that requires a sign-in, with its authorization server: `auth_server.py PORT`.

A user allows a client on the page /consent. Tests change the server through /test/: they end access tokens and make it
refuse refresh tokens.
"""

from __future__ import annotations

import secrets
import sys
import time
from collections import Counter

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp.types import ToolAnnotations
from pydantic import AnyUrl
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

PORT = int(sys.argv[1])
ADDRESS = f"http://127.0.0.1:{PORT}"
# A client that was registered manually.
BY_HAND = OAuthClientInformationFull(
    client_id="by-hand",
    client_secret="by-hand-secret",
    redirect_uris=[AnyUrl("http://localhost:8000/mcp-servers/callback")],
    token_endpoint_auth_method="client_secret_basic",
    scope="notes",
)


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """An authorization server in memory. A refresh token can be used once, as OAuth 2.1 requires for public clients."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.asked: dict[str, tuple[str, AuthorizationParams]] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.facts: Counter[str] = Counter()

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        if client_id == BY_HAND.client_id:
            return BY_HAND
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.facts["registered"] += 1
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        asked = secrets.token_urlsafe(8)
        self.asked[asked] = client.client_id, params
        return f"{ADDRESS}/consent?asked={asked}"

    def allow(self, asked: str) -> str:
        client_id, params = self.asked.pop(asked)
        code = secrets.token_urlsafe(24)
        self.codes[code] = AuthorizationCode(
            code=code,
            client_id=client_id,
            scopes=params.scopes or ["notes"],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    def deny(self, asked: str) -> str:
        _client_id, params = self.asked.pop(asked)
        return construct_redirect_uri(str(params.redirect_uri), error="access_denied", state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._issue(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.facts["renewed"] += 1
        del self.refresh[refresh_token.token]
        return self._issue(client.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def _issue(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.access[access] = AccessToken(token=access, client_id=client_id, scopes=scopes, resource=resource)
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes, resource=resource)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=3600, scope=" ".join(scopes))


provider = Provider()
server = MCPServer(
    "notes",
    auth_server_provider=provider,
    auth=AuthSettings.model_validate(
        {
            "issuer_url": ADDRESS,
            "resource_server_url": f"{ADDRESS}/mcp",
            "required_scopes": ["notes"],
            "validate_token_resource": True,
            "client_registration_options": ClientRegistrationOptions(
                enabled=True, valid_scopes=["notes", "notes:write"], default_scopes=["notes"]
            ),
        }
    ),
)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def read_note(name: str = "first") -> str:
    """Read a note."""
    return f"the {name} note"


async def consent(request: Request) -> Response:
    """Show the consent page, like an authorization server."""
    asked = request.query_params["asked"]
    links = f'<a href="/allow?asked={asked}">Allow</a> <a href="/deny?asked={asked}">Deny</a>'
    return HTMLResponse(f"<title>Notes</title><h1>Let Parley read your notes?</h1>{links}")


async def allow(request: Request) -> Response:
    return RedirectResponse(provider.allow(request.query_params["asked"]), 302)


async def deny(request: Request) -> Response:
    return RedirectResponse(provider.deny(request.query_params["asked"]), 302)


async def end_access(request: Request) -> Response:
    """End all access tokens."""
    provider.access.clear()
    return JSONResponse({})


async def end_all(request: Request) -> Response:
    """End all tokens, as if the user had withdrawn the consent."""
    provider.access.clear()
    provider.refresh.clear()
    return JSONResponse({})


async def facts(request: Request) -> Response:
    return JSONResponse(dict(provider.facts))


for path, answer in {"/consent": consent, "/allow": allow, "/deny": deny, "/test/facts": facts}.items():
    server.custom_route(path, methods=["GET"])(answer)
for path, answer in {"/test/end-access": end_access, "/test/end-all": end_all}.items():
    server.custom_route(path, methods=["POST"])(answer)

if __name__ == "__main__":
    server.run("streamable-http", port=PORT)
