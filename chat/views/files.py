"""The files of a session: a tab of the panel, and downloads."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from urllib.parse import urlencode

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.messages import Json
from agents.safe_text import clean
from agents.sandbox.browsing import Entry, Listing, OpenFile
from chat.access import session_for, still_has_role
from chat.downloads import file_name, of_file, passed_on, while_permitted, zip_archive
from chat.errors import NoSuchSession
from chat.files.sniffing import audio_type, browser_type
from chat.limits.rates import spend
from chat.models import Session, User
from chat.queries import workspace
from chat.queries.forked_files import forked_files
from chat.queries.workspace import NoSuchFile
from chat.rendering.markdown.render import colored
from chat.rendering.messages.file_changes import FileChange, change_of
from chat.snapshots import MessageSnapshot
from chat.views.attachments import SANDBOX
from chat.views.requests import SignedInRequest, signed_in

# The maximum size of a preview: bytes from the beginning of the file, and rows and columns of a table.
PREVIEWED = 200_000
MAX_ROWS = 200
MAX_COLUMNS = 50
PAGES = (".html", ".htm", ".svg")
TABLES = {"csv": ",", "tsv": "\t"}


@dataclass(frozen=True, slots=True)
class Place:
    """A link in the path above a listing."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Preview:
    """The preview of a file. `kind` is image, pdf, table, text or other. `is_cut`: only the beginning is shown."""

    kind: str
    entry: Entry
    address: str
    code: SafeString | None = None
    rows: list[list[str]] | None = None
    is_cut: bool = False

    @property
    def is_page(self) -> bool:
        """Return whether the preview is a complete HTML or SVG file, which browsers can draw."""
        return self.kind == "text" and not self.is_cut and self.entry.name.lower().endswith(PAGES)


@never_cache
@require_GET
@signed_in
def files(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Show the folder or file `path` of the workspace."""
    session, _role = session_for(request.user, session_id)
    path = request.GET.get("path", "")
    values: Json = {"session": session, "is_lost": False, "forked_files": forked_files(session)}
    values["original"] = _original(request.user, session)
    try:
        values |= _folder(session, workspace.listing_of(session, path))
    except NoSuchFile:
        try:
            values |= _file(session, workspace.open_file(session, path))
        except NoSuchFile:
            values |= {**_folder(session, workspace.listing_of(session, "")), "is_lost": True}
    return render(request, "chat/panel/files.html", values)


@never_cache
@require_GET
@signed_in
def file(request: SignedInRequest, session_id: str) -> HttpResponseBase:
    """Serve the file `path` as a download. With `show`, serve it inline if browsers can show its type safely."""
    session, _role = session_for(request.user, session_id)
    try:
        found = workspace.open_file(session, request.GET.get("path", ""))
    except NoSuchFile as refused:
        raise Http404(str(refused)) from refused
    beginning = found.stream.read(16)
    shown = (browser_type(beginning) or audio_type(beginning)) if request.GET.get("show") else ""
    found.stream.seek(0)
    response = of_file(request, found, media_type=shown)
    response["Content-Security-Policy"] = SANDBOX
    return response


@never_cache
@require_GET
@signed_in
def archive(request: SignedInRequest, session_id: str) -> HttpResponseBase:
    """Serve all files below the folder `path` as a ZIP archive."""
    session, _role = session_for(request.user, session_id)
    path = request.GET.get("path", "")
    spend("exports", request.user.pk)
    try:
        entries = workspace.files_below(session, path)
    except NoSuchFile as refused:
        raise Http404(str(refused)) from refused
    title = path.strip("/").rpartition("/")[2] or session.title
    name = file_name(title, "files", "zip")
    pieces = while_permitted(zip_archive(entries, timezone.now()), lambda: still_has_role(request.user, session))
    return passed_on(request, pieces, name=name, media_type="application/zip")


def _original(user: User, session: Session) -> Session | None:
    """Return the session from which a fork was made, or None if it has no files that the user may see."""
    if session.parent_session_id is None:
        return None
    try:
        original, _role = session_for(user, session.parent_session_id)
    except NoSuchSession:
        return None
    return original if workspace.has_files(original) else None


def _folder(session: Session, listing: Listing) -> Json:
    changes = [] if listing.path else _changes(session)
    entries = [(entry, workspace.moment(entry.changed)) for entry in listing.entries]
    return {"listing": listing, "places": _places(listing.path), "changes": changes, "entries": entries}


def _file(session: Session, found: OpenFile) -> Json:
    with found.stream:
        preview = _preview(session, found)
    places = _places(found.entry.path)
    return {"preview": preview, "places": places[:-1], "above": places[-2] if len(places) > 1 else Place("", "")}


def _places(path: str) -> list[Place]:
    parts = path.split("/") if path else []
    return [Place(name, "/".join(parts[: place + 1])) for place, name in enumerate(parts)]


def _changes(session: Session) -> list[FileChange]:
    rows = workspace.last_changes(session)
    tools = [tool for row in rows if (tool := MessageSnapshot.from_row(row).tool) is not None]
    changes = [change for tool in tools if (change := change_of(tool)) is not None]
    return [change for change in changes if workspace.has_file(session, change.path)]


def _preview(session: Session, found: OpenFile) -> Preview:
    entry = found.entry
    address = f"{reverse('session-file', args=[session.pk])}?{urlencode({'path': entry.path})}"
    data = found.stream.read(PREVIEWED)
    kind = browser_type(data)
    if kind:
        return Preview("pdf" if kind == "application/pdf" else "image", entry, address)
    if b"\0" in data:
        return Preview("other", entry, address)
    text, ending = clean(data.decode(errors="replace")), entry.name.rpartition(".")[2].lower()
    is_cut = entry.size > len(data)
    if ending in TABLES and (rows := _table(text, TABLES[ending])):
        return Preview("table", entry, address, rows=rows, is_cut=is_cut or len(rows) == MAX_ROWS)
    return Preview("text", entry, address, code=_colored(text, ending), is_cut=is_cut)


def _colored(text: str, language: str) -> SafeString:
    html = colored(text, language)
    return escape(text) if html is None else mark_safe(html)  # noqa: S308  # spans around escaped text


def _table(text: str, delimiter: str) -> list[list[str]]:
    try:
        return [row[:MAX_COLUMNS] for row in islice(csv.reader(StringIO(text), delimiter=delimiter), MAX_ROWS)]
    except csv.Error:
        return []
