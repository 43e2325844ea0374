"""Export and import of sessions: dialogs, downloads and uploads."""

from __future__ import annotations

from typing import IO, Any

from django.conf import settings
from django.http import HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from chat.access import session_for, still_has_role
from chat.disconnects import Disconnect, disconnect_of
from chat.downloads import file_name, stream_download, while_permitted
from chat.errors import Invalid, ServiceError
from chat.limits.rates import spend
from chat.models import SessionRole, User, Workspace
from chat.queries import workspace
from chat.services import import_uploads
from chat.transfer import public as transfer
from chat.transfer.public import EXTENSIONS, MEDIA_TYPES, ExportFormat, ImportedSession, Outline, export_session
from chat.views.home import named_workspace
from chat.views.requests import SignedInRequest, number, signed_in
from chat.views.uploads import for_scripts
from chat.zones import zone_of

SOURCES = {
    "parley": "Parley",
    "chatgpt": "ChatGPT",
    "claude": "Claude",
    "open_webui": "Open WebUI",
    "librechat": "LibreChat",
}


@never_cache
@require_GET
@signed_in
def export(request: SignedInRequest, session_id: str) -> HttpResponseBase:
    """Return the session as a file in the given `format`, or the export dialog without one."""
    session, role = session_for(request.user, session_id)
    form = request.GET.get("format", "")
    if form not in list(ExportFormat):
        whole, has_files = role.covers(SessionRole.EDITOR), workspace.has_files(session)
        values = {"session": session, "whole": whole, "has_files": has_files}
        return render(request, "chat/session/export.html", values)
    chosen = ExportFormat(form)
    name = file_name(session.title, session.pk, EXTENSIONS[chosen])
    pieces = export_session(session, request.user, role, chosen, zone_of(request))
    pieces = while_permitted(pieces, lambda: still_has_role(request.user, session, role))
    return stream_download(request, pieces, name=name, media_type=MEDIA_TYPES[chosen])


@never_cache
@require_GET
@signed_in
def importing(request: SignedInRequest) -> HttpResponse:
    """Show the import dialog."""
    values = {
        "limit": transfer.limit_bytes(),
        "megabytes": settings.MAX_IMPORT_MB,
    }
    return render(request, "chat/import.html", values)


@for_scripts
def import_file(request: SignedInRequest) -> HttpResponse:
    """Import the conversation in the form's `file`, or the chosen conversations of a stored `upload`.

    A `file` with several conversations is stored for an hour. The response, with status 200, lists them. The page then
    sends the `upload` id and the index of each chosen `conversation`.
    """
    place, client = named_workspace(request), disconnect_of(request)
    chosen = [_index(text) for text in request.POST.getlist("conversation")]
    if upload_id := request.POST.get("upload"):
        with import_uploads.open_upload(owner=request.user, upload_id=upload_id) as (_upload, kept):
            return _import(request.user, kept, place, chosen, client, is_stored=True)
    file = request.FILES.get("file")
    if file is None:
        raise ServiceError("no_file", _("The request contains no file."))
    if not chosen:
        spend("imports", request.user.pk)
        listed = transfer.list_conversations(file, client)
        if len(listed.conversations) > 1:
            upload = import_uploads.keep(owner=request.user, file=file)
            conversations = [_outline(each) for each in listed.conversations]
            return JsonResponse({"upload": upload.id, "conversations": conversations, "problems": listed.problems})
    return _import(request.user, file, place, chosen, client)


def _import(
    owner: User,
    file: IO[bytes],
    place: Workspace | None,
    chosen: list[int],
    client: Disconnect | None,
    *,
    is_stored: bool = False,
) -> HttpResponse:
    outcome = transfer.import_file(
        owner=owner, workspace=place, file=file, chosen=chosen or None, client=client, is_stored=is_stored
    )
    values = {"sessions": [_imported_session(each) for each in outcome.imported], "problems": outcome.problems}
    return JsonResponse(values, status=201)


def _index(text: str) -> int:
    index = number(text)
    if index is None:
        raise Invalid(_("Choose conversations by their index in the file."))
    return index


def _outline(outline: Outline) -> dict[str, Any]:
    return {
        "index": outline.index,
        "title": outline.title or _("Untitled session"),
        "began": outline.began,
        "facts": f"{SOURCES[outline.source]} · {_count(outline.count)}",
        "size": filesizeformat(outline.size),
    }


def _imported_session(imported: ImportedSession) -> dict[str, Any]:
    session = imported.session
    return {
        "title": session.title or _("Untitled session"),
        "address": reverse("session", args=[session.pk]),
        "facts": _count(imported.messages),
        "notes": imported.notes,
    }


def _count(messages: int) -> str:
    return ngettext("%(count)s message", "%(count)s messages", messages) % {"count": messages}
