"""Refusals of the API: problem bodies (RFC 9457) with the codes that the sockets use."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.http import JsonResponse
from django.utils.translation import gettext as _
from ninja import Schema
from pydantic import ConfigDict, Field

from chat.errors import (
    Busy,
    Forbidden,
    NoSuchMessage,
    NoSuchSession,
    NoSuchWorkspace,
    ServiceError,
    unavailable,
)
from chat.limits.quotas import DiskFull, QuotaExceeded
from chat.limits.rates import RateLimited

MEDIA_TYPE = "application/problem+json"
# What a refusal means to HTTP. Others are 422: what was asked for is understood and cannot be.
STATUS = {
    NoSuchSession.CODE: 404,
    NoSuchMessage.CODE: 404,
    NoSuchWorkspace.CODE: 404,
    "no_such_attachment": 404,
    "no_such_import": 404,
    "no_such_suggestion": 404,
    "no_such_attempt": 404,
    "no_such_request": 404,
    "no_such_version": 404,
    "no_such_invitation": 404,
    "range_not_satisfiable": 416,
    "not_found": 404,
    Forbidden.CODE: 403,
    "not_yours": 403,
    "read_only_token": 403,
    "untrusted_form": 403,
    "second_factor_required": 403,
    "signed_out": 401,
    "bad_token": 401,
    "method_not_allowed": 405,
    Busy.CODE: 409,
    "confirm": 409,
    "stale": 409,
    "not_a_guest": 409,
    "export_running": 409,
    "replaced": 409,
    "key_taken": 409,
    "already_delivered": 409,
    "already_sent": 409,
    "queued": 409,
    "archived": 409,
    "too_slow": 408,
    "too_large": 413,
    "unsupported": 415,
    "not_json": 400,
    "too_many_streams": 429,
    RateLimited.CODE: 429,
    QuotaExceeded.CODE: 429,
    DiskFull.CODE: 507,
    "internal": 500,
    "unavailable": 503,
}
OTHERWISE = 422
# Those of HTTP's own ways to refuse that have no service behind them.
CODES = {
    400: "malformed",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    503: "unavailable",
}
RETRY_AFTER = "2"


class Problem(Schema):
    """Why a request was refused. `code` is stable and for programs, `detail` is for people, in their language."""

    model_config = ConfigDict(extra="allow")

    type: str = Field("about:blank", examples=["about:blank"])
    title: str = Field(examples=["Conflict"])
    status: int = Field(examples=[409])
    code: str = Field(examples=["busy"])
    detail: str = Field(examples=["The agent is working. Stop it, or wait until it finishes."])


def problem(code: str, detail: str, status: int = 0, **details: Any) -> JsonResponse:
    """Answer with a problem; `status` is the code's own unless it is given."""
    status = status or STATUS.get(code, OTHERWISE)
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "code": code}
    answer = JsonResponse({**details, **body, "detail": detail}, status=status, content_type=MEDIA_TYPE)
    if status == HTTPStatus.UNAUTHORIZED:
        answer["WWW-Authenticate"] = 'Bearer error="invalid_token"' if code == "bad_token" else "Bearer"
    elif code == "unavailable":
        answer["Retry-After"] = RETRY_AFTER
    elif code == "read_only_token":
        answer["WWW-Authenticate"] = 'Bearer error="insufficient_scope"'
    if "retry_after" in details:
        answer["Retry-After"] = str(details["retry_after"])
    return answer


def refusal(refused: ServiceError, status: int = 0) -> JsonResponse:
    """Answer as a service refuses."""
    return problem(refused.code, refused.message, status, **refused.details)


def words(status: int) -> str:
    """Return the text of a status that has no text of its own."""
    known = {
        404: _("Page not found."),
        405: _("Method not allowed."),
        413: _("The request is too large."),
        503: unavailable(),
    }
    if status in known:
        return known[status]
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _("Something went wrong. The error was logged.")
    return _("The request is malformed.")
