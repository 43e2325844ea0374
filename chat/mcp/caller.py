"""The caller of a tool: the token of the request, its user, and the address of this server for links."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from django.http import HttpRequest
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _

from chat.errors import ServiceError
from chat.limits import rates
from chat.models import ApiToken, User
from chat.origin import Interface, Origin, address_of, using_origin
from chat.services.people import api_tokens
from chat.views.requests import absolute

T = TypeVar("T")
PATH = "/mcp"
# The key in the ASGI scope under which the caller of a request is stored.
SCOPE_KEY = "parley.caller"


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request. `site` is the base address of this server for links."""

    token: ApiToken
    origin: Origin
    language: str
    site: str

    @property
    def user(self) -> User:
        return self.token.user

    @property
    def may_write(self) -> bool:
        return self.token.scope == ApiToken.Scope.WRITE

    def run(self, function: Callable[[], T]) -> T:
        """Call a function in the caller's language. The security log and limits use the origin of the request."""
        with translation.override(self.language), using_origin(self.origin):
            return function()

    def page_of(self, session_id: str) -> str:
        """Return the address of a session's page."""
        return self.site + reverse("session", args=[session_id])


def caller_of(request: HttpRequest, secret: str) -> Caller:
    """Return the caller with a token, and count the request. Raise ServiceError."""
    language = translation.get_language_from_request(request)
    with translation.override(language):
        token = api_tokens.find_valid(secret)
        if token is None:
            raise ServiceError("bad_token", _("This token is invalid or has expired."))
        rates.count("requests", "token", token.pk).require()
    return Caller(
        token=token,
        origin=Origin(Interface.API, address_of(request), token.pk),
        language=language,
        site=absolute(request, ""),
    )
