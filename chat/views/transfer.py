"""Taking sessions away as files, and bringing them in from files: what is offered, and the files themselves."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from chat.disconnects import disconnect_of
from chat.downloads import file_name, streamed
from chat.imports.reading import Outline
from chat.models import Role
from chat.services import import_files
from chat.services.access import session_for
from chat.services.errors import Invalid, Refused
from chat.services.exporting import ENDINGS, MEDIA_TYPES, Form, exported
from chat.services.import_files import Brought
from chat.services.limits import spend
from chat.views.home import named_workspace, zone_of
from chat.views.requests import SignedInRequest, number, signed_in
from chat.views.uploads import for_scripts

SOURCES = {"parley": "Parley", "chatgpt": "ChatGPT", "claude": "Claude"}


@never_cache
@require_GET
@signed_in
def export(request: SignedInRequest, session_id: str) -> HttpResponseBase:
    """The session as a file in a `format`; without one, the dialog that offers them."""
    session, role = session_for(request.user, session_id)
    form = request.GET.get("format", "")
    if form not in list(Form):
        return render(request, "chat/session/export.html", {"session": session, "whole": role.covers(Role.EDITOR)})
    chosen = Form(form)
    name = file_name(session.title, session.pk, ENDINGS[chosen])
    pieces = exported(session, request.user, role, chosen, zone_of(request))
    return streamed(request, pieces, name=name, media_type=MEDIA_TYPES[chosen])


@never_cache
@require_GET
@signed_in
def importing(request: SignedInRequest) -> HttpResponse:
    """The dialog that takes a file."""
    values = {
        "most": import_files.MOST_AT_ONCE,
        "limit": import_files.limit_bytes(),
        "megabytes": settings.MAX_IMPORT_MB,
    }
    return render(request, "chat/import.html", values)


@for_scripts
def import_file(request: SignedInRequest) -> HttpResponse:
    """Bring in the form's `file`: each `conversation` that is named by its index, or the only one there is.

    200 and the `conversations` to choose from, where there are several and none is named.
    """
    file = request.FILES.get("file")
    workspace, client = named_workspace(request), disconnect_of(request)
    if file is None:
        raise Refused("no_file", _("There is no file in what was sent."))
    chosen = [_index(text) for text in request.POST.getlist("conversation")]
    if not chosen:
        spend("imports", request.user.pk)
        listed = import_files.contents(file, client)
        if len(listed) > 1:
            return JsonResponse({"conversations": [_outline(each) for each in listed]})
    outcome = import_files.import_file(
        owner=request.user, workspace=workspace, file=file, chosen=chosen or None, client=client
    )
    told = {"sessions": [_brought(each) for each in outcome.brought], "problems": outcome.problems}
    return JsonResponse(told, status=201)


def _index(text: str) -> int:
    index = number(text)
    if index is None:
        raise Invalid(_("A conversation is named by its index in the file."))
    return index


def _outline(outline: Outline) -> dict[str, Any]:
    return {
        "index": outline.index,
        "title": outline.title or _("Untitled session"),
        "began": outline.began,
        "facts": f"{SOURCES[outline.source]} · {_count(outline.count)}",
    }


def _brought(brought: Brought) -> dict[str, Any]:
    session = brought.session
    return {
        "title": session.title or _("Untitled session"),
        "address": reverse("session", args=[session.pk]),
        "facts": _count(brought.messages),
        "notes": brought.notes,
    }


def _count(messages: int) -> str:
    return ngettext("%(count)s message", "%(count)s messages", messages) % {"count": messages}
