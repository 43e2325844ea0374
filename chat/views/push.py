"""Notifications: the web app's manifest and service worker, and the browsers that are registered for push messages."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chat.errors import ServiceError
from chat.limits.rates import spend
from chat.models import PushSubscription
from chat.overrides.postgres.lending import return_connection
from chat.queries.push import subscriptions_of
from chat.runner import push_delivery
from chat.runner.push_delivery import Result
from chat.runner.push_notices import example
from chat.runner.push_notifier import record
from chat.security import web_push
from chat.security.session_store import PUSH, PUSH_KEY
from chat.security.web_push import PushTarget
from chat.services.people import push
from chat.views.requests import SignedInRequest, number, signed_in, status_of

ICONS = {"icon-192": "192x192", "icon-512": "512x512", "maskable-192": "192x192", "maskable-512": "512x512"}
# The icons that the service worker uses.
SHOWN = ("icon-192", "badge-96")
# The background of pages in the light theme (`--bg` in static/css/tokens.css). Pages set their own theme color.
BACKGROUND = "#f8f9fd"
# Checked in this order: most user agents also contain the names of other browsers.
BROWSERS = (
    ("Edge", r"Edg(e|A|iOS)?/"),
    ("Opera", r"OPR/"),
    ("Samsung Internet", r"SamsungBrowser/"),
    ("Firefox", r"(Firefox|FxiOS)/"),
    ("Chrome", r"(Chrome|CriOS)/"),
    ("Safari", r"Safari/"),
)
SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("ChromeOS", "CrOS"),
    ("Windows", "Windows"),
    ("macOS", "Macintosh"),
    ("Linux", "Linux"),
)


@require_safe
def manifest(request: HttpRequest) -> HttpResponse:
    """Return the manifest with which browsers can install Parley as an app."""
    icons = [
        {
            "src": static(f"icons/{name}.png"),
            "sizes": sizes,
            "type": "image/png",
            "purpose": "maskable" if name.startswith("maskable") else "any",
        }
        for name, sizes in ICONS.items()
    ]
    values = {
        "id": "/",
        "name": "Parley",
        "short_name": "Parley",
        "description": _("Work with your team and its agents in the same live sessions."),
        "lang": get_language(),
        "dir": "auto",
        "start_url": reverse("home"),
        "scope": "/",
        "display": "standalone",
        "theme_color": BACKGROUND,
        "background_color": BACKGROUND,
        "icons": icons,
        "shortcuts": [{"name": _("Settings"), "url": reverse("settings")}],
    }
    return JsonResponse(values, content_type="application/manifest+json", json_dumps_params={"ensure_ascii": False})


@require_safe
def service_worker(request: HttpRequest) -> HttpResponse:
    """Return the service worker. Its URL is at the root, because its scope is the pages below its URL."""
    return HttpResponse(_worker(), content_type="text/javascript; charset=utf-8")


@cache
def _worker() -> bytes:
    return (Path(settings.BASE_DIR) / "static/js/pages/service_worker.js").read_bytes()


@require_safe
def icon(request: HttpRequest, name: str) -> HttpResponse:
    """Redirect to an icon of notifications.

    The service worker cannot use URLs of static files, because it outlives their versions.
    """
    if name not in SHOWN:
        raise Http404
    return HttpResponseRedirect(static(f"icons/{name}.png"))


@require_http_methods(["GET", "POST"])
@signed_in
def subscription(request: SignedInRequest) -> HttpResponse:
    """Return the key and the CSRF token with which a browser subscribes, or run `act` on its subscription.

    `act` is register, refresh, or any other value to end the subscription.
    """
    if request.method == "GET":
        return JsonResponse({"key": web_push.public_key(), "token": get_token(request)})
    act = request.POST.get("act")
    try:
        if act == "register":
            _register(request)
        elif act == "refresh":
            return JsonResponse({"known": _refresh(request), "key": web_push.public_key()})
        elif digest := request.session.pop(PUSH, ""):
            push.forget(user=request.user, digests=[digest])
    except ServiceError as refused:
        return _refusal(refused)
    request.session.save()  # before the list is rendered, because it shows only browsers of saved logins
    response = render(request, "settings/browsers.html", browsers(request))
    return JsonResponse({"browsers": response.content.decode()})


def _register(request: SignedInRequest) -> None:
    language = get_language() or ""
    name = browser_name(request.headers.get("User-Agent", ""))
    made = push.register(user=request.user, target=_target(request), name=name, language=language)
    request.session.update({PUSH: made.digest, PUSH_KEY: made.key})


def _refresh(request: SignedInRequest) -> bool:
    """Store the browser's changed subscription. Return whether the browser is registered."""
    known = push.refresh(user=request.user, target=_target(request), before=request.session.get(PUSH, ""))
    if known is None:
        request.session.pop(PUSH, None)
        return False
    request.session.update({PUSH: known.digest, PUSH_KEY: known.key})
    return True


def _target(request: SignedInRequest) -> PushTarget:
    return PushTarget(*(request.POST.get(name, "") for name in ("endpoint", "p256dh", "auth")))


@require_POST
@login_required
async def test(request: SignedInRequest) -> HttpResponse:
    """Send a test notification to the browser of this request."""
    try:
        browser = await sync_to_async(_browser_to_test)(request)
    except ServiceError as refused:
        return _refusal(refused)
    pushes = [await sync_to_async(example)(browser)]
    await sync_to_async(return_connection)()
    results = await push_delivery.deliver(pushes)
    await sync_to_async(record)(pushes, results)
    words = {
        Result.DELIVERED: _("Test notification sent."),
        Result.GONE: _("The push service no longer knows this browser. Turn notifications on again."),
        Result.FAILED: _("The push service didn’t accept the notification. Try again later."),
    }
    return JsonResponse({"delivered": results == [Result.DELIVERED], "message": words[results[0]]})


def _browser_to_test(request: SignedInRequest) -> PushSubscription:
    spend("push_tests", request.user.pk)
    digest = request.session.get(PUSH, "")
    browser = subscriptions_of(request.user).select_related("user").filter(digest=digest).first()
    if browser is None or not web_push.is_configured():
        raise ServiceError("no_such_browser", _("Notifications aren’t turned on in this browser."))
    return browser


def remove(request: SignedInRequest) -> str:
    """Remove the `browser` in the form from the list and return a message. Raise ServiceError."""
    push.remove(user=request.user, subscription_id=number(request.POST.get("browser", "")) or 0)
    return _("Browser removed. It no longer gets notifications.")


def browsers(request: SignedInRequest) -> dict[str, Any]:
    """Return the template context of the list of browsers.

    If this browser was removed from another browser, also remove it from the session.
    """
    found, digest = list(subscriptions_of(request.user)), request.session.get(PUSH, "")
    if digest and digest not in {each.digest for each in found}:
        request.session.pop(PUSH)
    return {"browsers": found, "this_browser": digest}


def browser_name(user_agent: str) -> str:
    """Return a name by which a user recognizes a browser, such as "Firefox on Windows"."""
    browser = next((name for name, pattern in BROWSERS if re.search(pattern, user_agent)), "")
    system = next((name for name, word in SYSTEMS if word in user_agent), "")
    if browser and system:
        return _("%(browser)s on %(system)s") % {"browser": browser, "system": system}
    return browser or system or _("Unknown browser")


def _refusal(refused: ServiceError) -> JsonResponse:
    return JsonResponse({"code": refused.code, "message": refused.message}, status=status_of(refused))
