"""Authentication of the API: a token of a program, or the cookie of a signed-in user."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja.security import HttpBearer
from ninja.security.apikey import APIKeyCookie
from ninja.utils import check_csrf

from chat.access import session_for, still_active, still_has_role, workspace_for
from chat.errors import ServiceError
from chat.limits import rates
from chat.limits.rates import Window
from chat.models import ApiToken, Session, SessionRole, User, Workspace
from chat.origin import note_token
from chat.services.people import api_tokens
from chat.services.people.second_factor import is_missing

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class ApiRequest(HttpRequest):
    """An authenticated request. `auth` is the API token, or the user if the request used a cookie."""

    user: User
    auth: ApiToken | User
    window: Window


class Bearer(HttpBearer):
    """Authentication by `Authorization: Bearer parley_…`. Cookies are ignored if the request has a token."""

    openapi_description: ClassVar[str] = (
        "An API token, which you create in your settings. A read-only token can only be used for GET and HEAD requests."
    )

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken:
        row = api_tokens.find_valid(token)
        if row is None:
            raise ServiceError("bad_token", _("This token is invalid or has expired."))
        if row.scope != ApiToken.Scope.WRITE and request.method not in SAFE_METHODS:
            raise ServiceError("read_only_token", _("This token is read-only."))
        request.user = row.user
        note_token(row.pk)
        _count(request, "token", row.pk)
        return row


class Cookie(APIKeyCookie):
    """Authentication by the cookie of a signed-in user. Unsafe methods also need the CSRF token in `X-CSRFToken`.

    `Bearer` raises ServiceError for an invalid token, so this class never handles a request with a token.
    """

    param_name: str = settings.SESSION_COOKIE_NAME
    openapi_description: ClassVar[str] = (
        "The cookie of a signed-in browser. Requests other than GET and HEAD also need the header `X-CSRFToken`."
    )

    def _get_key(self, request: HttpRequest) -> str | None:
        # ninja's method checks CSRF here, even for signed-out users. `authenticate` checks it later with its own code.
        return request.COOKIES.get(self.param_name)

    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:
        user = request.user
        if not isinstance(user, User):
            return None
        if is_missing(user, request.session):
            message = _("This server requires two-step verification for your account. Set it up in your settings.")
            raise ServiceError("second_factor_required", message)
        if check_csrf(request) is not None:
            raise ServiceError("untrusted_form", _("The X-CSRFToken header is missing or invalid."))
        _count(request, "user", user.pk)
        return user


def _count(request: HttpRequest, kind: str, row_id: int) -> None:
    """Count the request for the rate limit. Raise RateLimited.

    middleware.py reads `request.window` to set the response's rate limit headers.
    """
    request.window = window = rates.count("requests", kind, row_id)  # type: ignore[attr-defined]  # as ApiRequest has it
    window.require()


def session_of(request: ApiRequest, session_id: str, needs: SessionRole = SessionRole.VIEWER) -> Session:
    """Return the session if the user has at least the role `needs` in it. Raise NoSuchSession, Forbidden."""
    return session_for(request.user, session_id, needs)[0]


def still_allowed(request: ApiRequest, session: Session, needs: SessionRole = SessionRole.VIEWER) -> bool:
    """Return whether the request would still be allowed: the token is valid and the user has the role `needs`."""
    return still_authenticated(request) and still_has_role(request.user, session, needs)


def still_authenticated(request: ApiRequest) -> bool:
    """Return whether the user of a request is still active, and its token, if any, is valid."""
    is_valid = not isinstance(request.auth, ApiToken) or bool(api_tokens.alive([request.auth.pk]))
    return is_valid and still_active(request.user)


def workspace_of(request: ApiRequest, workspace_id: int | None) -> Workspace | None:
    """Return the workspace with this id, or None if the id is None. Raise NoSuchWorkspace."""
    return None if workspace_id is None else workspace_for(request.user, workspace_id)
