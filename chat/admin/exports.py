"""Exports of sessions by staff: one as a file, several as an archive. Each exported session is logged."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import IO, cast

from django.http import Http404, HttpResponseBase
from django.views.decorators.http import require_GET

from chat.access import is_session_staff, session_for_staff
from chat.admin import audit_log
from chat.admin.permissions import Pages, StaffRequest, may_read_messages, require_messages, session_or_404
from chat.downloads import file_name, passed_on, stream_download, while_permitted
from chat.errors import ServiceError
from chat.models import Session, User
from chat.origin import Origin, current_origin, using_origin
from chat.services.people.security_log import Kind, record
from chat.transfer.public import export_json, export_markdown

# The formats by their names in URLs: export function, media type, file extension, and message for the log.
FORMS: dict[str, tuple[Callable[[Session], Iterator[str]], str, str, str]] = {
    "json": (export_json, "application/json", "json", audit_log.EXPORTED_JSON),
    "markdown": (export_markdown, "text/markdown", "md", audit_log.EXPORTED_MARKDOWN),
}


@require_GET
def export(request: StaffRequest, session_id: str, form: str) -> HttpResponseBase:
    """Download one session."""
    session = session_or_404(request, session_id)
    require_messages(request.user, change=False)
    if form not in FORMS:
        raise Http404
    return response(request, [session.pk], form)


def response(request: StaffRequest, session_ids: Sequence[str], form: str) -> HttpResponseBase:
    """Return one session as a file, or several as a ZIP archive, which is streamed while it is written."""
    write, media_type, extension, _log_message = FORMS[form]
    if len(session_ids) != 1:
        archive = _zip(request.user, session_ids, form, current_origin())
        archive = while_permitted(archive, lambda: _may_export_still(request.user))
        return passed_on(request, archive, name="sessions.zip", media_type="application/zip")
    session = session_for_staff(request.user, session_ids[0], needs_change=False)
    _log_export(request.user, session, form)
    name = file_name(session.title, session.pk, extension)
    pieces = while_permitted(write(session), lambda: _may_export_still(request.user))
    return stream_download(request, pieces, name=name, media_type=media_type)


def _may_export_still(user: User) -> bool:
    """Return whether staff may still read sessions. The request's user caches permissions, so it is read again."""
    now = User.objects.filter(pk=user.pk, is_active=True).first()
    return now is not None and is_session_staff(now, needs_change=False) and may_read_messages(now)


def _log_export(user: User, session: Session, form: str) -> None:
    """Log an export in the admin log and in the security log."""
    audit_log.log_change(user, session, FORMS[form][3])
    record(Kind.EXPORTED, actor=user, person=session.owner_id, target=session, form=form)


class _ZipOutput:
    """A file without `seek`, so that zipfile writes it sequentially and it can be streamed."""

    def __init__(self) -> None:
        self._written: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._written.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing. zipfile requires the method."""

    def take(self) -> bytes:
        """Return what was written since the last call."""
        data = b"".join(self._written)
        self._written.clear()
        return data


def _zip(user: User, session_ids: Sequence[str], form: str, origin: Origin) -> Iterator[bytes]:
    """Yield the bytes of a ZIP archive of sessions. Each session is logged before it is written.

    MISSING.txt in the archive lists the sessions that the user can no longer read.
    """
    write, _media_type, extension, _log_message = FORMS[form]
    output, missing = _ZipOutput(), []
    with zipfile.ZipFile(cast("IO[bytes]", output), "w", zipfile.ZIP_DEFLATED) as archive:
        for session_id in session_ids:
            try:
                session = session_for_staff(user, session_id, needs_change=False)
            except ServiceError as error:
                missing.append(f"{session_id}: {error.message}\n")
                continue
            # The archive is sent after the middleware has reset the request's origin.
            with using_origin(origin):
                _log_export(user, session, form)
            name = file_name(f"{session.pk} {session.title}", session.pk, extension)
            with archive.open(name, "w", force_zip64=True) as entry:
                for piece in write(session):
                    entry.write(piece.encode())
                    yield output.take()
        if missing:
            archive.writestr("MISSING.txt", "".join(missing))
    yield output.take()


PAGES: Pages = {"<str:session_id>/export/<str:form>/": (export, "chat_session_export")}
