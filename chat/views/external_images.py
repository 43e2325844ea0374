"""A proxy for external images in messages, so that other servers do not learn who reads a message."""

from __future__ import annotations

from threading import BoundedSemaphore

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from agents.errors import ToolError
from agents.toolbox.web_client import Policy, fetch
from chat.files import image_processes
from chat.files.contents import Unusable
from chat.overrides.postgres.lending import return_connection
from chat.rendering.markdown.external_images import is_signed

POLICY = Policy()
# Limits concurrent fetches, so that slow servers delay only images and no other requests.
places = BoundedSemaphore(24)
_HEADERS = {
    "Cache-Control": "private, max-age=86400",
    "Content-Disposition": "inline",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


@require_GET
@login_required
async def image(request: HttpRequest) -> HttpResponse:
    """Serve an image of a message. Only signed addresses are fetched, and only images are returned."""
    address = request.GET.get("address", "")
    if not is_signed(address, request.GET.get("signature", "")):
        raise Http404
    if not places.acquire(blocking=False):
        return HttpResponse(status=503, headers={"Retry-After": "5"})
    try:
        await sync_to_async(return_connection)()
        page = await fetch(address, POLICY)
        if not page.complete:
            raise ToolError(f"{address} is too large.")
        found = await image_processes.read_async(page.body)
    except (ToolError, Unusable):
        return HttpResponse(status=502)
    finally:
        places.release()
    return HttpResponse(found.data, content_type=found.media_type, headers=_HEADERS)
