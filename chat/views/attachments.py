"""Attachments of a session. Scripts upload and remove them. Users who may see the session can load them."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified, JsonResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from chat.access import session_for
from chat.downloads import of_stored, requested_range
from chat.errors import ServiceError
from chat.files import names
from chat.models import Attachment, Session, SessionRole
from chat.queries import attachments as stored
from chat.queries.attachments import THUMB, NoSuchAttachment
from chat.services.deletion import sessions
from chat.services.messages import attachments
from chat.views.home import begin
from chat.views.requests import SignedInRequest, signed_in
from chat.views.uploads import for_scripts

# A file never changes. Responses vary by cookie, so that other users of the browser do not get it from the cache.
CACHED = "private, max-age=86400"
# Prevents scripts in a file from running.
SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
SHOWN = {Attachment.Kind.IMAGE, Attachment.Kind.PDF}


@for_scripts
def upload(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Upload the form's `file` and return its description. It waits in the user's composer until it is sent.

    If the response is lost, the browser sends the file again with the same key `upload`, which stores it only once.
    """
    row, _role = session_for(request.user, session_id, SessionRole.EDITOR)
    return JsonResponse(stored.describe(_upload(request, row)), status=201)


@never_cache
@require_GET
@signed_in
def unsent(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Return the unsent `files` in the user's composer, including those uploaded on other devices."""
    row, _role = session_for(request.user, session_id, SessionRole.EDITOR)
    return JsonResponse({"files": stored.unsent(row.pk, request.user)})


@for_scripts
def upload_first(request: SignedInRequest) -> HttpResponse:
    """Create a session from the home page's form and upload `file` to it. The response contains the `session` id."""
    taken = _upload(request, lambda: begin(request)[0])
    return JsonResponse({**stored.describe(taken), "session": taken.session_id}, status=201)


def _upload(request: SignedInRequest, session: Session | Callable[[], Session]) -> Attachment:
    file = request.FILES.get("file")
    if file is None:
        raise ServiceError("no_file", _("The request contains no file."))
    name = names.of_upload(file.name)
    return attachments.upload(
        session=session,
        author=request.user,
        name=name,
        size=file.size or 0,
        file=file,
        key=request.POST.get("upload", ""),
    )


@for_scripts
def remove(request: SignedInRequest, attachment_id: str) -> HttpResponse:
    """Remove an unsent file. With `begun`, also delete the unused session that the home page created for the file."""
    session_id = attachments.remove(user=request.user, attachment_id=attachment_id)
    if "begun" in request.POST:
        sessions.erase_unused(owner=request.user, session_id=session_id)
    return HttpResponse(status=204)


@require_GET
@signed_in
def whole(request: SignedInRequest, attachment_id: str) -> HttpResponseBase:
    """Serve the file: inline if browsers show its type safely, else as a download."""
    attachment = _found(request, attachment_id)
    return _file(request, attachment, "", attachment.media_type)


@require_GET
@signed_in
def thumb(request: SignedInRequest, attachment_id: str) -> HttpResponseBase:
    """Serve the thumbnail of an image."""
    attachment = _found(request, attachment_id)
    if attachment.kind != Attachment.Kind.IMAGE:
        raise Http404
    return _file(request, attachment, THUMB, "image/webp")


def _found(request: SignedInRequest, attachment_id: str) -> Attachment:
    try:
        return stored.fetch(request.user, attachment_id)
    except NoSuchAttachment as refused:
        raise Http404(str(refused)) from refused


def _file(request: HttpRequest, attachment: Attachment, form: str, media_type: str) -> HttpResponseBase:
    tag = f'"{attachment.pk}{form}"'
    headers = {"ETag": tag, "Cache-Control": CACHED}
    if request.headers.get("If-None-Match", "").removeprefix("W/") == tag:  # compression makes the ETag weak
        return HttpResponseNotModified(headers=headers)
    try:
        data = stored.open_file(attachment, form)
    except NoSuchAttachment as refused:
        raise Http404(str(refused)) from refused
    is_shown = attachment.kind in SHOWN
    shown = "inline" if is_shown else "attachment"
    headers |= {"Content-Security-Policy": SANDBOX, "Content-Disposition": _disposition(shown, attachment.name)}
    if not is_shown:  # text may be compressed, so byte ranges would not be ranges of the file
        return of_stored(request, data, media_type=media_type, headers=headers)
    headers["Accept-Ranges"] = "bytes"
    part = requested_range(request, tag, data.size)
    if part is not None and not part:
        data.close()
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{data.size}"})
    return of_stored(request, data, part, media_type=media_type, headers=headers)


def _disposition(shown: str, name: str) -> str:
    """Return a Content-Disposition header (RFC 6266) that also has an ASCII name for old clients."""
    plain = "".join(char if char.isascii() and char not in '"\\' else "_" for char in name)
    return f"{shown}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
