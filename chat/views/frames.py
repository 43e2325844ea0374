"""Pages for sandboxed frames of a session's page: diagrams, and previews of HTML from answers.

The content of a frame was written by a model. `sandbox`, in its element and its policy, gives the frame a separate
origin, so it cannot access the page, cookies or the API. Its policy allows no connections; `SECURITY.md` describes the
one kind to which browsers do not apply it. The page's policy (`frame-src`) prevents the frame from sending data by
navigating to another address.
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

# The policy of a page that contains such frames.
WITH_FRAMES = f"{POLICY}; frame-src 'self'"

_CLOSED = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "
_INLINE = "style-src 'unsafe-inline'; img-src data:; "
# Frames within a preview would have the ways to the network that its script removes. `preview_frame.js` explains it.
_TYPED = "require-trusted-types-for 'script'; trusted-types default"


@cache
def _preview_script() -> SafeString:
    """Return the script of the preview's page. It is inline, because that page may load nothing, even from Parley."""
    script = Path(settings.BASE_DIR, "static/js/pages/preview_frame.js").read_text(encoding="utf-8")
    return mark_safe(script)  # noqa: S308  # our own file


def _render_frame(request: HttpRequest, template: str, policy: str, **values: object) -> HttpResponse:
    response = render(request, template, values)
    response["Content-Security-Policy"] = policy
    # Otherwise `<link rel=dns-prefetch>` could send data to name servers in host names.
    response["X-DNS-Prefetch-Control"] = "off"
    return response


@require_GET
@xframe_options_sameorigin
def diagram(request: HttpRequest) -> HttpResponse:
    """Show the page that draws a diagram. It runs only Parley's scripts."""
    policy = f"{_CLOSED}sandbox allow-scripts; {_INLINE}script-src 'self'"
    return _render_frame(request, "chat/frames/diagram.html", policy)


@require_GET
@xframe_options_sameorigin
def preview(request: HttpRequest) -> HttpResponse:
    """Show the page that previews HTML from an answer. It runs only inline scripts.

    Scripts handle the forms of the preview, and `form-action` keeps these from sending anything.
    """
    policy = f"{_CLOSED}sandbox allow-scripts allow-forms; {_INLINE}script-src 'unsafe-inline'; {_TYPED}"
    return _render_frame(request, "chat/frames/preview.html", policy, script=_preview_script())
