"""The lists of sessions, and beginning a new one."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from chat.models import Session, User
from chat.services.access import sessions_of
from chat.services.sessions import create_session
from chat.views.requests import SignedInRequest, signed_in

SHOWN = 200


def listed(user: User) -> QuerySet[Session]:
    """The sessions that lists show, the last active first."""
    sessions = sessions_of(user).filter(status=Session.Status.ACTIVE)
    return sessions.select_related("owner", "run").order_by("-updated_at")[:SHOWN]


@require_GET
@signed_in
def home(request: SignedInRequest) -> HttpResponse:
    """List all sessions."""
    return render(request, "chat/home.html", {"sessions": listed(request.user)})


@require_GET
@signed_in
def rail(request: SignedInRequest) -> HttpResponse:
    """The list in a session's rail, to bring an open one up to date."""
    values = {"sessions": listed(request.user), "current": request.GET.get("current", "")}
    return render(request, "chat/rail_list.html", values)


@require_POST
@signed_in
def new_session(request: SignedInRequest) -> HttpResponse:
    """Begin a session and open it."""
    return redirect("session", create_session(owner=request.user).pk)
