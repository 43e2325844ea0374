"""The SDK's sign-in flow with OAuth, interrupted where it would wait in this process until the user returns."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import (
    build_protected_resource_metadata_discovery_urls,
    create_oauth_metadata_request,
    handle_protected_resource_response,
    issuers_match,
    union_scopes,
    validate_authorization_response_iss,
)
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    TokenEndpointAuthMethod,
)
from pydantic import AnyUrl

from agents.i18n import gettext as _
from agents.mcp.sign_in import Callback, PendingSignIn

# The methods by which Parley registers, the preferred one first.
METHODS: tuple[TokenEndpointAuthMethod, ...] = ("none", "client_secret_post", "client_secret_basic")
# The path of GitHub's token endpoint, also on its enterprise servers. GitHub does not list its methods, and documents
# only credentials in the body.
GITHUB = "/login/oauth/access_token"
# The hosts of Microsoft Entra ID. It refuses requests that name the server, unless the server is registered under its
# own URL (AADSTS901002, AADSTS9010010). The scopes name the server there.
# https://github.com/modelcontextprotocol/csharp-sdk/issues/648
ENTRA = frozenset({"login.microsoftonline.com", "login.microsoftonline.us", "login.partner.microsoftonline.cn"})

NOT_REQUIRED = _("it does not require a sign-in")


class Redirect(BaseException):  # not an Exception, because the SDK logs those with a traceback
    """The address that the SDK wants a user to open."""

    def __init__(self, url: str) -> None:
        self.url = url


class Memory:
    """The storage that the SDK needs, for one step of the sign-in."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.client = client
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class _Issuer(str):
    """The name of an authorization server, which equals the same name with a slash after the host.

    Google and others use one form in the description of the sign-in and the other in the metadata. The SDK accepts this
    only without such a description.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and issuers_match(str(self), str(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


class _Metadata(OAuthClientMetadata):
    """The description of Parley for its registration. Its rights always include those that calls have lacked.

    The SDK chooses the rights during the flow, before the registration.
    """

    _lacking: str = ""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, union_scopes(value, self._lacking) if name == "scope" else value)


class _Context(OAuthContext):
    """The state of the SDK's flow, with requests that strict authorization servers accept."""

    @property
    def oauth_metadata(self) -> OAuthMetadata | None:
        return self._metadata

    @oauth_metadata.setter
    def oauth_metadata(self, metadata: OAuthMetadata | None) -> None:
        """Store the metadata that was found, and choose the method with which Parley registers next."""
        self._metadata = metadata
        supported = (metadata.token_endpoint_auth_methods_supported if metadata else None) or ()
        chosen = next((method for method in METHODS if method in supported), None)
        self.client_metadata.token_endpoint_auth_method = chosen

    def should_include_resource_param(self, protocol_version: str | None = None) -> bool:
        """Name the server in each request, as the protocol requires since 2025-06-18, except at ENTRA.

        The SDK reads the version from a header that servers do not expect before the handshake.
        """
        found = self._metadata
        return found is None or urlsplit(str(found.authorization_endpoint)).hostname not in ENTRA

    def prepare_token_auth(
        self, data: dict[str, str], headers: dict[str, str] | None = None
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Authenticate by one method only, and ask for JSON, which GitHub sends only then."""
        data, headers = super().prepare_token_auth(data, {**(headers or {}), "Accept": "application/json"})
        if "Authorization" in headers:  # strict servers count an ID in the body as another method
            data = {name: value for name, value in data.items() if name != "client_id"}
        return data, headers


class Provider(OAuthClientProvider):
    """The SDK's flow, interrupted where it would wait in this process until the user returns."""

    def __init__(self, url: str, redirect_uri: str, memory: Memory, lacking: str = "") -> None:
        is_web = redirect_uri.startswith("https://")
        metadata = _Metadata(
            client_name="Parley",
            redirect_uris=[AnyUrl(redirect_uri)],
            application_type="web" if is_web else "native",
        )
        metadata._lacking = lacking
        super().__init__(url, metadata, memory)
        self.context = _Context(url, metadata, memory, redirect_handler=self._redirect, callback_handler=_never)
        self.redirect_uri = redirect_uri
        self.begun: PendingSignIn | None = None
        self.returned: Callback | None = None

    @property
    def token_endpoint(self) -> str:
        metadata = self.context.oauth_metadata
        if metadata is not None and metadata.token_endpoint:
            return str(metadata.token_endpoint)
        return urljoin(self.context.get_authorization_base_url(self.context.server_url), "/token")

    @property
    def resource(self) -> str | None:
        return self.context.get_resource_url() if self.context.should_include_resource_param() else None

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Sign in also at a server that only describes its sign-in. Repeat a token request that needs another form."""
        flow = super()._auth_flow(request)
        try:
            answer = yield await anext(flow)
            if answer.is_success:  # some servers, such as Google's, refuse only calls of their tools
                for url in build_protected_resource_metadata_discovery_urls(None, self.context.server_url):
                    if await self._is_about_server((yield create_oauth_metadata_request(url))):
                        break
                else:
                    raise OAuthFlowError(NOT_REQUIRED)
                answer = httpx2.Response(401, request=request)
            while True:
                outgoing = await flow.asend(answer)
                answer = yield outgoing
                if again := with_id_in_body(outgoing, answer, self.context.client_info):
                    answer = yield again
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    async def _is_about_server(self, answer: httpx2.Response) -> bool:
        """Return whether an answer is the description of a sign-in to this server."""
        found = await handle_protected_resource_response(answer)
        if found is None:
            return False
        try:
            await self._validate_resource_match(found)
        except OAuthFlowError:  # another server at the same host
            return False
        return True

    def _expected_issuer(self) -> str:
        return _Issuer(super()._expected_issuer())

    async def _redirect(self, url: str) -> None:
        raise Redirect(url)

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        """Return the code and the verifier if the user has returned. Otherwise let the SDK build the address."""
        self._choose_client_authentication()
        if self.begun is None or self.returned is None:
            return await super()._perform_authorization_code_grant()
        # Send the code and the client's secret only to the authorization server at which the user has signed in.
        if self.token_endpoint != self.begun.token_endpoint:
            raise OAuthFlowError("the server switched to another authorization server in the meantime")
        validate_authorization_response_iss(self.returned.iss, self.context.oauth_metadata)
        return self.returned.code, self.begun.verifier

    def _choose_client_authentication(self) -> None:
        """Choose a method that the server supports, for a client with a secret that a user has registered."""
        client, metadata = self.context.client_info, self.context.oauth_metadata
        if client is None or client.token_endpoint_auth_method or not client.client_secret:
            return
        known = metadata.token_endpoint_auth_methods_supported if metadata else None
        # RFC 8414 means client_secret_basic if no methods are listed.
        uses_post = "client_secret_basic" not in known if known else urlsplit(self.token_endpoint).path == GITHUB
        client.token_endpoint_auth_method = "client_secret_post" if uses_post else "client_secret_basic"


async def _never() -> AuthorizationCodeResult:
    raise OAuthFlowError("no user is waiting for the sign-in here")


def with_id_in_body(
    request: httpx2.Request, answer: httpx2.Response, client: OAuthClientInformationFull | None
) -> httpx2.Request | None:
    """Return a refused token request with the client's ID in the body, or None if another form would not help.

    The Python SDK's authorization server finds a client by this ID only.
    https://github.com/modelcontextprotocol/python-sdk/issues/3545
    """
    header = request.headers.get("authorization", "")
    if answer.status_code != 401 or client is None or not header.startswith("Basic "):
        return None
    data = {**dict(parse_qsl(request.content.decode(), keep_blank_values=True)), "client_id": client.client_id}
    headers = {"accept": request.headers["accept"], "authorization": header}
    return httpx2.Request("POST", request.url, data=data, headers=headers)
