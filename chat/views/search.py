"""The palette's results: recent sessions, or the results of a search."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from chat.models import User
from chat.queries import search as searching
from chat.queries.session_list import Listed, recent
from chat.views.requests import SignedInRequest, number, signed_in

RECENT = 8


@never_cache
@require_GET
@signed_in
def search(request: SignedInRequest) -> HttpResponse:
    """Search titles and messages of all workspaces for `?q=`; results outside of `?workspace=` are labelled.

    Without a query, list the recent sessions except the one that is open (`?current=`): the first is the one before it.
    """
    query = request.GET.get("q", "")[:1000]
    asked = bool(searching.terms_of(query))
    values = {
        "found": searching.search(request.user, query) if asked else None,
        "here": number(request.GET.get("workspace", "")),
        "recent": [] if asked else _recent(request.user, request.GET.get("current", "")),
    }
    return render(request, "chat/palette.html", values)


def _recent(user: User, current: str) -> list[Listed]:
    return [row for row in recent(user, RECENT + 1) if row.id != current][:RECENT]
