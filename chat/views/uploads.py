"""A decorator for views that get forms and files from scripts and return errors as JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from chat.errors import Forbidden, NoSuchSession, NoSuchWorkspace, ServiceError
from chat.limits.quotas import DiskFull, QuotaExceeded
from chat.limits.rates import RateLimited
from chat.models import User
from chat.queries.attachments import NoSuchAttachment
from chat.services.import_uploads import NoSuchUpload
from chat.services.messages.attachments import TooLarge
from chat.views.requests import SignedInRequest

P = ParamSpec("P")
STATUS = {NoSuchSession.CODE: 404, NoSuchAttachment.CODE: 404, Forbidden.CODE: 403, TooLarge.CODE: 413}
STATUS |= {NoSuchWorkspace.CODE: 404, "unsupported": 415, "unavailable": 503, RateLimited.CODE: 429}
STATUS |= {QuotaExceeded.CODE: 429, DiskFull.CODE: 507, NoSuchUpload.CODE: 404}
OTHERWISE = 422
SIGNED_OUT = 401


def for_scripts(
    view: Callable[Concatenate[SignedInRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Accept only POST, and return errors as JSON {code, message}. Signed-out users get 401 instead of a redirect."""

    @require_POST
    @wraps(view)
    def answer(request: SignedInRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not isinstance(request.user, User):
            return _refusal("signed_out", _("You’re signed out. Sign in, then try again."), SIGNED_OUT)
        try:
            return view(request, *args, **kwargs)
        except ServiceError as refused:
            response = _refusal(refused.code, refused.message, STATUS.get(refused.code, OTHERWISE))
            if "retry_after" in refused.details:
                response["Retry-After"] = str(refused.details["retry_after"])
            return response

    return answer  # type: ignore[return-value]  # require_POST's stub forgets the narrower request


def _refusal(code: str, message: str, status: int) -> HttpResponse:
    return JsonResponse({"code": code, "message": message}, status=status)
