"""The page of a session and its older messages."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from chat import ids
from chat.access import deleted_session_for, session_for
from chat.bus.events import StatusChanged
from chat.errors import NoSuchSession
from chat.models import Session, SessionRole, User
from chat.queries import messages as reading
from chat.queries import presets
from chat.queries.attachments import unsent
from chat.queries.forked_files import forked_files
from chat.rendering.messages.frames import message_html, session_parts, status_html
from chat.services.people.sharing import present_and_former
from chat.services.people.workspaces import ListedWorkspace, UserWorkspaces, enter, listed_workspaces
from chat.services.sessions.user_state import state_of, take_into_list
from chat.session_snapshot import SessionSnapshot
from chat.views.frames import WITH_FRAMES
from chat.views.home import sidebar_values, translated_prompts
from chat.views.profile_pictures import picture_url
from chat.views.requests import SignedInRequest, moment_or_404, number_or_404, signed_in


@never_cache
@require_GET
@signed_in
def session(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Show a session with its newest messages. The page's script then keeps them up to date.

    For a deleted session, show its owner a page on which they can restore it.
    """
    try:
        row, role = session_for(request.user, session_id)
    except NoSuchSession:
        deleted = deleted_session_for(request.user, session_id)
        return render(request, "chat/deleted_session.html", {"deleted": deleted}, status=404)
    # The revision is read before the messages. The socket continues from it, so no change of a message is missed.
    snapshot = reading.session_snapshot(row)
    page = reading.page_before(row)
    inside = present_and_former(row)  # pages show the faces of both
    if all(member.user.pk != request.user.pk for member in inside):
        take_into_list(session=row, user=request.user)  # before `sidebar_values` reads the list
    workspaces = _enter_workspace(request, row)
    own_workspace = workspaces.here if workspaces.here is not None and workspaces.here.id == row.workspace_id else None
    people = [member.user for member in inside]
    values = {
        "session": snapshot,
        "parts": session_parts(snapshot),
        "queued": [message_html(message) for message in page.queued],
        "thinking": status_html(StatusChanged("thinking")),
        **_permissions(row, role, own_workspace),
        "origin": _linked_session(request.user, row.parent_session_id),
        "forked_files": forked_files(row),
        "caller": _linked_session(request.user, row.caller_session_id),
        "is_guest": any(member.is_guest and member.user.pk == request.user.pk for member in inside),
        **_of_agents(row, snapshot),
        "faces": json.dumps({user.pk: picture_url(user) for user in people}),
        "files": json.dumps(unsent(row.pk, request.user) if role.covers(SessionRole.EDITOR) else []),
        "limit": settings.MAX_MESSAGE_CHARS,
        "participation": state_of(request.user, row),
        **sidebar_values(request, workspaces, row.pk),
        **_messages(page),
    }
    response = render(request, "chat/session.html", values)
    response["Content-Security-Policy"] = WITH_FRAMES
    return response


def _permissions(row: Session, role: SessionRole, own_workspace: ListedWorkspace | None) -> dict[str, Any]:
    """Return what the user's roles in the session and its workspace permit.

    `own_workspace` is the session's workspace, or None if the page shows another one.
    """
    return {
        "can_edit": role.covers(SessionRole.EDITOR),
        "role": role.value,
        "can_share": role.covers(SessionRole.OWNER) and not row.caller_session_id,
        "follows": row.caller_session_id is not None,  # a subsession has the users of the calling session
        "manages": own_workspace is not None and own_workspace.is_managed,
        "workspace_role": own_workspace.role if own_workspace is not None else "",
    }


def _of_agents(row: Session, snapshot: SessionSnapshot) -> dict[str, Any]:
    own = presets.own(row)  # the page shows its title as the agent's name until a model is known (UI-06)
    return {
        "agent_name": own.title,
        "agents": json.dumps(snapshot.agents),
        "icons": json.dumps(snapshot.icons),
        "prompts": translated_prompts(own.prompts),
    }


def _linked_session(user: User, session_id: str | None) -> Session | None:
    """Return a session to which the page links, or None if the user may not open it."""
    try:
        return session_for(user, session_id)[0] if session_id else None
    except NoSuchSession:
        return None


def _enter_workspace(request: SignedInRequest, row: Session) -> UserWorkspaces:
    """Switch the user to the workspace of the session that they open. Return their workspaces."""
    workspaces = listed_workspaces(request.user, row.workspace_id)
    if workspaces.several and workspaces.here and workspaces.here.id != request.user.workspace_id:
        enter(user=request.user, workspace_id=workspaces.here.id)
    return workspaces


@never_cache
@require_GET
@signed_in
def messages(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Render a page of messages.

    The parameters choose the page: messages `before` or `after` a sequence number, `around` a message, `since` a time,
    or from the `start`. Without a parameter, the newest messages are rendered. With `before` and `after`, `at` is the
    message that the client shows at this number. If it has moved, its new number is used.
    """
    row, _role = session_for(request.user, session_id)
    asked = request.GET.dict()
    values = {
        "session": row,
        **_messages(_page(row, asked)),
        # Which ends of the session the page of messages may reach.
        "at_top": "after" not in asked,
        "at_bottom": "before" not in asked,
        # The last summary may come after this page and replace its messages in the context. A client that asks for
        # older messages has already loaded it.
        "summary": None if "before" in asked else reading.last_summary(row),
    }
    return render(request, "chat/session/messages.html", values)


def _page(row: Session, asked: dict[str, str]) -> reading.Page:
    if "around" in asked:
        page = reading.page_around(row, asked["around"]) if ids.may_be_one(asked["around"]) else None
        if page is None:
            raise Http404
        return page
    if "since" in asked:
        return reading.page_since(row, moment_or_404(asked["since"])) or reading.page_before(row)
    if "start" in asked:
        return replace(reading.page_after(row, 0), has_older=False)
    if "after" in asked:
        return reading.page_after(row, _cursor(row, asked, "after"))
    return reading.page_before(row, _cursor(row, asked, "before") if "before" in asked else None)


def _cursor(row: Session, asked: dict[str, str], name: str) -> int:
    """Return the sequence number at which the client's list ends. Raise Http404."""
    sequence, message_id = number_or_404(asked[name]), asked.get("at", "")
    return (reading.sequence_of(row, message_id) if ids.may_be_one(message_id) else None) or sequence


def _messages(page: reading.Page) -> dict[str, Any]:
    return {
        "messages": [message_html(message) for message in page.messages],
        "has_older": page.has_older,
        "has_newer": page.has_newer,
        "before": page.messages[0].sequence if page.messages else None,
        "after": page.messages[-1].sequence if page.messages else None,
    }
