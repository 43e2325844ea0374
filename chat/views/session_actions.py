"""Actions on one or several sessions in the sidebar, and renaming. Most responses are JSON for scripts."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from chat.access import session_for
from chat.errors import Forbidden, NoSuchSession, ServiceError
from chat.models import SessionRole, User
from chat.queries.session_people import others_in
from chat.services.sessions import actions, lifecycle
from chat.services.sessions.actions import ActionResult, SessionAction
from chat.views.requests import SignedInRequest, signed_in

MAX_AT_ONCE = 500


@require_POST
@signed_in
def apply_action(request: SignedInRequest) -> HttpResponse:
    """Apply an action to each `session` in the form. Return the changed ids, a message, and the action that undoes it.

    If other users would lose access by a deletion and the form does not contain `sure`, nothing is deleted. The
    response then has the question for the user as `asks`.
    """
    named = request.POST.getlist("session")[:MAX_AT_ONCE]
    if request.POST.get("action") not in list(SessionAction) or not named:
        return HttpResponse(status=400)
    action = SessionAction(request.POST["action"])
    if action == SessionAction.DELETE and "sure" not in request.POST and (others := others_in(request.user, named)):
        return JsonResponse({"ids": [], "words": "", "undo": "", "asks": _question(others)})
    try:
        done = actions.apply_action(user=request.user, action=action, session_ids=named)
    except (NoSuchSession, Forbidden):
        raise
    except ServiceError as refused:
        return _refusal(refused)
    return JsonResponse(
        {"ids": done.ids, "words": _done_message(request.user, action, done), "undo": actions.UNDOES.get(action, "")}
    )


@require_POST
@signed_in
def undelete(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Restore a deleted session and open it."""
    actions.undelete(user=request.user, session_id=session_id)
    return redirect("session", session_id)


@require_POST
@signed_in
def rename(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Rename a session."""
    session, _role = session_for(request.user, session_id, SessionRole.EDITOR)
    try:
        lifecycle.rename(session=session, author=request.user, title=request.POST.get("title", ""))
    except ServiceError as refused:
        return _refusal(refused)
    return HttpResponse(status=204)


def _refusal(refused: ServiceError) -> HttpResponse:
    return JsonResponse({"message": refused.message}, status=422)


def _question(others: int) -> str:
    count = ngettext("%(count)d other person loses access.", "%(count)d other people lose access.", others)
    days = settings.PURGE_AFTER_DAYS
    way_back = (
        ngettext(
            "You can restore it in the settings for %(days)d day.",
            "You can restore it in the settings for %(days)d days.",
            days,
        )
        if days
        else _("You can restore it in the settings.")
    )
    return f"{count % {'count': others}} {way_back % {'days': days}}"


def _done_message(user: User, action: SessionAction, done: ActionResult) -> str:
    """Return a message about the action, or "" if the user sees its effect.

    For a single archived session with several members, the message contains their number.
    """
    count = len(done.ids)
    if action == SessionAction.ARCHIVE and count == 1 and (others := others_in(user, done.ids)):
        return ngettext("Archived for %(count)s person", "Archived for %(count)s people", others + 1) % {
            "count": others + 1
        }
    sentences = {
        SessionAction.ARCHIVE: ngettext("Session archived", "%(count)s sessions archived", count),
        SessionAction.RESTORE: ngettext("Session restored", "%(count)s sessions restored", count),
        SessionAction.DELETE: ngettext("Session deleted", "%(count)s sessions deleted", count),
        SessionAction.UNDELETE: ngettext("Session restored", "%(count)s sessions brought back", count),
        SessionAction.LEAVE: ngettext("You left the session", "You left %(count)s sessions", count),
    }
    words = sentences.get(action, "") % {"count": count}
    if not words or not done.left_out:
        return words
    return _("%(done)s. The rest belong to other people.") % {"done": words}
