"""JSON responses with an ETag.

With `If-None-Match` a client does not load again what it has. With `If-Match` it overwrites only the version that it
has read.

Views return these responses instead of data, and `response=` only documents them. ninja's own serialization would
validate each response again and truncate times to milliseconds, and it supports neither ETags nor 304.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection
from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.http import parse_etags
from django.utils.translation import gettext as _

from chat.errors import ServiceError

REVISION_TAG = re.compile(r'"([0-9]{1,18})\.[0-9a-f]{16}"')


def json_response(
    request: HttpRequest,
    data: Any,
    *,
    revision: int | None = None,
    status: int = HTTPStatus.OK,
    location: str = "",
    tagged: bool = True,
) -> HttpResponse:
    """Return `data` as JSON with an ETag, or an empty 304 if `If-None-Match` contains this ETag.

    Pass `revision` if the response is one object with a revision: it becomes a part of the ETag, which `If-Match`
    compares. Pass `tagged=False` if a GET of the location would not return the same data.
    """
    body = json.dumps(data, separators=(",", ":")).encode()
    headers = {"Location": location} if location else {}
    if tagged:
        digest = hashlib.sha256(body).hexdigest()[:16]
        etag = f'"{digest}"' if revision is None else f'"{revision}.{digest}"'
        if status == HTTPStatus.OK and client_has(request, etag):
            return HttpResponseNotModified(headers={"ETag": etag})
        headers["ETag"] = etag
    return HttpResponse(body, status=status, content_type="application/json", headers=headers)


def no_content() -> HttpResponse:
    """Return an empty 204 response. It has no Content-Type, which ninja would set."""
    response = HttpResponse(status=HTTPStatus.NO_CONTENT)
    del response.headers["Content-Type"]
    return response


def if_match_revisions(request: HttpRequest) -> Collection[int] | None:
    """Return the revisions in the ETags of `If-Match`, or None if the header is missing or `*`.

    Weak ETags are accepted, because compression makes ETags weak. Raise ServiceError if no ETag contains a revision.
    """
    header = request.headers.get("If-Match", "").strip()
    if not header or header == "*":
        return None
    tags = [REVISION_TAG.fullmatch(tag.removeprefix("W/")) for tag in parse_etags(header)]
    revisions = {int(tag[1]) for tag in tags if tag}
    if not revisions:
        raise ServiceError("stale", _("If-Match must be the ETag of the object to change."))
    return revisions


def client_has(request: HttpRequest, etag: str) -> bool:
    """Return whether `If-None-Match` contains the ETag, or is `*`."""
    etags = parse_etags(request.headers.get("If-None-Match", ""))
    return etags == ["*"] or etag in (each.removeprefix("W/") for each in etags)


def iso(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None
