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

from chat.access import session_for_staff
from chat.admin import audit_log, exports
from chat.admin.permissions import StaffRequest
from chat.errors import ServiceError
from chat.models import Session, User
from chat.services.runs import control
from chat.services.sessions import actions

# A selection over all pages may be everything that there is: changes are made in portions.
MOST = 100
# Does something with a session and returns whether that changed anything.
Deed = Callable[[User, Session], bool]


def stop_one(user: User, session: Session) -> bool:
    if not control.cancel(session=session, author=user):
        return False
    audit_log.note(user, session, audit_log.STOPPED)
    return True


def archive_one(user: User, session: Session) -> bool:
    if session.status == Session.Status.ARCHIVED:
        return False
    actions.set_archived(session=session, archived=True)
    audit_log.note(user, session, audit_log.ARCHIVED)
    return True


def restore_one(user: User, session: Session) -> bool:
    if session.status == Session.Status.ACTIVE:
        return False
    actions.set_archived(session=session, archived=False)
    audit_log.note(user, session, audit_log.RESTORED)
    return True


def undelete_one(user: User, session: Session) -> bool:
    if session.status != Session.Status.DELETED:
        return False
    actions.bring_back(session=session, author=user)
    audit_log.note(user, session, audit_log.UNDELETED)
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


@admin.action(description=gettext_lazy("Restore deleted sessions"), permissions=["change"])
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
    refused: list[ServiceError] = []
    done = 0
    for session_id in ids:
        try:
            with transaction.atomic():
                session = session_for_staff(request.user, session_id, needs_change=True, is_deleted=are_deleted)
                done += deed(request.user, session)
        except ServiceError as refusal:
            refused.append(refusal)
    if done:
        words = ngettext("Updated %(count)s session.", "Updated %(count)s sessions.", done)
        messages.success(request, words % {"count": done})
    if unchanged := len(ids) - len(refused) - done:
        words = ngettext("%(count)s session needed no change.", "%(count)s sessions needed no change.", unchanged)
        messages.info(request, words % {"count": unchanged})
    for text in sorted({refusal.message for refusal in refused}):
        messages.error(request, text)


def _ids(request: StaffRequest, chosen: QuerySet[Session]) -> list[str]:
    ids = list(chosen.values_list("pk", flat=True)[: MOST + 1])
    if len(ids) > MOST:
        words = _("Only the first %(count)s sessions were changed.")
        messages.warning(request, words % {"count": MOST})
    return ids[:MOST]


def _export(request: StaffRequest, chosen: QuerySet[Session], form: str) -> HttpResponseBase:
    """Export all of them, however many: the archive is sent while it is made."""
    return exports.response(request, list(chosen.values_list("pk", flat=True)), form)
