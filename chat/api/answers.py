"""Answers of the API: JSON with a tag by which a client need not take twice what it has, nor change what it has not
seen."""

from __future__ import annotations

import hashlib
import json
import re
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.http import parse_etags
from django.utils.translation import gettext as _

from chat.services.errors import Refused

TAG = re.compile(r'(?:W/)?"([0-9]{1,18})\.[0-9a-f]{16}"')


def answer(
    request: HttpRequest, data: Any, *, revision: int | None = None, status: int = HTTPStatus.OK, location: str = ""
) -> HttpResponse:
    """Answer with JSON; with nothing but a 304 when it is what the client says that it has.

    `revision` is that of the one thing that is told of, where it has one: `If-Match` refers to it.
    """
    body = json.dumps(data, separators=(",", ":")).encode()
    digest = hashlib.sha256(body).hexdigest()[:16]
    tag = f'"{digest}"' if revision is None else f'"{revision}.{digest}"'
    if status == HTTPStatus.OK and _has(request, tag):
        return HttpResponseNotModified(headers={"ETag": tag})
    headers = {"ETag": tag, **({"Location": location} if location else {})}
    return HttpResponse(body, status=status, content_type="application/json", headers=headers)


def nothing() -> HttpResponse:
    """Answer that it is done, where there is nothing to tell."""
    return HttpResponse(status=HTTPStatus.NO_CONTENT)


def seen_by(request: HttpRequest) -> int | None:
    """The revision that the client says it has seen, by `If-Match`; None where it does not say.

    Compressing makes tags weak; they mean the same. Raises Refused for tags that are none of a revision.
    """
    told = request.headers.get("If-Match", "").strip()
    if not told or told == "*":
        return None
    if (tag := TAG.fullmatch(told)) is None:
        raise Refused("stale", _("If-Match takes the ETag of what is to be changed."))
    return int(tag[1])


def _has(request: HttpRequest, tag: str) -> bool:
    known = parse_etags(request.headers.get("If-None-Match", ""))
    return known == ["*"] or tag in (each.removeprefix("W/") for each in known)
