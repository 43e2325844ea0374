"""Sessions as files that staff take away: one as it is, several in an archive; each time written down."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from tempfile import TemporaryFile

from django.http import Http404, HttpResponseBase
from django.views.decorators.http import require_GET

from chat.admin import journal
from chat.admin.gate import Pages, StaffRequest, require_messages, session_or_404
from chat.downloads import file_name, passed_on, streamed
from chat.models import Session
from chat.services.exporting import export_json, export_markdown
from chat.services.security_log import Kind, record

PORTION = 1_000_000
# By its name in an address: how it is written, its media type, the ending of its file, what the log says.
FORMS: dict[str, tuple[Callable[[Session], Iterator[str]], str, str, str]] = {
    "json": (export_json, "application/json", "json", journal.EXPORTED_JSON),
    "markdown": (export_markdown, "text/markdown", "md", journal.EXPORTED_MARKDOWN),
}


@require_GET
def export(request: StaffRequest, session_id: str, form: str) -> HttpResponseBase:
    """One session as a file."""
    session = session_or_404(request, session_id)
    require_messages(request.user, change=False)
    if form not in FORMS:
        raise Http404
    return response(request, [session], form)


def response(request: StaffRequest, sessions: Sequence[Session], form: str) -> HttpResponseBase:
    """Give sessions away in a form."""
    write, media_type, ending, done = FORMS[form]
    for session in sessions:
        journal.note(request.user, session, done)
        record(Kind.EXPORTED, actor=request.user, person=session.owner_id, target=session, form=form)
    if len(sessions) == 1:
        name = file_name(sessions[0].title, sessions[0].pk, ending)
        return streamed(request, write(sessions[0]), name=name, media_type=media_type)
    return passed_on(request, _zipped(sessions, form), name="sessions.zip", media_type="application/zip")


def _zipped(sessions: Iterable[Session], form: str) -> Iterator[bytes]:
    """Pack sessions on the disk: with their files they may be larger than the memory."""
    write, _media_type, ending, _done = FORMS[form]
    with TemporaryFile() as packed:
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for session in sessions:
                name = file_name(f"{session.pk} {session.title}", session.pk, ending)
                with archive.open(name, "w", force_zip64=True) as entry:
                    entry.writelines(piece.encode() for piece in write(session))
        packed.seek(0)
        while portion := packed.read(PORTION):
            yield portion


PAGES: Pages = {"<str:session_id>/export/<str:form>/": (export, "chat_session_export")}
