"""Errors of the API: exception handlers, and problem bodies (RFC 9457) with the codes that sockets send."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, InternalError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.http.request import RawPostDataException
from django.utils.translation import gettext as _
from ninja import NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError, ValidationError
from pydantic import ConfigDict, Field

from chat.api.parsing import NotJson
from chat.command_frames import MAX_EXPLANATION_LENGTH, MalformedCommand, problem_of
from chat.db import NOT_UTF_8, is_unavailable, is_unreadable
from chat.errors import (
    Busy,
    Forbidden,
    NoSuchAgentHere,
    NoSuchMessage,
    NoSuchSchedule,
    NoSuchSession,
    NoSuchWorkspace,
    ServiceError,
    unavailable,
    unreadable,
)
from chat.limits.quotas import DiskFull, QuotaExceeded
from chat.limits.rates import RateLimited

logger = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"
# The HTTP status of each error code. Codes that are not in this table get 422.
STATUS = {
    NoSuchSession.CODE: 404,
    NoSuchMessage.CODE: 404,
    NoSuchWorkspace.CODE: 404,
    NoSuchAgentHere.CODE: 404,
    "no_such_attachment": 404,
    "no_such_file": 404,
    "no_such_note": 404,
    "no_such_import": 404,
    "no_such_suggestion": 404,
    "no_such_attempt": 404,
    "no_such_request": 404,
    "no_such_version": 404,
    "no_such_member": 404,
    "no_such_rule": 404,
    "no_such_webhook": 404,
    "no_such_delivery": 404,
    NoSuchSchedule.CODE: 404,
    "no_such_invitation": 404,
    "range_not_satisfiable": 416,
    "not_found": 404,
    Forbidden.CODE: 403,
    "not_yours": 403,
    "read_only_token": 403,
    "untrusted_form": 403,
    "second_factor_required": 403,
    "https_required": 403,
    "signed_out": 401,
    "bad_token": 401,
    "method_not_allowed": 405,
    Busy.CODE: 409,
    "confirm": 409,
    "stale": 409,
    "not_a_guest": 409,
    "last_owner": 409,
    "export_running": 409,
    "replaced": 409,
    "never_delivered": 409,
    "key_taken": 409,
    "name_taken": 409,
    "already_delivered": 409,
    "already_answered": 409,
    "already_approved": 409,
    "too_late": 409,
    "agent_changed": 409,
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
DEFAULT_STATUS = 422
# The codes of errors that Django or ninja raises, which have only a status.
CODES = {
    400: "malformed",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    503: "unavailable",
}
# Seconds after which clients may retry when the database was unreachable.
RETRY_AFTER = "2"
MAX_ERRORS = 20
# The sources of values, with which ninja begins the location of an error. Responses leave them out because clients do
# not know these names.
SOURCES = ("body", "query", "path", "header", "form", "file")


class Problem(Schema):
    """The reason why a request was refused. Some codes add further fields, such as `revision` or `retry_after`."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(
        "about:blank", examples=["about:blank"], description="Always `about:blank`: the `code` identifies the problem."
    )
    title: str = Field(examples=["Conflict"], description="The name of the HTTP status, in English.")
    status: int = Field(examples=[409], description="The HTTP status code of the response.")
    code: str = Field(examples=["busy"], description="A stable code for programs. docs/protocol.md lists all codes.")
    detail: str = Field(
        examples=["The agent is working. Stop it, or wait until it finishes."],
        description="A sentence for users, in the language of `Accept-Language`. A `malformed` request is described "
        "in English.",
    )


