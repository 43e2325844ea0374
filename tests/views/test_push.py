"""Push messages on pages: the app's manifest, the service worker, and the list of browsers in the settings (UI-22)."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
from django.conf import settings as project
from django.contrib.auth import SESSION_KEY
from django.test import Client
from django.urls import reverse
from PIL import Image
from pytest_django.fixtures import Settings

from chat.models import LoginSession, PushSubscription, User
from chat.queries.push import reachable
from chat.security import web_push
from chat.services.people import push
from chat.views.push import browser_name
from tests.support.push_service import Browser, browsers_of, encoded

pytestmark = pytest.mark.django_db
PHONE = (
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36"
)


@pytest.fixture
def client(ana: User) -> Client:
    return entered(ana)


def entered(user: User) -> Client:
    client = Client(headers={"User-Agent": PHONE})
    client.force_login(user)
    User.objects.filter(pk=user.pk).update(notify=True)
    return client


def send(client: Client, browser: Browser, act: str = "register") -> Any:
    target = browser.target
    values = {"act": act, "endpoint": target.endpoint, "p256dh": target.p256dh, "auth": target.auth}
    response = client.post(reverse("push"), values)
    assert response.status_code == 200
    return response.json()


def reached(user: User) -> list[str]:
    return [row.endpoint.rsplit("/", 1)[1] for row in reachable([user.pk])]


def shown(client: Client) -> str:
    """Return the list of browsers as the settings show it, without its markup."""
    page = client.get(reverse("settings")).content.decode()
    found = re.search(r'<div id="browsers">(.*?)</div>\s*</section>', page, re.DOTALL)
    assert found
    return " ".join(re.sub(r"<[^>]*>", " ", found[1]).split())


def test_app_can_be_installed(client: Client) -> None:
    """UI-22: the manifest has what Chromium requires: a name, a start page, a window, and icons of two sizes."""
    response = client.get(reverse("manifest"))
    assert response["Content-Type"] == "application/manifest+json"
    manifest = json.loads(response.content)
    assert (manifest["name"], manifest["start_url"], manifest["scope"]) == ("Parley", "/", "/")
    assert manifest["display"] == "standalone"
    found = {(icon["sizes"], icon["purpose"]) for icon in manifest["icons"]}
    assert found == {(f"{size}x{size}", purpose) for size in (192, 512) for purpose in ("any", "maskable")}
    for icon in manifest["icons"]:
        path = project.BASE_DIR / "static" / icon["src"].removeprefix("/static/")
        with Image.open(io.BytesIO(path.read_bytes())) as picture:
            assert f"{picture.width}x{picture.height}" == icon["sizes"]


def test_manifest_speaks_the_browser_s_language(client: Client) -> None:
    """UI-13: without a signed-in user, the manifest is in the browser's language."""
    manifest = json.loads(Client().get(reverse("manifest"), headers={"Accept-Language": "zh-CN"}).content)
    assert (manifest["lang"], manifest["shortcuts"][0]["name"]) == ("zh-hans", "设置")


def test_manifest_is_requested_with_cookies(ana: User, settings: Settings) -> None:
    """UI-22: a sign-in proxy in front of Parley gets its cookies with the request for the manifest.

    Parley gets them, too, and does not redirect a user who must set up a second factor.
    """
    page = Client().get(reverse("sign-in")).content.decode()
    assert '<link rel="manifest" href="/manifest.webmanifest" crossorigin="use-credentials">' in page
    settings.REQUIRE_MFA = "all"
    assert entered(ana).get(reverse("manifest")).status_code == 200


def test_service_worker_rules_all_pages_and_is_not_kept(client: Client) -> None:
    """UI-22: the service worker covers all pages and is not cached, so that updates apply.

    It handles no requests of pages.
    """
    response = client.get("/service-worker.js")
    assert response["Content-Type"].startswith("text/javascript")
    assert "no-store" in response["Cache-Control"]
    assert b"pushsubscriptionchange" in response.content
    assert b'"fetch"' not in response.content


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (PHONE, "Chrome on Android"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0", "Firefox on Linux"),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
            "Version/26.0 Mobile/15E148 Safari/604.1",
            "Safari on iPhone",
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 "
            "Safari/537.36 Edg/142.0.0.0",
            "Edge on Windows",
        ),
        ("curl/8", "Unknown browser"),
    ],
)
def test_browsers_have_names(agent: str, name: str) -> None:
    """UI-22: browsers have names by which their user can distinguish them."""
    assert browser_name(agent) == name


