"""The share dialog: members, their roles, and invitation links."""

from __future__ import annotations

import json
from collections.abc import Callable

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from chat.access import is_guest_in, may, session_for
from chat.errors import ServiceError
from chat.models import Invitation, Session, SessionRole, User
from chat.permissions import Permission
from chat.queries.approvals import approvers_present
from chat.services.people import sharing
from chat.services.people.sharing import Member
from chat.views.profile_pictures import picture_url
from chat.views.requests import SignedInRequest, absolute, number, signed_in

# From this number of candidates on, the dialog has a search field.
FIND_FROM = 8


@never_cache
@require_GET
@signed_in
def dialog(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Show the share dialog to the owner, and the list of members to other users."""
    row, role = session_for(request.user, session_id)
    if role == SessionRole.OWNER and not row.caller_session_id:
        return _dialog(request, row)
    # Users who leave a session that is open to their workspace can still open it, unless they are guests.
    keeps_access = bool(row.workspace_role) and not is_guest_in(request.user, row)
    values = {"session": row, "keeps_access": keeps_access, **_people(sharing.members(row))}
    return render(request, "chat/session/members.html", values)


@require_POST
@signed_in
def share(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Share the session with a member of the workspace, or change their role."""
    row, _role = session_for(request.user, session_id, SessionRole.OWNER)
    person, role = _person(request), request.POST.get("role", "")
    return _change(request, row, lambda: sharing.share(session=row, author=request.user, user=person, role=role))


@require_POST
@signed_in
def unshare(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Remove a user's access, and show how many invitation links ended with it."""
    row, _role = session_for(request.user, session_id, SessionRole.OWNER)
    person = _person(request)

    def remove() -> str:
        links = sharing.unshare(session=row, author=request.user, user=person)
        words = ngettext("%(count)d invitation link was revoked.", "%(count)d invitation links were revoked.", links)
        return words % {"count": links} if links else ""

    return _change(request, row, remove)


@require_POST
@signed_in
def open_to_workspace(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Open the session to all members of the workspace, or close it to them."""
    row, _role = session_for(request.user, session_id, SessionRole.OWNER)
    role = request.POST.get("role", "")
    return _change(request, row, lambda: sharing.open_to_workspace(session=row, author=request.user, role=role))


@require_POST
@signed_in
def invite(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Create an invitation link. It is shown only in this response."""
    row, _role = session_for(request.user, session_id, SessionRole.OWNER)
    role, uses = request.POST.get("role", ""), number(request.POST.get("uses", "1")) or 0
    try:
        made, token = sharing.invite(session=row, author=request.user, role=role, uses=uses)
    except ServiceError as refused:
        return _dialog(request, row, refused=str(refused), status=422)
    link = absolute(request, reverse("join", args=[token]))
    return _dialog(request, row, link=link, made=made, invited_as=role, invited_uses=uses)


@require_POST
@signed_in
def end_invitation(request: SignedInRequest, session_id: str) -> HttpResponse:
    """End one invitation link."""
    row, _role = session_for(request.user, session_id, SessionRole.OWNER)
    invitation_id = number(request.POST.get("invitation", ""))
    if invitation_id is not None:
        sharing.end_invitation(session=row, author=request.user, invitation_id=invitation_id)
    return _dialog(request, row, done=_("This link no longer works."))


@require_POST
@signed_in
def revoke_invitations(request: SignedInRequest, session_id: str) -> HttpResponse:
    """End all invitation links of the session."""
    row, _role = session_for(request.user, session_id, SessionRole.OWNER)
    sharing.revoke_invitations(session=row, author=request.user)
    return _dialog(request, row, done=_("The session’s invitation links no longer work."))


def _change(request: SignedInRequest, row: Session, change: Callable[[], str | None]) -> HttpResponse:
    """Show the dialog after a change, with the text that the change returns."""
    try:
        done = change()
    except ServiceError as refused:
        return _dialog(request, row, refused=str(refused), status=422)
    row.refresh_from_db(fields=["workspace_role"])
    return _dialog(request, row, done=done or "")


def _dialog(
    request: SignedInRequest,
    row: Session,
    *,
    link: str = "",
    made: Invitation | None = None,
    invited_as: str = "",
    invited_uses: int = sharing.USES[0],
    refused: str = "",
    done: str = "",
    status: int = 200,
) -> HttpResponse:
    people = sharing.present_and_former(row)
    is_open = row.workspace_role == SessionRole.EDITOR
    values = {
        "session": row,
        "has_outranked": is_open and any(each.role == SessionRole.VIEWER and not each.is_guest for each in people),
        "candidates": [
            {"user": user, "username": user.username, "picture": picture_url(user)} for user in sharing.candidates(row)
        ],
        "roles": sharing.GIVEN_ROLES,
        "may_open": sharing.may_open_to_workspace(row, request.user),
        "may_invite": may(request.user, Permission.MANAGE_MEMBERS, row.workspace_id),
        "uses": sharing.USES,
        **_people(people),
        "approvers": json.dumps(approvers_present(row)),
        "invitations": sharing.invitations(row),
        "many": FIND_FROM,
        "link": link,
        "made": made,
        "invited_as": invited_as,
        "invited_uses": invited_uses,
        "refused": refused,
        "done": done,
    }
    return render(request, "chat/session/share.html", values, status=status)


def _people(members: list[Member]) -> dict[str, object]:
    """Return the members with the URLs of their pictures, and the number of those who have access."""
    people = [{"member": member, "picture": picture_url(member.user)} for member in members]
    return {"people": people, "inside": sum(member.has_access for member in members)}


def _person(request: SignedInRequest) -> User:
    """Return the user in the form. For an unknown name return an unsaved user, to hide which names exist."""
    name = request.POST.get("user", "")
    found = None if "\0" in name else User.objects.filter(username=name).first()
    return found or User(pk=0)
