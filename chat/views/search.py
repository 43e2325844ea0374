"""The entries of the palette: recent sessions, or search results."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from chat.queries import search as searching
from chat.queries.session_list import recent
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
    values: dict[str, Any] = {"here": number(request.GET.get("workspace", ""))}
    if searching.terms_of(query):
        values["found"] = searching.search(request.user, query)
    else:
        others = [row for row in recent(request.user, RECENT + 1) if row.id != request.GET.get("current", "")]
        values["recent"] = others[:RECENT]
    return render(request, "chat/palette.html", values)
