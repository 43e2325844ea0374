"""Pages for sandboxed frames of a session's page: diagrams, and previews of HTML from answers.

What a frame shows was written by a model. The `sandbox` of its element and of its policy gives it an origin of its own,
so it reaches neither the page nor cookies nor the API; its policy allows no connections. A frame could still ask for
another address by navigating, which the page's policy forbids (`frame-src`).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_GET

from chat.middleware import POLICY

# The policy of a page that has such frames.
WITH_FRAMES = f"{POLICY}; frame-src 'self'"

_CLOSED = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts; "
_INLINE = "style-src 'unsafe-inline'; img-src data:; "


@cache
def _preview_script() -> SafeString:
    """Return the script of the preview's page, which loads nothing, not even from this server."""
    script = Path(settings.BASE_DIR, "static/js/pages/preview_frame.js").read_text(encoding="utf-8")
    return mark_safe(script)  # noqa: S308  # our own file


def _framed(request: HttpRequest, template: str, policy: str, **values: object) -> HttpResponse:
    response = render(request, template, values)
    response["Content-Security-Policy"] = policy
    # Names in `<link rel=dns-prefetch>` would reach name servers.
    response["X-DNS-Prefetch-Control"] = "off"
    return response


@require_GET
@xframe_options_sameorigin
def diagram(request: HttpRequest) -> HttpResponse:
    """Show the page that draws a diagram. It runs Parley's scripts only."""
    return _framed(request, "chat/frames/diagram.html", f"{_CLOSED}{_INLINE}script-src 'self'")


@require_GET
@xframe_options_sameorigin
def preview(request: HttpRequest) -> HttpResponse:
    """Show the page that becomes what an answer contains, with its own scripts and no others."""
    policy = f"{_CLOSED}{_INLINE}script-src 'unsafe-inline'"
    return _framed(request, "chat/frames/preview.html", policy, script=_preview_script())
