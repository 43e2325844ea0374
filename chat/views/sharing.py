"""The share dialog: who is in a session, in which role, and links that let others in."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from chat.models import Role, Session, User
from chat.services import sharing
from chat.services.access import session_for
from chat.services.errors import Refused
from chat.views.requests import SignedInRequest, signed_in


@never_cache
@require_GET
@signed_in
def dialog(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Show the dialog's content. Like all of its actions it is the owner's."""
    row, _role = session_for(request.user, session_id, Role.OWNER)
    return _dialog(request, row)


@require_POST
@signed_in
def share(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Let a member of the workspace in, or change their role."""
    row, _role = session_for(request.user, session_id, Role.OWNER)
    person, role = _person(request), request.POST.get("role", "")
    return _change(request, row, lambda: sharing.share(session=row, author=request.user, user=person, role=role))


@require_POST
@signed_in
def unshare(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Take somebody's access away."""
    row, _role = session_for(request.user, session_id, Role.OWNER)
    person = _person(request)
    return _change(request, row, lambda: sharing.unshare(session=row, author=request.user, user=person))


@require_POST
@signed_in
def invite(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Make an invitation link and show it, this once."""
    row, _role = session_for(request.user, session_id, Role.OWNER)
    try:
        token = sharing.invite(session=row, author=request.user, role=request.POST.get("role", ""))
    except Refused as refused:
        return _dialog(request, row, refused=str(refused), status=422)
    return _dialog(request, row, link=_address(request, reverse("join", args=[token])))


@require_POST
@signed_in
def revoke_invitations(request: SignedInRequest, session_id: str) -> HttpResponse:
    """End all invitation links of the session."""
    row, _role = session_for(request.user, session_id, Role.OWNER)
    sharing.revoke_invitations(session=row, author=request.user)
    return _dialog(request, row, done=_("The session's invitation links no longer work."))


def _change(request: SignedInRequest, row: Session, change: Callable[[], None]) -> HttpResponse:
    try:
        change()
    except Refused as refused:
        return _dialog(request, row, refused=str(refused), status=422)
    return _dialog(request, row)


def _dialog(
    request: SignedInRequest, row: Session, *, link: str = "", refused: str = "", done: str = "", status: int = 200
) -> HttpResponse:
    values = {
        "session": row,
        "members": sharing.members(row),
        "candidates": sharing.candidates(row),
        "roles": sharing.GIVEN_ROLES,
        "has_links": row.invitations.exists(),
        "link": link,
        "refused": refused,
        "done": done,
    }
    return render(request, "chat/session/share.html", values, status=status)


def _person(request: SignedInRequest) -> User:
    """Find whom the form names. A name that nobody has is answered as a stranger's: nobody learns which names exist."""
    name = request.POST.get("user", "")
    found = None if "\0" in name else User.objects.filter(username=name).first()
    return found or User(pk=0)


def _address(request: SignedInRequest, path: str) -> str:
    return f"{settings.PUBLIC_URL}{path}" if settings.PUBLIC_URL else request.build_absolute_uri(path)
