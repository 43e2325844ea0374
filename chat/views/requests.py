"""Helpers of the views: signed-in requests, errors as responses, parsing of parameters, absolute URLs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.views.csrf import csrf_failure
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from chat import ids
from chat.access import workspace_where
from chat.errors import Forbidden, NoSuchAgentHere, NoSuchSession, NoSuchWorkspace, ServiceError
from chat.models import ChatMessage, User, Workspace
from chat.permissions import Permission

P = ParamSpec("P")


class SignedInRequest(HttpRequest):
    """A request to a view with the decorator `signed_in`."""

    user: User


def _htmx_signs_in(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Redirect the whole page to the sign-in form if the user is signed out and htmx requests a fragment."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.user.is_authenticated or "HX-Request" not in request.headers:
            return view(request, *args, **kwargs)
        back = urlencode({"next": _path(request.headers.get("HX-Current-URL", ""))})
        return HttpResponse(status=401, headers={"HX-Redirect": f"{reverse('sign-in')}?{back}"})

    return answer


def _path(address: str) -> str:
    try:
        return urlsplit(address).path or "/"
    except ValueError:  # not a URL
        return "/"


def signed_in(
    view: Callable[Concatenate[SignedInRequest, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Require a signed-in user. Errors for unknown or hidden objects become 404, errors for forbidden actions 403."""

    @_htmx_signs_in
    @login_required
    @wraps(view)
    def answer(request: SignedInRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except (NoSuchSession, NoSuchWorkspace, NoSuchAgentHere) as refused:
            raise Http404(str(refused)) from refused
        except Forbidden as refused:
            raise PermissionDenied(str(refused)) from refused

    return answer


def workspace_page(
    permission: Permission,
) -> Callable[[Callable[[SignedInRequest, Workspace], HttpResponse]], Callable[[HttpRequest, str], HttpResponseBase]]:
    """Decorate the view of a workspace's page, which requires a signed-in user with the permission in the workspace.

    The view gets GET and POST requests, and the workspace instead of its id.
    """

    def decorate(
        view: Callable[[SignedInRequest, Workspace], HttpResponse],
    ) -> Callable[[HttpRequest, str], HttpResponseBase]:
        @never_cache
        @require_http_methods(["GET", "POST"])
        @signed_in
        @wraps(view)
        def answer(request: SignedInRequest, workspace_id: str) -> HttpResponse:
            return view(request, workspace_where(request.user, permission, number_or_404(workspace_id)))

        return answer

    return decorate


def too_old(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Refuse a form with an expired CSRF token. The response is a page, or JSON for scripts."""
    if not is_script(request):
        return csrf_failure(request, reason)
    return JsonResponse({"message": _("This page is out of date. Reload it and try again.")}, status=403)


def number(text: str) -> int | None:
    """Parse a number in a form or URL. Return None if it is not a number or too large for the database."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def number_or_404(text: str) -> int:
    """Parse a number in a URL. Raise Http404."""
    parsed = number(text)
    if parsed is None:
        raise Http404
    return parsed


def moment_or_404(text: str) -> datetime:
    """Parse a time in a URL, in ISO 8601 with a time zone. Raise Http404."""
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or not datetime.min.year < moment.year < datetime.max.year:
        raise Http404
    return moment


def message_or_404(rows: QuerySet[ChatMessage], message_id: str) -> ChatMessage:
    """Return the message with an id that a client sent. Raise Http404, also if the text cannot be an id."""
    row = rows.filter(pk=message_id).first() if ids.may_be_one(message_id) else None
    if row is None:
        raise Http404
    return row


def status_of(refused: ServiceError) -> int:
    """Return the HTTP status of a page that shows the error: 429 if a rate limit was exceeded, else 422."""
    return 429 if "retry_after" in refused.details else 422


def is_script(request: HttpRequest) -> bool:
    return request.headers.get("Accept") == "application/json"


def may_use_passkeys(request: HttpRequest) -> bool:
    """Return whether browsers support passkeys on this site: on a host name over HTTPS, or on localhost."""
    host = urlsplit(f"//{request.get_host()}").hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    is_name = not host.replace(".", "").isdigit() and ":" not in host
    return is_name and (request.is_secure() or settings.PUBLIC_URL.startswith("https://"))


def absolute(request: HttpRequest, path: str) -> str:
    """Return the absolute URL of a path, below PUBLIC_URL if it is set."""
    return f"{settings.PUBLIC_URL or f'{request.scheme}://{request.get_host()}'}{path}"
