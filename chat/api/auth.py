"""Authentication of the API: a token of a program, or the cookie of a signed-in user."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja.security import HttpBearer
from ninja.security.apikey import APIKeyCookie
from ninja.utils import check_csrf

from chat.access import session_for, still_in, workspace_for
from chat.errors import ServiceError
from chat.limits import rates
from chat.limits.rates import Window
from chat.models import ApiToken, Session, SessionRole, User, Workspace
from chat.origin import note_token
from chat.services.people import api_tokens
from chat.services.people.second_factor import is_missing

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class ApiRequest(HttpRequest):
    """An authenticated request. `auth` is the token, or the user if a cookie authenticated it."""

    user: User
    auth: ApiToken | User
    window: Window


class Bearer(HttpBearer):
    """`Authorization: Bearer parley_…`. A request with a token ignores cookies."""

    openapi_description: ClassVar[str] = "A token from your settings page. One that may only read is refused writing."

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken:
        row = api_tokens.recognised(token)
        if row is None:
            raise ServiceError("bad_token", _("This token is invalid or has expired."))
        if row.scope != ApiToken.Scope.WRITE and request.method not in SAFE_METHODS:
            raise ServiceError("read_only_token", _("This token is read-only."))
        request.user = row.user
        note_token(row.pk)
        _count(request, "token", row.pk)
        return row


class Cookie(APIKeyCookie):
    """The cookie of a signed-in user. Unsafe methods also need the CSRF token in `X-CSRFToken`.

    `Bearer` raises for an invalid token, so requests with a token do not get here.
    """

    param_name: str = settings.SESSION_COOKIE_NAME
    openapi_description: ClassVar[str] = "A browser's session. Unsafe methods need the header X-CSRFToken as well."

    def _get_key(self, request: HttpRequest) -> str | None:
        # ninja checks CSRF here, for signed-out users too. `authenticate` does it later, with a code of its own.
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
    """Count the request. Raises RateLimited; middleware.py adds the window to the response's headers."""
    request.window = window = rates.count("requests", kind, row_id)  # type: ignore[attr-defined]  # as ApiRequest has it
    window.require()


def session_of(request: ApiRequest, session_id: str, needs: SessionRole = SessionRole.VIEWER) -> Session:
    """Return a session if the user has the role in it. Raises NoSuchSession, Forbidden."""
    return session_for(request.user, session_id, needs)[0]


def still_allowed(request: ApiRequest, session: Session, needs: SessionRole = SessionRole.VIEWER) -> bool:
    """Return whether a request could be made now: its token, if any, is valid, and its user has the role."""
    is_valid = not isinstance(request.auth, ApiToken) or bool(api_tokens.alive([request.auth.pk]))
    return is_valid and still_in(request.user, session, needs)


def workspace_of(request: ApiRequest, workspace_id: int | None) -> Workspace | None:
    """Return the workspace that a request names; None if it names none. Raises NoSuchWorkspace."""
    return None if workspace_id is None else workspace_for(request.user, workspace_id)
