"""Who asks the API: a person's program by its token, or a page by its cookie."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja.security import HttpBearer
from ninja.security.apikey import APIKeyCookie
from ninja.utils import check_csrf

from chat.access import session_for, workspace_for
from chat.errors import ServiceError
from chat.limits import rates
from chat.limits.rates import Window
from chat.models import ApiToken, Session, SessionRole, User, Workspace
from chat.origin import note_token
from chat.services.people import api_tokens
from chat.services.people.second_factor import is_missing

SAFE = ("GET", "HEAD", "OPTIONS")


class ApiRequest(HttpRequest):
    """A request that has passed one of the two: `auth` is the token, or the person where a page asks."""

    user: User
    auth: ApiToken | User
    window: Window


class Bearer(HttpBearer):
    """`Authorization: Bearer parley_…`. Who sends a token is known by it alone, whatever cookies come along."""

    openapi_description: ClassVar[str] = "A token from your settings page. One that may only read is refused writing."

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken:
        found = api_tokens.recognised(token)
        if found is None:
            raise ServiceError("bad_token", _("This token is invalid or has expired."))
        if found.scope != ApiToken.Scope.WRITE and request.method not in SAFE:
            raise ServiceError("read_only_token", _("This token is read-only."))
        request.user = found.user
        note_token(found.pk)
        _count(request, "token", found.pk)
        return found


class Cookie(APIKeyCookie):
    """The cookie of a signed-in user. Writing also needs the page's token in `X-CSRFToken`.

    Requests with a token do not get here: an invalid token was refused before.
    """

    param_name: str = settings.SESSION_COOKIE_NAME
    openapi_description: ClassVar[str] = "A browser's session. Unsafe methods need the header X-CSRFToken as well."

    def _get_key(self, request: HttpRequest) -> str | None:
        return request.COOKIES.get(self.param_name)

    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:
        if not isinstance(user := _person(request), User):
            return None
        if is_missing(user, request.session):
            words = _("This server requires two-step verification for your account. Set it up in your settings.")
            raise ServiceError("second_factor_required", words)
        if check_csrf(request) is not None:
            raise ServiceError("untrusted_form", _("The X-CSRFToken header is missing or invalid."))
        _count(request, "user", user.pk)
        return user


def _count(request: HttpRequest, kind: str, row_id: int) -> None:
    """Count the request. Raises RateLimited; edge.py writes the window into the answer's headers."""
    request.window = window = rates.count("requests", kind, row_id)  # type: ignore[attr-defined]  # as ApiRequest has it
    window.require()


def _person(request: HttpRequest) -> object:
    """The user behind Django's lazy one, which is an instance of nothing until it is looked at."""
    return getattr(request.user, "_wrapped", request.user) if request.user.is_authenticated else None


def session_of(request: ApiRequest, session_id: str, needs: SessionRole = SessionRole.VIEWER) -> Session:
    """Fetch a session through the gate. Raises NoSuchSession, Forbidden: let them pass, they become problems."""
    return session_for(request.user, session_id, needs)[0]


def workspace_named(request: ApiRequest, workspace_id: int | None) -> Workspace | None:
    """Fetch the workspace that a request names; None where it names none. Raises NoSuchWorkspace: let it pass, too."""
    return None if workspace_id is None else workspace_for(request.user, workspace_id)
