"""What staff do with several sessions of the list at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from chat.admin import exports, journal
from chat.admin.gate import StaffRequest
from chat.models import Session, User
from chat.services import organising, runs
from chat.services.access import session_for_staff
from chat.services.errors import Refused

# A selection over all pages may be everything that there is: what takes a while is done in portions.
MOST = 100
Deed = Callable[[User, Session], None]


def stop_one(user: User, session: Session) -> None:
    if runs.cancel(session=session, author=user):
        journal.note(user, session, journal.STOPPED)


def archive_one(user: User, session: Session) -> None:
    if session.status != Session.Status.ARCHIVED:
        organising.set_archived(session=session, archived=True)
        journal.note(user, session, journal.ARCHIVED)


def restore_one(user: User, session: Session) -> None:
    if session.status != Session.Status.ACTIVE:
        organising.set_archived(session=session, archived=False)
        journal.note(user, session, journal.RESTORED)


def undelete_one(user: User, session: Session) -> None:
    if session.status == Session.Status.DELETED:
        organising.bring_back(session=session, author=user)
        journal.note(user, session, journal.UNDELETED)


@admin.action(description=gettext_lazy("Stop the agent"), permissions=["change"])
def stop(admin: Any, request: StaffRequest, chosen: QuerySet[Session]) -> None:
    _with_each(request, chosen, stop_one)


@admin.action(description=gettext_lazy("Archive"), permissions=["change"])
def archive(admin: Any, request: StaffRequest, chosen: QuerySet[Session]) -> None:
    _with_each(request, chosen, archive_one)


@admin.action(description=gettext_lazy("Restore from the archive"), permissions=["change"])
def restore(admin: Any, request: StaffRequest, chosen: QuerySet[Session]) -> None:
    _with_each(request, chosen, restore_one)


@admin.action(description=gettext_lazy("Bring back what was deleted"), permissions=["change"])
def undelete(admin: Any, request: StaffRequest, chosen: QuerySet[Session]) -> None:
    _with_each(request, chosen, undelete_one, are_deleted=True)


@admin.action(description=gettext_lazy("Export as JSON"), permissions=["read_messages"])
def export_json(admin: Any, request: StaffRequest, chosen: QuerySet[Session]) -> HttpResponseBase:
    return _export(request, chosen, "json")


@admin.action(description=gettext_lazy("Export as Markdown"), permissions=["read_messages"])
def export_markdown(admin: Any, request: StaffRequest, chosen: QuerySet[Session]) -> HttpResponseBase:
    return _export(request, chosen, "markdown")


def _with_each(request: StaffRequest, chosen: QuerySet[Session], deed: Deed, *, are_deleted: bool = False) -> None:
    """Do it with each session that lets it be done; say how many there were, and why others were left out."""
    ids = _ids(request, chosen)
    refused: list[Refused] = []
    for session_id in ids:
        try:
            with transaction.atomic():
                session = session_for_staff(request.user, session_id, needs_change=True, is_deleted=are_deleted)
                deed(request.user, session)
        except Refused as refusal:
            refused.append(refusal)
    if done := len(ids) - len(refused):
        words = ngettext("Done with %(count)s session.", "Done with %(count)s sessions.", done)
        messages.success(request, words % {"count": done})
    for text in sorted({refusal.message for refusal in refused}):
        messages.error(request, text)


def _ids(request: StaffRequest, chosen: QuerySet[Session]) -> list[str]:
    ids = list(chosen.values_list("pk", flat=True)[: MOST + 1])
    if len(ids) > MOST:
        words = _("These are more than %(count)s sessions: it was done with the first %(count)s of them.")
        messages.warning(request, words % {"count": MOST})
    return ids[:MOST]


def _export(request: StaffRequest, chosen: QuerySet[Session], form: str) -> HttpResponseBase:
    sessions = [session_for_staff(request.user, pk, needs_change=False) for pk in _ids(request, chosen)]
    return exports.response(request, sessions, form)
