"""Erasing sessions and people for good: asked for in the lists, confirmed once, on record without content."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy, ngettext
from django.utils.translation import gettext_lazy as _

from chat.admin import audit_log, names
from chat.admin.permissions import StaffRequest, title_for
from chat.admin.shares import LookedAt
from chat.errors import ServiceError
from chat.models import Erasure, Session, User
from chat.services.batches import Deadline
from chat.services.deletion import requests, users

if TYPE_CHECKING:
    Erasures = admin.ModelAdmin[Erasure]
else:
    Erasures = admin.ModelAdmin

# Confirmed together, so that each of them can be looked at first.
MOST = 20
# What a request erases by itself; the maintenance job does the rest within a minute or so.
SECONDS = 3.0

names.call(Erasure, _("erasure"), _("erasures"))
names.call_fields(
    Erasure,
    kind=_("kind"),
    target=_("id"),
    requested_by=_("requested by"),
    requested_at=_("requested"),
    finished_at=_("finished"),
    counts=_("erased"),
)


@dataclass(frozen=True, slots=True)
class Doomed:
    """One of the things that would be erased, with what goes with it in words."""

    id: str | int
    name: str
    facts: list[str]


@admin.register(Erasure)
class ErasureAdmin(LookedAt, Erasures):
    fields = list_display = ("kind", "target", "requested_by", "requested_at", "finished_at", "counted")
    list_filter = ("kind",)
    show_facets = admin.ShowFacets.NEVER
    list_select_related = ("requested_by",)
    search_fields = ("target",)
    list_per_page = 50

    def has_delete_permission(self, request: HttpRequest, obj: Erasure | None = None) -> bool:
        """The record stays."""
        return False

    @admin.display(description=_("erased"))
    def counted(self, erasure: Erasure) -> str:
        return ", ".join(f"{kind} {count}" for kind, count in sorted(erasure.counts.items()))


@admin.action(description=gettext_lazy("Erase for good…"), permissions=["erase"])
def erase_sessions(
    model_admin: admin.ModelAdmin[Session], request: StaffRequest, chosen: QuerySet[Session]
) -> HttpResponse | None:
    def erase(session: Session) -> Erasure:
        audit_log.note(request.user, session, audit_log.ERASED)
        return requests.request_session(session_id=session.pk, author=request.user)

    def describe(session: Session) -> Doomed:
        plan = requests.plan_session(session)
        facts = [
            gettext("Owner: %(name)s") % {"name": session.owner.sender},
            ngettext("%(count)d message", "%(count)d messages", plan.messages) % {"count": plan.messages},
            ngettext("%(count)d revision", "%(count)d revisions", plan.revisions) % {"count": plan.revisions},
            ngettext("%(count)d file", "%(count)d files", plan.files) % {"count": plan.files},
        ]
        if plan.forks:
            words = ngettext("%(count)d fork stays", "%(count)d forks stay", plan.forks)
            facts.append(words % {"count": plan.forks})
        return Doomed(session.pk, title_for(request.user, session), facts)

    rows = list(chosen.select_related("owner")[: MOST + 1])
    return _confirmed(model_admin, request, rows, describe, erase)


@admin.action(description=gettext_lazy("Erase for good…"), permissions=["erase"])
def erase_people(
    model_admin: admin.ModelAdmin[User], request: StaffRequest, chosen: QuerySet[User]
) -> HttpResponse | None:
    def erase(user: User) -> Erasure:
        words = gettext("Requested to erase the account.")
        LogEntry.objects.log_actions(request.user.pk, [user], CHANGE, change_message=words, single_object=True)
        return requests.request_user(user=user, author=request.user)

    def describe(user: User) -> Doomed:
        plan = users.plan(user)
        own = ngettext("%(count)d of their sessions is erased", "%(count)d of their sessions are erased", plan.sessions)
        kept = ngettext(
            "%(count)d shared session is handed over to another editor",
            "%(count)d shared sessions are handed over to other editors",
            len(plan.handed_over),
        )
        said = ngettext(
            "%(count)d message in other sessions is replaced by “[erased]”",
            "%(count)d messages in other sessions are replaced by “[erased]”",
            plan.messages,
        )
        counts = ((own, plan.sessions), (kept, len(plan.handed_over)), (said, plan.messages))
        facts = [words % {"count": count} for words, count in counts]
        return Doomed(user.pk, f"{user.sender} ({user.username})", facts)

    rows = [user for user in chosen[: MOST + 1] if model_admin.has_change_permission(request, user)]
    if not rows:
        messages.error(request, gettext("Items that you can’t change were skipped."))
        return None
    return _confirmed(model_admin, request, rows, describe, erase)


def _confirmed(
    model_admin: admin.ModelAdmin[Any],
    request: StaffRequest,
    rows: Sequence[Any],
    describe: Callable[[Any], Doomed],
    erase: Callable[[Any], Erasure],
) -> HttpResponse | None:
    """Erase rows when that is confirmed; else ask, and say how much would go."""
    if len(rows) > MOST:
        messages.error(request, gettext("Choose at most %(count)d at a time.") % {"count": MOST})
        return None
    if request.POST.get("sure") == "yes":
        _erase_all(request, rows, erase)
        return None
    values = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.model._meta,
        "title": gettext("Erase for good?"),
        "doomed": [describe(row) for row in rows],
        "action": request.POST.get("action", ""),
        "checkbox": ACTION_CHECKBOX_NAME,
    }
    return render(request, "admin/chat/erase.html", values)


def _erase_all(request: StaffRequest, rows: Sequence[Model], erase: Callable[[Any], Erasure]) -> None:
    deadline = Deadline(SECONDS)
    made = []
    for row in rows:
        try:
            with transaction.atomic():
                made.append(erase(row))
        except ServiceError as refused:
            messages.error(request, refused.message)
    finished = sum(requests.carry_out(each, deadline) for each in made)
    if finished:
        words = ngettext("Erased %(count)d item.", "Erased %(count)d items.", finished)
        messages.success(request, words % {"count": finished})
    if len(made) > finished:
        words = ngettext(
            "%(count)d item is closed now and will be erased within minutes.",
            "%(count)d items are closed now and will be erased within minutes.",
            len(made) - finished,
        )
        messages.success(request, words % {"count": len(made) - finished})
