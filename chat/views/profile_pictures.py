"""Profile pictures, for users who share a workspace or a session."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.templatetags.static import static
from django.urls import reverse
from django.views.decorators.http import require_GET, require_safe

from chat.access import person_for
from chat.models import User
from chat.views.requests import SignedInRequest, signed_in

# Pictures can be cached forever, because a new picture has a new URL.
KEPT = "private, max-age=31536000, immutable"


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """Redirect the default path of browsers to the site's icon."""
    return HttpResponseRedirect(static("favicon.svg"))


@require_GET
@signed_in
def picture(request: SignedInRequest, user_id: int) -> HttpResponse:
    """Serve a user's picture to users who share a workspace or a session with them."""
    person = person_for(request.user, user_id)
    if person is None or not person.picture:
        raise Http404
    try:
        with person.picture.open("rb") as file:
            content = file.read()
    except FileNotFoundError as error:
        raise Http404 from error
    return HttpResponse(content, content_type="image/webp", headers={"Cache-Control": KEPT})


def picture_url(person: User) -> str:
    """Return the URL of a user's picture, or "" if they have none."""
    if not person.picture:
        return ""
    version = PurePath(person.picture.name or "").name.partition("-")[2]
    return f"{reverse('picture', args=[person.pk])}?v={version}"


def picture_urls(people: Iterable[User]) -> dict[str, str]:
    """Return the picture URLs of users by their ids, for the page's scripts."""
    return {str(person.pk): found for person in people if (found := picture_url(person))}
