"""The entries of the palette: recent sessions, or search results."""

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
    """Show the sessions and messages of all workspaces that match `?q=`.

    Results outside of `?workspace=` are labelled. Without a query, show the recent sessions except the open one
    (`?current=`), so that the first entry is the session that was used before it.
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
