"""The page of one session: its fields, what it is and does, its messages a page at a time, and what to do with them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import AdminForm
from django.contrib.admin.utils import unquote
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from chat.access import role_in
from chat.admin import audit_log, message_rows
from chat.admin.fields import Clash, pretty
from chat.admin.permissions import (
    Pages,
    StaffRequest,
    may_change,
    may_change_messages,
    may_read_messages,
    session_or_404,
    title_for,
)
from chat.admin.session_form import SessionForm, knowing, save
from chat.admin.states import run_of, state_of
from chat.models import RunState, Session

CONFIGURATION = [("agent", "model"), ("reasoning_effort", "thinking_budget"), ("mode", "max_rounds"), "tools"]
FIELDSETS: list[Any] = [(None, {"fields": ["title", *CONFIGURATION, "system_prompt"]})]
# For staff who may not read messages: titles and system prompts are made of what people write.
FIELDSETS_WITHOUT_TEXT: list[Any] = [(None, {"fields": CONFIGURATION})]


def show(request: StaffRequest, object_id: str, model_admin: admin.ModelAdmin[Session]) -> HttpResponse:
    """The page, and what is sent from its form."""
    session_id = unquote(object_id)
    session = session_or_404(request, session_id, needs_change=request.method == "POST")
    can_read = may_read_messages(request.user)
    form = SessionForm(
        session,
        request.POST if request.method == "POST" else None,
        is_open=may_change(request.user, session),
        with_text=can_read,
    )
    clashes: list[Clash] = []
    if request.method == "POST" and form.is_valid():
        clashes = save(form, request.user)
        if not form.errors and not clashes:
            messages.success(request, _("The session was saved.") if form.changed_data else _("Nothing was changed."))
            return HttpResponseRedirect(address(session.pk, f"?{request.GET.urlencode() or 'p='}"))
        form = knowing(form, clashes) if clashes else form
    # A form that is refused shows the messages as well.
    audit_log.note_reading(request.user, session, opens=request.method != "POST" and not request.GET)
    fieldsets = FIELDSETS if can_read else FIELDSETS_WITHOUT_TEXT
    values = {
        "adminform": AdminForm(form, fieldsets, {}, (), model_admin=model_admin),  # type: ignore[arg-type]  # it asks no more of a form
        "errors": form.errors,
        "clashes": clashes,
        **_facts(request, session, model_admin),
        **_messages(request, session),
    }
    return render(request, "admin/chat/session/change_form.html", values)


@require_GET
def state(request: StaffRequest, session_id: str) -> JsonResponse:
    """What has become of a session since its page was made, for the page's script."""
    session = session_or_404(request, session_id)
    told = {"state": run_of(session), "status": state_of(session), "revision": session.revision}
    return JsonResponse({**told, "works": session.run.state != RunState.IDLE}, headers={"Cache-Control": "no-store"})


def address(session_id: str, query: str = "") -> str:
    """Where the session's page is; `query` says which part of it. Without any it is opened anew, for the log too."""
    path = reverse("admin:chat_session_change", args=[admin.utils.quote(session_id)])
    return f"{path}{query}"


def frame(request: HttpRequest, session: Session, title: str) -> dict[str, Any]:
    """What the admin's own frame needs around a page of a session."""
    return {
        **admin.site.each_context(request),
        "opts": Session._meta,
        "original": session,
        "session": session,
        "session_title": title_for(request.user, session),
        "parent_title": title_for(request.user, session.parent_session) if session.parent_session else "",
        "title": title,
        "has_view_permission": True,
    }


def _facts(request: StaffRequest, session: Session, model_admin: admin.ModelAdmin[Session]) -> dict[str, Any]:
    is_open = may_change(request.user, session)
    return {
        **frame(request, session, title_for(request.user, session)),
        "change": True,
        "media": model_admin.media,
        "state": state_of(session),
        "run": run_of(session),
        "config": pretty(session.config) if may_read_messages(request.user) else "",
        "can_erase": request.user.has_perm("chat.erase_session"),
        "works": session.run.state != RunState.IDLE,
        "is_deleted": session.status == Session.Status.DELETED,
        "can_undelete": request.user.has_perm("chat.change_session") and session.status == Session.Status.DELETED,
        "is_archived": session.status == Session.Status.ARCHIVED,
        "has_change_permission": is_open,
        "show_save": is_open,
        "show_close": True,
        "can_write": is_open and may_change_messages(request.user) and session.status == Session.Status.ACTIVE,
        "can_fork": is_open and may_read_messages(request.user),
        "is_open_here": role_in(request.user, session) is not None,
    }


def _messages(request: StaffRequest, session: Session) -> dict[str, Any]:
    if not may_read_messages(request.user):
        return {"can_read": False}
    counts = message_rows.counts_of(session)
    is_bin = "removed" in request.GET
    find = message_rows.removed if is_bin else message_rows.standing
    page = find(session, counts, request.GET.get("p"))
    waiting = [] if is_bin or page.has_next() else message_rows.queued(session)
    return {
        "can_read": True,
        "counts": counts,
        "is_bin": is_bin,
        "page": page,
        "page_range": page.paginator.get_elided_page_range(page.number, on_each_side=2, on_ends=1),
        "rows": message_rows.shown(page.object_list),
        "queued": message_rows.shown(waiting),
        "here": f"?{'removed=&' if is_bin else ''}p={page.number}",
    }


PAGES: Pages = {"<str:session_id>/state/": (state, "chat_session_state")}