def test_browser_is_registered_listed_and_removed(client: Client, ana: User) -> None:
    """UI-22: the settings list a registered browser and mark the current one. Another browser can remove it."""
    assert shown(client) == ""
    assert "Chrome on Android" in send(client, Browser("phone"))["browsers"]
    assert shown(client) == "Chrome on Android this browser · not notified yet Remove · Chrome on Android"
    other = entered(ana)
    assert "this browser" not in shown(other)
    row = PushSubscription.objects.get()
    answer = other.post(reverse("settings"), {"part": "push_remove", "browser": row.pk}, follow=True)
    assert "Browser removed." in answer.content.decode()
    assert (shown(client), reached(ana)) == ("", [])
    assert 'data-push=""' in client.get(reverse("home")).content.decode()
    assert send(client, Browser("phone"), "refresh")["known"] is False


def test_this_browser_can_leave(client: Client, ana: User) -> None:
    """UI-22: the switch removes this browser, and a second request changes nothing."""
    send(client, Browser("phone"))
    for _ in range(2):
        assert client.post(reverse("push"), {"act": "remove"}).json() == {"browsers": ""}
    assert reached(ana) == []


def test_signing_out_removes_this_browser(client: Client, ana: User) -> None:
    """UI-22: signing out removes this browser and no other one."""
    other = entered(ana)
    send(client, Browser("phone"))
    send(other, Browser("desk"))
    client.post(reverse("sign-out"))
    assert (browsers_of(ana), reached(ana)) == (["desk"], ["desk"])


def test_login_keeps_its_browser_when_its_key_changes(client: Client, ana: User) -> None:
    """UI-22: after a new password, this browser stays, and browsers of the user's other logins get nothing."""
    other = entered(ana)
    send(client, Browser("phone"))
    send(other, Browser("desk"))
    values = {"part": "password", "old_password": "correct horse", "new_password1": "battery staple 9"}
    answer = client.post(reverse("settings"), {**values, "new_password2": "battery staple 9"}, follow=True)
    assert "Password changed" in answer.content.decode()
    assert reached(ana) == ["phone"]


def test_expired_login_gets_nothing_until_it_is_renewed(client: Client, ana: User, bo: User) -> None:
    """UI-22: after a login expires, its browser gets nothing until the same user signs in again."""
    phone = Browser("phone")
    send(client, phone)
    LoginSession.objects.all().delete()
    assert reached(ana) == []
    assert send(entered(bo), phone, "refresh")["known"] is False
    assert send(entered(ana), phone, "refresh")["known"] is True
    assert (reached(ana), reached(bo)) == (["phone"], [])


def test_pages_say_which_subscription_their_login_has(client: Client, ana: User, settings: Settings) -> None:
    """UI-22: a page contains the login's subscription, so it need not query it.

    It registers again if the server's key has changed.
    """
    send(client, Browser("phone"))
    digest = push.digest_of(Browser("phone").target.endpoint)
    home = reverse("home")
    assert f'data-push="{digest}"' in client.get(home).content.decode()
    settings.VAPID_PRIVATE_KEY = encoded(b"another key" + b"1" * 21)
    assert 'data-push=""' in client.get(home).content.decode()
    assert reached(ana) == []
    answer = send(client, Browser("phone"), "refresh")
    assert answer == {"known": True, "key": web_push.public_key()}


def test_settings_of_a_server_that_cannot_send(client: Client, settings: Settings) -> None:
    """UI-22: if the server cannot send push messages, the settings offer only the page's own notifications."""
    settings.VAPID_PRIVATE_KEY = ""
    page = client.get(reverse("settings")).content.decode()
    assert "Browser notifications" in page
    assert 'id="push"' not in page
    assert client.get(reverse("push")).json()["key"] == ""


def test_subscriptions_belong_to_whom_the_login_is(client: Client, ana: User) -> None:
    """UI-22: a login's column for its subscription follows the session's data, also when the login ends."""
    send(client, Browser("phone"))
    assert LoginSession.objects.get(user=ana).push == push.digest_of(Browser("phone").target.endpoint)
    session = client.session
    assert session[SESSION_KEY] == str(ana.pk)
    client.post(reverse("sign-out"))
    assert not LoginSession.objects.filter(user=ana).exclude(push="").exists()


def test_switch_works_without_scripts(client: Client, ana: User) -> None:
    """UI-22: without scripts, the switch works although an unchecked box is not sent."""
    client.post(reverse("settings"), {"part": "notifications"})
    ana.refresh_from_db()
    assert not ana.notify
    client.post(reverse("settings"), {"part": "notifications", "notify": "yes"})
    ana.refresh_from_db()
    assert ana.notify
    client.post(reverse("settings"), {"part": "preferences", "theme": "dark"})
    ana.refresh_from_db()
    assert (ana.notify, ana.theme) == (True, "dark")


def test_settings_name_all_that_is_notified(client: Client) -> None:
    """UI-22, LIVE-07: mentions are notified like questions and the ends of long turns."""
    html = client.get(reverse("settings")).content.decode()
    assert "When you’re mentioned, an agent needs you, or an agent finishes after 20 seconds or more" in html
