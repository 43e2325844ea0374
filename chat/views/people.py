"""The members of a session, for the completion of names."""

from __future__ import annotations

from django.http import HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from chat.access import session_for
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
    """List the members of a session, the owner first."""
    row, _role = session_for(request.user, session_id)
    members = sharing.mentionable(row)
    names = senders(member.user for member in members)
    return JsonResponse({"people": [_described(member, names[member.user.pk]) for member in members]})


def _described(member: Member, name: str) -> dict[str, str | int | bool]:
    return {
        "id": member.user.pk,
        "name": name,
        "username": member.user.username,
        "role": member.role.value,
        "guest": member.is_guest,
        "initials": formatting.initials(name),
        "colour": formatting.colour(name),
        "picture": picture_url(member.user),
    }
