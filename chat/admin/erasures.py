"""The permanent erasure of sessions and users: actions with a confirmation page, and the list of erasures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy, ngettext
from django.utils.translation import gettext_lazy as _

from chat.admin import audit_log
from chat.admin.base import ReadOnly, time_column
from chat.admin.permissions import StaffRequest, title_for
from chat.errors import ServiceError
from chat.languages import listed
from chat.models import Erasure, Session, User
from chat.services.batches import Deadline
from chat.services.deletion import requests, users

if TYPE_CHECKING:
    Erasures = admin.ModelAdmin[Erasure]
else:
    Erasures = admin.ModelAdmin

# The confirmation page describes each selected row, so a selection is limited to what a person can check.
MAX_ROWS = 20
# The maximum time in seconds that a request spends on erasing. The maintenance job finishes the rest within about a
# minute.
MAX_SECONDS = 3.0
# The names of the kinds of rows that `chat.services.deletion` counts.
KINDS = {
    "files": _("files"),
    "handed_over": _("sessions handed over"),
    "messages": _("messages"),
    "requests": _("model requests"),
    "revisions": _("revisions"),
    "sessions": _("sessions"),
    "uploads": _("uploads"),
    "users": _("accounts"),
}


@dataclass(frozen=True, slots=True)
class ErasurePreview:
    """A row on the confirmation page. `facts` are sentences about what would be erased with it."""

    id: str | int
    name: str
    facts: list[str]


@admin.register(Erasure)
class ErasureAdmin(ReadOnly, Erasures):
    when_empty = _("Nothing has been erased yet. To erase sessions or people permanently, select them in their lists.")
    fields = list_display = (
        *("kind", "target", "requested_by", time_column(Erasure, "requested_at")),
        *(time_column(Erasure, "finished_at"), "counted"),
    )
    list_filter = ("kind",)
    show_facets = admin.ShowFacets.NEVER
    list_select_related = ("requested_by",)
    search_fields = ("target",)
    list_per_page = 50

    def has_delete_permission(self, request: HttpRequest, obj: Erasure | None = None) -> bool:
        """Return False, because erasures are records that must be kept."""
        return False

    @admin.display(description=_("erased"))
    def counted(self, erasure: Erasure) -> str:
        return listed(f"{KINDS.get(kind, kind)} {count}" for kind, count in sorted(erasure.counts.items()))


@admin.action(description=gettext_lazy("Erase permanently…"), permissions=["erase"])
def erase_sessions(
    model_admin: admin.ModelAdmin[Session], request: StaffRequest, chosen: QuerySet[Session]
) -> HttpResponse | None:
    def erase(session: Session) -> Erasure:
        audit_log.log_change(request.user, session, audit_log.ERASED)
        return requests.request_session(session_id=session.pk, author=request.user)

    def describe(session: Session) -> ErasurePreview:
        plan = requests.plan_session(session)
        facts = [
            gettext("Owner: %(name)s") % {"name": session.owner.sender},
            ngettext("%(count)d message", "%(count)d messages", plan.messages) % {"count": plan.messages},
            ngettext("%(count)d revision", "%(count)d revisions", plan.revisions) % {"count": plan.revisions},
            ngettext("%(count)d file", "%(count)d files", plan.files) % {"count": plan.files},
        ]
        if plan.forks:
            forks = ngettext("%(count)d fork is kept", "%(count)d forks are kept", plan.forks)
            facts.append(forks % {"count": plan.forks})
        return ErasurePreview(session.pk, title_for(request.user, session), facts)

    rows = list(chosen.select_related("owner")[: MAX_ROWS + 1])
    return _confirm(model_admin, request, rows, describe, erase)


@admin.action(description=gettext_lazy("Erase permanently…"), permissions=["erase"])
def erase_users(
    model_admin: admin.ModelAdmin[User], request: StaffRequest, chosen: QuerySet[User]
) -> HttpResponse | None:
    def erase(user: User) -> Erasure:
        audit_log.log_row(request.user, user, audit_log.ERASURE_REQUESTED)
        return requests.request_user(user=user, author=request.user)

    def describe(user: User) -> ErasurePreview:
        plan = users.plan(user, [row.pk for row in rows])
        erased = ngettext(
            "%(count)d of their sessions is erased", "%(count)d of their sessions are erased", plan.sessions
        )
        handed_over = ngettext(
            "%(count)d shared session is transferred to another editor",
            "%(count)d shared sessions are transferred to other editors",
            len(plan.handed_over),
        )
        replaced = ngettext(
            "%(count)d message in other sessions is replaced by “[erased]”",
            "%(count)d messages in other sessions are replaced by “[erased]”",
            plan.messages,
        )
        counts = ((erased, plan.sessions), (handed_over, len(plan.handed_over)), (replaced, plan.messages))
        facts = [text % {"count": count} for text, count in counts]
        facts += [
            gettext("%(name)s becomes an owner of the workspace “%(workspace)s”")
            % {"name": heir.sender, "workspace": workspace.name}
            for workspace, heir in plan.workspaces
        ]
        return ErasurePreview(user.pk, f"{user.sender} ({user.username})", facts)

    rows = [user for user in chosen[: MAX_ROWS + 1] if model_admin.has_change_permission(request, user)]
    if not rows:
        messages.error(request, gettext("Items that you can’t change were skipped."))
        return None
    return _confirm(model_admin, request, rows, describe, erase)


def _confirm(
    model_admin: admin.ModelAdmin[Any],
    request: StaffRequest,
    rows: Sequence[Any],
    describe: Callable[[Any], ErasurePreview],
    erase: Callable[[Any], Erasure],
) -> HttpResponse | None:
    """Erase rows if the request contains the confirmation, else show the confirmation page."""
    if len(rows) > MAX_ROWS:
        messages.error(request, gettext("Choose at most %(count)d at a time.") % {"count": MAX_ROWS})
        return None
    if request.POST.get("sure") == "yes":
        _erase_rows(request, rows, erase)
        return None
    values = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.model._meta,
        "title": gettext("Erase permanently?"),
        "previews": [describe(row) for row in rows],
        "action": request.POST.get("action", ""),
        "checkbox": ACTION_CHECKBOX_NAME,
    }
    return render(request, "admin/chat/erase.html", values)


def _erase_rows(request: StaffRequest, rows: Sequence[Model], erase: Callable[[Any], Erasure]) -> None:
    deadline = Deadline(MAX_SECONDS)
    erasures = []
    for row in rows:
        try:
            with transaction.atomic():
                erasures.append(erase(row))
        except ServiceError as error:
            messages.error(request, error.message)
    finished = sum(requests.carry_out(each, deadline) for each in erasures)
    if finished:
        text = ngettext("Erased %(count)d item.", "Erased %(count)d items.", finished)
        messages.success(request, text % {"count": finished})
    if len(erasures) > finished:
        text = ngettext(
            "%(count)d item is closed now and will be erased within minutes.",
            "%(count)d items are closed now and will be erased within minutes.",
            len(erasures) - finished,
        )
        messages.success(request, text % {"count": len(erasures) - finished})
