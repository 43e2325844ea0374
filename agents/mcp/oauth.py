"""Sign in to an MCP server with OAuth: begin, finish when the browser has returned, and renew the token.

The SDK finds the authorization server, registers a client and exchanges the code. Each step can run in a different
process, because the caller stores the state between the steps as `PendingSignIn` and `Grant`.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator
from typing import Any, Protocol

import httpx2
from mcp.client.auth import OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.client.auth.oauth2 import PKCEParameters
from mcp.client.auth.utils import extract_field_from_www_auth
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import AnyUrl, ValidationError
from yarl import URL

from agents.i18n import gettext as _
from agents.mcp.config import AddedServer
from agents.mcp.explaining import reason
from agents.mcp.http import is_internal, open_client
from agents.mcp.oauth_flow import NOT_REQUIRED, Memory, Provider, Redirect, with_id_in_body
from agents.mcp.sign_in import (
    Callback,
    Client,
    Grant,
    PendingSignIn,
    SignInEnded,
    SignInFailed,
    SignInTooNarrow,
    Tokens,
)
from agents.messages import Json

SECONDS = 30.0
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "Parley", "version": "1"},
    },
}
HEADERS = {"accept": "application/json, text/event-stream"}
# Error codes with which no retry can help. Auth0 and Atlassian send them with the status 403, GitHub with 200.
ENDED_CODES = frozenset({"invalid_grant", "bad_refresh_token", "unauthorized_client"})
# Parameters that an authorization server requires to issue a refresh token, by its host.
# https://developers.google.com/identity/protocols/oauth2/web-server#offline
OFFLINE = {"accounts.google.com": {"access_type": "offline", "prompt": "consent"}}

# The rights that a server names (RFC 6749, section 3.3), in a length that can be part of an address.
SCOPE = re.compile(r"[\x20-\x7e]{1,1000}")


async def begin(
    server: AddedServer, redirect_uri: str, client: Client | None = None, lacking: str = ""
) -> PendingSignIn:
    """Find the address at which a user signs in. Raise SignInFailed, also if the server requires no sign-in.

    `lacking` are rights for which to ask in addition to those that the server names (`Grant.lacking`).
    """
    provider = Provider(server.config.url or "", redirect_uri, Memory(_registration(client, redirect_uri)), lacking)
    try:
        await _ask(server, provider)
    except Redirect as redirect:
        pkce, state = PKCEParameters.generate(), PKCEParameters.generate().code_verifier[:64]
        # These replace the SDK's own values, which are lost at the end of this step.
        url = URL(redirect.url).update_query(code_challenge=pkce.code_challenge, state=state)
        url = url.update_query(OFFLINE.get(url.raw_host or "", {}))
        _check_address(url, server)
        assert provider.context.client_info is not None  # noqa: S101  # it is in the address
        known = provider.context.client_info.model_dump(mode="json", exclude_none=True)
        return PendingSignIn(str(url), state, pkce.code_verifier, provider.token_endpoint, known)
    raise SignInFailed(NOT_REQUIRED)


async def finish(server: AddedServer, redirect_uri: str, begun: PendingSignIn, returned: Callback) -> Grant:
    """Exchange the code for tokens. Raise SignInFailed."""
    memory = Memory(OAuthClientInformationFull.model_validate(begun.client))
    provider = Provider(server.config.url or "", redirect_uri, memory)
    provider.begun, provider.returned = begun, returned
    await _ask(server, provider)
    if memory.tokens is None or memory.client is None:
        raise SignInFailed(_("the authorization server did not return a token"))
    kept = memory.client.model_dump(mode="json", exclude_none=True)
    return _grant(memory.tokens, kept, provider.token_endpoint, provider.resource)


async def renew(server: AddedServer, grant: Grant) -> Grant:
    """Return a new access token. Raise SignInEnded if a user must sign in again, SignInFailed if a retry may help."""
    if grant.refresh_token is None:
        raise SignInEnded
    provider = Provider(server.config.url or "", "http://localhost/", Memory(None))
    provider.context.client_info = OAuthClientInformationFull.model_validate(grant.client)
    data = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token}
    data["client_id"] = provider.context.client_info.client_id
    if grant.resource is not None:
        data["resource"] = grant.resource
    try:
        data, headers = provider.context.prepare_token_auth(data)
        async with asyncio.timeout(SECONDS), open_client(server.config) as client:
            request = client.build_request("POST", grant.token_endpoint, data=data, headers=headers)
            answer = await client.send(request)
            if again := with_id_in_body(request, answer, provider.context.client_info):
                answer = await client.send(again)
        if answer.status_code in (400, 401) or _error_code(answer) in ENDED_CODES:
            raise SignInEnded
        answer.raise_for_status()
        tokens = OAuthToken.model_validate_json(answer.content)
    except (httpx2.HTTPError, TimeoutError, ValidationError, OAuthTokenError) as error:
        raise SignInFailed(_("its sign-in could not be renewed: {reason}", reason=_not_renewed(error))) from error
    # If the server sends no new refresh token, the old one stays valid.
    tokens.refresh_token = tokens.refresh_token or grant.refresh_token
    return _grant(tokens, grant.client, grant.token_endpoint, grant.resource)


def _error_code(answer: httpx2.Response) -> str:
    """Return the error code of an authorization server's answer, or ""."""
    try:
        found = answer.json()
    except (ValueError, RecursionError):
        return ""
    return str(found.get("error", "")) if isinstance(found, dict) else ""


