"""The members of a session and the agents that can be added to it, for the completion of mentions."""

from __future__ import annotations

from django.http import HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from chat.access import is_guest_in, session_for
from chat.models import Session, SessionRole, User
from chat.queries import cast, presets
from chat.rendering.text import formatting
from chat.services.messages.senders import senders
from chat.services.people import sharing
from chat.services.people.sharing import Member
from chat.views.profile_pictures import picture_url
from chat.views.requests import SignedInRequest, signed_in


@never_cache
@require_GET
@signed_in
def people(request: SignedInRequest, session_id: str) -> HttpResponse:
    """Return the users of a session whom the user may mention, owner first, and the agents that the user can add."""
    row, role = session_for(request.user, session_id)
    may_add = role.covers(SessionRole.EDITOR) and row.status == row.Status.ACTIVE and not is_guest_in(request.user, row)
    members = sharing.mentionable(row, request.user)
    names = senders(member.user for member in members)
    return JsonResponse(
        {
            "people": [_describe(member, names[member.user.pk]) for member in members],
            "absent": _absent(row, request.user) if may_add else [],
        }
    )


def _absent(row: Session, user: User) -> list[dict[str, str]]:
    """Return the agents that the user may use and that are not in the session."""
    there = {row.agent, *(each.name for each in cast.others(row))}
    offered = presets.presets(user, row.workspace_id)
    return [{"name": each.name, "title": each.title} for each in offered if each.name not in there]


def _describe(member: Member, name: str) -> dict[str, str | int | bool]:
    return {
        "id": member.user.pk,
        "name": name,
        "username": member.user.username,
        "role": member.role.value,
        "guest": member.is_guest,
        "initials": formatting.initials(name),
        "color": formatting.color(name),
        "picture": picture_url(member.user),
    }