def install(api: NinjaAPI) -> None:
    """Register handlers that turn expected errors into problems.

    Other exceptions are bugs, so they are logged and answered with 500.
    """
    api.add_exception_handler(ServiceError, _service_error)
    api.add_exception_handler(MalformedCommand, _malformed)
    api.add_exception_handler(ValidationError, _invalid)
    api.add_exception_handler(AuthenticationError, _signed_out)
    api.add_exception_handler(HttpError, _http_error)
    api.add_exception_handler(Http404, lambda request, error: problem("not_found", default_detail(404)))
    api.add_exception_handler(RequestDataTooBig, lambda request, error: problem("too_large", default_detail(413)))
    api.add_exception_handler(RawPostDataException, _not_json)
    for database_error in (OperationalError, InterfaceError, InternalError):
        api.add_exception_handler(database_error, _unavailable)
    for malformed in (SuspiciousOperation, BadRequest, MultiPartParserError, UnicodeError):
        api.add_exception_handler(malformed, lambda request, error: problem("malformed", default_detail(400), 400))


def _unavailable(request: HttpRequest, error: Any) -> HttpResponse:
    if is_unreadable(error):
        logger.warning("Could not answer %s %s: %s", request.method, request.path, NOT_UTF_8)
        return problem("unreadable", unreadable())
    if not is_unavailable(error):
        raise error
    logger.warning("Could not answer %s %s: %s", request.method, request.path, error)
    return problem("unavailable", unavailable())


def _service_error(request: HttpRequest, error: Any) -> HttpResponse:
    is_stale = error.code == "stale" and "If-Match" in request.headers
    return problem(error.code, error.message, 412 if is_stale else 0, **error.details)


def _malformed(request: HttpRequest, error: Any) -> HttpResponse:
    return problem("malformed", str(error))


def _signed_out(request: HttpRequest, error: Any) -> HttpResponse:
    return problem("signed_out", _("Sign in, or send a token: Authorization: Bearer parley_…"))


def _not_json(request: HttpRequest, error: Any) -> HttpResponse:
    return problem("unsupported", _("Send JSON with the content type application/json."))


def _http_error(request: HttpRequest, error: Any) -> HttpResponse:
    if isinstance(error.__cause__, NotJson):
        return _not_json(request, error)
    if error.status_code == 400:
        return problem("not_json", _("The body is not JSON."))
    return problem(CODES.get(error.status_code, "malformed"), default_detail(error.status_code), error.status_code)


def _invalid(request: HttpRequest, error: Any) -> HttpResponse:
    """Return a problem that lists the invalid fields with their errors. It never contains the client's values."""
    found = [(_field(each["loc"]), problem_of(each)) for each in error.errors[:MAX_ERRORS]]
    field, message = found[0] if found else ("", "")
    detail = f"{field or 'body'}: {message}"[:MAX_EXPLANATION_LENGTH]
    errors = [
        {"field": field[:MAX_EXPLANATION_LENGTH], "message": message[:MAX_EXPLANATION_LENGTH]}
        for field, message in found
    ]
    return problem("malformed", detail, errors=errors)


def _field(loc: Iterable[object]) -> str:
    """Return the path of a field as clients know it, such as `config.tools`."""
    parts = [str(part) for part in loc]
    inner = parts[2:] if parts[:2] == ["body", "body"] else parts[1:] if parts[:1] and parts[0] in SOURCES else parts
    return ".".join(inner)


def problem(code: str, detail: str, status: int = 0, **details: Any) -> JsonResponse:
    """Return a problem response. `status` defaults to the status of the code in STATUS."""
    status = status or STATUS.get(code, DEFAULT_STATUS)
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "code": code}
    response = JsonResponse({**details, **body, "detail": detail}, status=status, content_type=MEDIA_TYPE)
    if status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Bearer error="invalid_token"' if code == "bad_token" else "Bearer"
    elif code == "unavailable":
        response["Retry-After"] = RETRY_AFTER
    elif code == "read_only_token":
        response["WWW-Authenticate"] = 'Bearer error="insufficient_scope"'
    if "retry_after" in details:
        response["Retry-After"] = str(details["retry_after"])
    return response


def default_detail(status: int) -> str:
    """Return the `detail` of an error that has only a status."""
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
