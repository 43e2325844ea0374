"""The answers of the API: JSON with an ETag, by which clients avoid reading what they have and overwriting what they
have not seen."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.http import parse_etags
from django.utils.translation import gettext as _

from chat.errors import ServiceError

TAG = re.compile(r'"([0-9]{1,18})\.[0-9a-f]{16}"')


def answer(
    request: HttpRequest,
    data: Any,
    *,
    revision: int | None = None,
    status: int = HTTPStatus.OK,
    location: str = "",
    tagged: bool = True,
) -> HttpResponse:
    """Answer with JSON, or with an empty 304 when `If-None-Match` says that the client has it.

    `revision` is that of the one object in the answer, if it has one: `If-Match` compares it. Pass `tagged=False` when
    the answer is not what a GET of its location returns.
    """
    body = json.dumps(data, separators=(",", ":")).encode()
    headers = {"Location": location} if location else {}
    if tagged:
        digest = hashlib.sha256(body).hexdigest()[:16]
        tag = f'"{digest}"' if revision is None else f'"{revision}.{digest}"'
        if status == HTTPStatus.OK and is_known(request, tag):
            return HttpResponseNotModified(headers={"ETag": tag})
        headers["ETag"] = tag
    return HttpResponse(body, status=status, content_type="application/json", headers=headers)


def nothing() -> HttpResponse:
    """Answer that the request is carried out and that there is nothing to return."""
    response = HttpResponse(status=HTTPStatus.NO_CONTENT)
    del response.headers["Content-Type"]
    return response


def seen_by(request: HttpRequest) -> Collection[int] | None:
    """Return the revisions that `If-Match` names; None when the client makes no condition.

    Compression makes tags weak; they mean the same. Raises ServiceError when no tag in it names a revision.
    """
    header = request.headers.get("If-Match", "").strip()
    if not header or header == "*":
        return None
    tags = [TAG.fullmatch(tag.removeprefix("W/")) for tag in parse_etags(header)]
    revisions = {int(tag[1]) for tag in tags if tag}
    if not revisions:
        raise ServiceError("stale", _("If-Match must be the ETag of the object to change."))
    return revisions


def is_known(request: HttpRequest, tag: str) -> bool:
    """Return whether `If-None-Match` names a tag."""
    known = parse_etags(request.headers.get("If-None-Match", ""))
    return known == ["*"] or tag in (each.removeprefix("W/") for each in known)
