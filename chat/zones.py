"""The time zone of the browser that sent a request."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from django.http import HttpRequest

# The name of the zone. Scripts of the pages set it (static/js/ui/time.js).
ZONE_COOKIE = "parley_zone"


def zone_of(request: HttpRequest) -> ZoneInfo:
    """Return the time zone of the browser, or UTC until its cookie is set."""
    try:
        return ZoneInfo(request.COOKIES.get(ZONE_COOKIE, "UTC"))
    except (KeyError, ValueError, OSError):  # a cookie may contain anything, even a path
        return ZoneInfo("UTC")
