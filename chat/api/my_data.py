"""Exporting one's own data."""

from __future__ import annotations

from typing import Any

from django.http.response import HttpResponseBase
from ninja import Router

from chat.api.auth import ApiRequest
from chat.downloads import file_name, passed_on
from chat.transfer.public import export_person

router = Router(tags=["Transfer"])
BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
ARCHIVE: dict[int, dict[str, Any]] = {
    200: {
        "description": "The archive",
        # Generators of clients know the general type, and take the first that they know.
        "content": {"application/octet-stream": BINARY, "application/zip": BINARY},
    }
}


@router.get(
    "/me/export", operation_id="exportMe", summary="Export everything of yours", openapi_extra={"responses": ARCHIVE}
)
def export_me(request: ApiRequest) -> HttpResponseBase:
    """One ZIP archive: account, drafts, sessions and files, and your messages in sessions of others. One at a time."""
    pieces = export_person(user=request.user, author=request.user)
    name = file_name(f"Parley {request.user.username}", "parley", "zip")
    return passed_on(request, pieces, name=name, media_type="application/zip")
