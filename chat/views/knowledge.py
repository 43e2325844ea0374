"""The knowledge of a workspace: a page with its files, for members, and a page with the text of one file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from chat.access import may
from chat.downloads import of_stored
from chat.errors import Forbidden, ServiceError
from chat.files import names
from chat.models import KnowledgeFile, Workspace
from chat.permissions import Permission
from chat.queries import knowledge as queries
from chat.queries.search import around_hit, marked, terms_of
from chat.services.people import knowledge as service
from chat.views.attachments import SANDBOX
from chat.views.requests import SignedInRequest, number, signed_in, status_of, workspace_page
from chat.views.uploads import for_scripts

Values = dict[str, Any]
# The number of passages on one page of a file's text.
PASSAGES = 50
# The maximum number of passages in search results, and of removed files.
FOUND = 20
# The number of passages that are shown before a cited passage.
BEFORE = 2
MAX_QUERY_LENGTH = 400


@workspace_page(Permission.SEE_MEMBERS)
def files(request: SignedInRequest, workspace: Workspace) -> HttpResponse:
    """Show the files of a workspace and the passages that match `q`, or handle the form named by `part`."""
    if request.method == "GET":
        return _page(request, workspace)
    part = request.POST.get("part", "")
    try:
        if part in PARTS:
            PARTS[part](request, workspace)
    except ServiceError as refused:
        status = 403 if isinstance(refused, Forbidden) else status_of(refused)
        # A file that another page has removed has no form that could show the error.
        place = "remove" if isinstance(refused, queries.NoSuchKnowledgeFile) else part
        values = {
            "refused": {place: refused.message},
            "refused_id": request.POST.get("file_id", ""),
            "entered": request.POST.get("name", ""),
        }
        return _page(request, workspace, values, status=status)
    return redirect("knowledge", workspace.pk)


@for_scripts
def upload(request: SignedInRequest, workspace_id: str) -> HttpResponse:
    """Add the form's `file`. Return its id and name as JSON for scripts."""
    added = _add(request, number(workspace_id) or 0, request.FILES.get("file"))
    return JsonResponse({"id": added.pk, "name": added.name}, status=201)


@never_cache
@require_GET
@signed_in
def file(request: SignedInRequest, file_id: str) -> HttpResponse:
    """Show the text of a file from the passage `start` on.

    With `passage`, mark that passage as cited and begin two passages before it. Guests who follow a citation get a page
    that says who can open files. It is the same for files that do not exist, so that ids cannot be guessed.
    """
    try:
        row = queries.fetch(request.user, file_id)
    except queries.NoSuchKnowledgeFile:
        return render(request, "workspace/no_knowledge_file.html", status=404)
    cited = number(request.GET.get("passage", "")) or 0
    start = max(1, cited - BEFORE if cited else number(request.GET.get("start", "")) or 1)
    passages = queries.passages_of(row, start, PASSAGES)
    last = passages[-1].number if passages else row.passage_count
    values = {
        "file": row,
        "passages": passages,
        "cited": cited,
        "before": max(1, start - PASSAGES) if start > 1 else None,
        "after": last + 1 if last < row.passage_count else None,
    }
    return render(request, "workspace/knowledge_file.html", values)


@never_cache
@require_GET
@signed_in
def content(request: SignedInRequest, file_id: str) -> HttpResponseBase:
    """Serve the file itself: a PDF file inline, other files as downloads."""
    row = _fetch(request, file_id)
    try:
        data = queries.open_original(row)
    except queries.NoSuchKnowledgeFile as refused:
        raise Http404(str(refused)) from refused
    is_download = row.kind != KnowledgeFile.Kind.PDF
    headers = {
        "Content-Disposition": content_disposition_header(is_download, row.name) or "attachment",
        "Content-Security-Policy": SANDBOX,
    }
    return of_stored(request, data, media_type=row.media_type, headers=headers)


def _fetch(request: SignedInRequest, file_id: str) -> KnowledgeFile:
    try:
        return queries.fetch(request.user, file_id)
    except queries.NoSuchKnowledgeFile as refused:
        raise Http404(str(refused)) from refused


def _add(request: SignedInRequest, workspace_id: int, file: Any) -> KnowledgeFile:
    if file is None:
        raise ServiceError("no_file", _("Choose a file."))
    name = names.of_upload(file.name)
    return service.add(author=request.user, workspace_id=workspace_id, name=name, size=file.size or 0, file=file)


def _upload(request: SignedInRequest, workspace: Workspace) -> None:
    """Add the form's files. If one is refused, the files before it have been added. Raise ServiceError."""
    files: list[Any] = request.FILES.getlist("file")
    for each in files or [None]:
        added = _add(request, workspace.pk, each)
        messages.success(request, _("“%(name)s” added.") % {"name": added.name})


def _rename(request: SignedInRequest, workspace: Workspace) -> None:
    name = request.POST.get("name", "")
    renamed = service.rename(author=request.user, file_id=request.POST.get("file_id", ""), name=name)
    messages.success(request, _("Renamed to “%(name)s”.") % {"name": renamed.name})


def _remove(request: SignedInRequest, workspace: Workspace) -> None:
    removed = service.remove(author=request.user, file_id=request.POST.get("file_id", ""))
    messages.success(request, _("“%(name)s” removed.") % {"name": removed.name}, extra_tags=f"restore {removed.pk}")


def _restore(request: SignedInRequest, workspace: Workspace) -> None:
    restored = service.restore(author=request.user, file_id=request.POST.get("undo", ""))
    messages.success(request, _("“%(name)s” restored.") % {"name": restored.name})


PARTS: dict[str, Callable[[SignedInRequest, Workspace], None]] = {
    "upload": _upload,
    "rename": _rename,
    "remove": _remove,
    "restore": _restore,
}


def _page(
    request: SignedInRequest, workspace: Workspace, more: Values | None = None, status: int = 200
) -> HttpResponse:
    manages = may(request.user, Permission.MANAGE_KNOWLEDGE, workspace.pk)
    query = request.GET.get("q", "")[:MAX_QUERY_LENGTH].strip()
    refused: Values = {}
    found: list[Values] = []
    try:
        found = _found(request, workspace, query) if query else []
    except ServiceError as error:
        refused["search"] = error.message
    rows = list(queries.files_in(workspace.pk))
    values = {
        "workspace": workspace,
        "files": [_row(row, request, manages=manages) for row in rows],
        "removed": [_row(row, request, manages=manages) for row in queries.removed_from(workspace.pk)[:FOUND]],
        "bytes": sum(row.size for row in rows),
        "query": query,
        "found": found,
        "accepts": ".pdf,.html,.htm,.md,.txt,text/*",
        "upload_address": reverse("knowledge-upload", args=[workspace.pk]),
        "refused": refused,
        **(more or {}),
    }
    return render(request, "workspace/knowledge.html", values, status=status)


def _row(row: KnowledgeFile, request: SignedInRequest, *, manages: bool) -> Values:
    return {"row": row, "may_manage": manages or row.added_by_id == request.user.pk}


def _found(request: SignedInRequest, workspace: Workspace, query: str) -> list[Values]:
    terms = terms_of(query)
    return [
        {"passage": each, "excerpt": marked(around_hit(each.text, terms), terms)}
        for each in queries.search(request.user, workspace.pk, query, FOUND)
    ]
