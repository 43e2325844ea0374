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

# A selection over all pages may be everything that there is: changes are made in portions.
MOST = 100
# Does something with a session and returns whether that changed anything.
Deed = Callable[[User, Session], bool]


def stop_one(user: User, session: Session) -> bool:
    if not runs.cancel(session=session, author=user):
        return False
    journal.note(user, session, journal.STOPPED)
    return True


def archive_one(user: User, session: Session) -> bool:
    if session.status == Session.Status.ARCHIVED:
        return False
    organising.set_archived(session=session, archived=True)
    journal.note(user, session, journal.ARCHIVED)
    return True


def restore_one(user: User, session: Session) -> bool:
    if session.status == Session.Status.ACTIVE:
        return False
    organising.set_archived(session=session, archived=False)
    journal.note(user, session, journal.RESTORED)
    return True


def undelete_one(user: User, session: Session) -> bool:
    if session.status != Session.Status.DELETED:
        return False
    organising.bring_back(session=session, author=user)
    journal.note(user, session, journal.UNDELETED)
    return True


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
    """Do it with each session; say how many it changed, how many needed no change, and why others refused."""
    ids = _ids(request, chosen)
    refused: list[Refused] = []
    done = 0
    for session_id in ids:
        try:
            with transaction.atomic():
                session = session_for_staff(request.user, session_id, needs_change=True, is_deleted=are_deleted)
                done += deed(request.user, session)
        except Refused as refusal:
            refused.append(refusal)
    if done:
        words = ngettext("Done with %(count)s session.", "Done with %(count)s sessions.", done)
        messages.success(request, words % {"count": done})
    if unchanged := len(ids) - len(refused) - done:
        words = ngettext("%(count)s session needed no change.", "%(count)s sessions needed no change.", unchanged)
        messages.info(request, words % {"count": unchanged})
    for text in sorted({refusal.message for refusal in refused}):
        messages.error(request, text)


def _ids(request: StaffRequest, chosen: QuerySet[Session]) -> list[str]:
    ids = list(chosen.values_list("pk", flat=True)[: MOST + 1])
    if len(ids) > MOST:
        words = _("These are more than %(count)s sessions: it was done with the first %(count)s of them.")
        messages.warning(request, words % {"count": MOST})
    return ids[:MOST]


def _export(request: StaffRequest, chosen: QuerySet[Session], form: str) -> HttpResponseBase:
    """Export all of them, however many: the archive is sent while it is made."""
    return exports.response(request, list(chosen.values_list("pk", flat=True)), form)
