"""What goes wrong on the way to a view of the API, as problems."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, InternalError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.http.request import RawPostDataException
from django.utils.translation import gettext as _
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from chat.api.parsing import NotJson
from chat.api.problems import CODES, problem, refusal, words
from chat.commands import LONGEST_EXPLANATION, Malformed
from chat.db import is_away
from chat.errors import ServiceError, unavailable

logger = logging.getLogger(__name__)
MOST_ERRORS = 20
# Seconds after which a client may ask a database again that could not be reached.
# Where ninja found it: names of its own that mean nothing to who has sent it.
PLACES = ("body", "query", "path", "header", "form", "file")


def install(api: NinjaAPI) -> None:
    """Have all of them answered as problems; what is none of these is a failure of ours, and goes to the log."""
    api.add_exception_handler(ServiceError, _refused)
    api.add_exception_handler(Malformed, _malformed)
    api.add_exception_handler(ValidationError, _invalid)
    api.add_exception_handler(AuthenticationError, _signed_out)
    api.add_exception_handler(HttpError, _of_http)
    api.add_exception_handler(Http404, lambda request, error: problem("not_found", words(404)))
    api.add_exception_handler(RequestDataTooBig, lambda request, error: problem("too_large", words(413)))
    api.add_exception_handler(RawPostDataException, _not_json)
    for away in (OperationalError, InterfaceError, InternalError):
        api.add_exception_handler(away, _unavailable)
    for unreadable in (SuspiciousOperation, BadRequest, MultiPartParserError, UnicodeError):
        api.add_exception_handler(unreadable, lambda request, error: problem("malformed", words(400), 400))


def _unavailable(request: HttpRequest, error: Any) -> HttpResponse:
    if not is_away(error):
        raise error
    logger.warning("%s %s could not be answered: %s", request.method, request.path, error)
    return problem("unavailable", unavailable())


def _refused(request: HttpRequest, error: Any) -> HttpResponse:
    stale = error.code == "stale" and "If-Match" in request.headers
    return refusal(error, 412 if stale else 0)


def _malformed(request: HttpRequest, error: Any) -> HttpResponse:
    return problem("malformed", str(error))


def _signed_out(request: HttpRequest, error: Any) -> HttpResponse:
    return problem("signed_out", _("Sign in, or send a token: Authorization: Bearer parley_…"))


def _not_json(request: HttpRequest, error: Any) -> HttpResponse:
    return problem("unsupported", _("Send JSON, as application/json."))


def _of_http(request: HttpRequest, error: Any) -> HttpResponse:
    if isinstance(error.__cause__, NotJson):
        return _not_json(request, error)
    if error.status_code == 400:
        return problem("not_json", _("The body is not JSON."))
    return problem(CODES.get(error.status_code, "malformed"), words(error.status_code), error.status_code)


def _invalid(request: HttpRequest, error: Any) -> HttpResponse:
    """Say what is wrong with which field; what was sent is not repeated."""
    found = [{"field": _place(each["loc"]), "message": each["msg"]} for each in error.errors[:MOST_ERRORS]]
    first = found[0] if found else {"field": "", "message": ""}
    detail = f"{first['field'] or 'body'}: {first['message']}"[:LONGEST_EXPLANATION]
    return problem("malformed", detail, errors=[_shortened(each) for each in found])


def _place(loc: Iterable[object]) -> str:
    parts = [str(part) for part in loc]
    inner = parts[2:] if parts[:2] == ["body", "body"] else parts[1:] if parts[:1] and parts[0] in PLACES else parts
    return ".".join(inner)


def _shortened(error: Mapping[str, str]) -> dict[str, str]:
    return {name: value[:LONGEST_EXPLANATION] for name, value in error.items()}
