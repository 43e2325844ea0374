"""Sessions as files that staff take away: one as it is, several in an archive; each time written down."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import IO, cast

from django.http import Http404, HttpResponseBase
from django.views.decorators.http import require_GET

from chat.access import session_for_staff
from chat.admin import audit_log
from chat.admin.permissions import Pages, StaffRequest, require_messages, session_or_404
from chat.downloads import file_name, passed_on, streamed
from chat.errors import ServiceError
from chat.models import Session, User
from chat.origin import Origin, acting_from, current_origin
from chat.services.people.security_log import Kind, record
from chat.transfer.public import export_json, export_markdown

# By its name in an address: how it is written, its media type, the ending of its file, what the log says.
FORMS: dict[str, tuple[Callable[[Session], Iterator[str]], str, str, str]] = {
    "json": (export_json, "application/json", "json", audit_log.EXPORTED_JSON),
    "markdown": (export_markdown, "text/markdown", "md", audit_log.EXPORTED_MARKDOWN),
}


@require_GET
def export(request: StaffRequest, session_id: str, form: str) -> HttpResponseBase:
    """One session as a file."""
    session = session_or_404(request, session_id)
    require_messages(request.user, change=False)
    if form not in FORMS:
        raise Http404
    return response(request, [session.pk], form)


def response(request: StaffRequest, session_ids: Sequence[str], form: str) -> HttpResponseBase:
    """Give sessions away in a form: one as it is, several in an archive."""
    write, media_type, ending, _done = FORMS[form]
    if len(session_ids) != 1:
        packed = _zipped(request.user, session_ids, form, current_origin())
        return passed_on(request, packed, name="sessions.zip", media_type="application/zip")
    session = session_for_staff(request.user, session_ids[0], needs_change=False)
    _note_export(request.user, session, form)
    name = file_name(session.title, session.pk, ending)
    return streamed(request, write(session), name=name, media_type=media_type)


def _note_export(user: User, session: Session, form: str) -> None:
    """Write an export into the session's admin log and the security log."""
    audit_log.note(user, session, FORMS[form][3])
    record(Kind.EXPORTED, actor=user, person=session.owner_id, target=session, form=form)


class _Sink:
    """A file that cannot seek: what is written to it can be sent at once."""

    def __init__(self) -> None:
        self._written: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._written.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def take(self) -> bytes:
        """Return what was written since the last call."""
        data = b"".join(self._written)
        self._written.clear()
        return data


def _zipped(user: User, session_ids: Sequence[str], form: str, origin: Origin) -> Iterator[bytes]:
    """Pack sessions one after the other, each written down in the log when its turn comes.

    Sessions that cannot be read any more are listed in a file of the archive.
    """
    write, _media_type, ending, _done = FORMS[form]
    sink, missing = _Sink(), []
    with zipfile.ZipFile(cast("IO[bytes]", sink), "w", zipfile.ZIP_DEFLATED) as archive:
        for session_id in session_ids:
            try:
                session = session_for_staff(user, session_id, needs_change=False)
            except ServiceError as refusal:
                missing.append(f"{session_id}: {refusal.message}\n")
                continue
            # The archive is sent after the middleware has reset the origin of the request.
            with acting_from(origin):
                _note_export(user, session, form)
            name = file_name(f"{session.pk} {session.title}", session.pk, ending)
            with archive.open(name, "w", force_zip64=True) as entry:
                for piece in write(session):
                    entry.write(piece.encode())
                    yield sink.take()
        if missing:
            archive.writestr("MISSING.txt", "".join(missing))
    yield sink.take()


PAGES: Pages = {"<str:session_id>/export/<str:form>/": (export, "chat_session_export")}