def _not_renewed(error: Exception) -> str:
    match error:
        case TimeoutError():
            return _("the authorization server did not answer within {seconds} seconds", seconds=f"{SECONDS:g}")
        case httpx2.HTTPStatusError():
            return _("the authorization server answered with the status {status}", status=error.response.status_code)
        case ValidationError():
            return _("the answer of the authorization server is not valid")
    return reason(error)


class Bearer(httpx2.Auth):
    """An authentication by access token. If the server refuses the token, the request is repeated with a new one.

    Raise SignInTooNarrow if the server refuses the request because the token lacks rights.
    """

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        token = await self._tokens.current()
        request.headers["Authorization"] = f"Bearer {token}"
        answer = yield request
        if answer.status_code == 401:
            token = await self._tokens.renew(token)
            request.headers["Authorization"] = f"Bearer {token}"
            answer = yield request
        if answer.status_code == 403 and extract_field_from_www_auth(answer, "error") == "insufficient_scope":
            scope = extract_field_from_www_auth(answer, "scope") or ""
            await self._tokens.add_lacking(token, scope if SCOPE.fullmatch(scope) else "")
            raise SignInTooNarrow


class HasTokens(Protocol):
    """The fields of the SDK's tokens that `_grant` reads."""

    access_token: str
    refresh_token: str | None
    expires_in: int | None


def _grant(tokens: HasTokens, client: Json, token_endpoint: str, resource: str | None) -> Grant:
    expires_at = time.time() + tokens.expires_in if tokens.expires_in else None
    return Grant(client, token_endpoint, resource, tokens.access_token, tokens.refresh_token, expires_at)


def _registration(client: Client | None, redirect_uri: str) -> OAuthClientInformationFull | None:
    if client is None:
        return None
    method: Any = None if client.secret else "none"
    return OAuthClientInformationFull(
        client_id=client.id,
        client_secret=client.secret or None,
        redirect_uris=[AnyUrl(redirect_uri)],
        token_endpoint_auth_method=method,
    )


async def _ask(server: AddedServer, provider: Provider) -> None:
    """Send a request that makes the SDK sign in. Raise SignInFailed, or Redirect."""
    headers = {**server.headers, **HEADERS}
    try:
        async with asyncio.timeout(SECONDS), open_client(server.config) as client:
            # Only the server gets these headers. The SDK's requests for the sign-in do not have them.
            sent = client.stream("POST", server.config.url or "", json=INITIALIZE, headers=headers, auth=provider)
            async with sent as answer:
                if answer.status_code >= 400:
                    raise SignInFailed(_("it answered with the status {status}", status=answer.status_code))
    except TimeoutError as error:
        raise SignInFailed(_("it did not answer within {seconds} seconds", seconds=f"{SECONDS:g}")) from error
    except OAuthRegistrationError as error:
        raise SignInFailed(_register(provider.redirect_uri, reason(error))) from error
    except (httpx2.HTTPError, OAuthFlowError, OAuthTokenError, ValueError) as error:
        raise SignInFailed(reason(error)) from error


def _register(address: str, answer: str) -> str:
    """Return the reason if a client must be registered manually."""
    return _(
        "the authorization server did not let Parley register itself. Register a client there with the redirect "
        "address {address}, then enter its OAuth client ID and secret under Edit › Advanced. The server answered: "
        "{answer}",
        address=address,
        answer=answer,
    )


def _check_address(url: URL, server: AddedServer) -> None:
    """Raise SignInFailed if users may not be sent to an address."""
    if url.scheme != "https" and not (url.scheme == "http" and is_internal(server.config, url.raw_host or "")):
        raise SignInFailed(_("the address of its authorization server does not use https"))
