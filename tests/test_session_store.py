"""The session backend, which stores keys as hashes, and their users in a column."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat.models import LoginSession, SecurityEvent, SignInLink, User
from chat.security.session_store import SessionStore, hash_key
from chat.services.batches import Deadline
from chat.services.maintenance import jobs
from chat.services.people import accounts
from chat.services.people.security_log import Kind, record
from tests.support.second_factors import give_app
from tests.support.signed_in import signed_in

pytestmark = pytest.mark.django_db
PASSWORD = {"password": "correct horse"}


def key_of(client: Client) -> str:
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def test_key_in_the_database_does_not_sign_in(ana: User) -> None:
    """LIVE-06: who reads the database, or a backup, cannot use what is there."""
    client = signed_in(ana)
    [row] = LoginSession.objects.all()
    assert key_of(client) not in str(vars(row))
    thief = Client()
    thief.cookies[settings.SESSION_COOKIE_NAME] = row.session_key
    assert thief.get("/").status_code == 302
    assert client.get("/").status_code == 200


def test_row_knows_its_user(ana: User) -> None:
    client = signed_in(ana)
    assert LoginSession.objects.get().user == ana
    client.logout()
    assert not LoginSession.objects.exists()
    ana_again = signed_in(ana)
    ana.delete()
    assert not LoginSession.objects.exists()
    assert ana_again.get("/").status_code == 302


def test_async_methods_do_the_same(ana: User) -> None:
    """Channels and Django's async views use these."""

    async def use() -> tuple[dict[str, Any], bool, bool]:
        store = SessionStore()
        await store.aset("_auth_user_id", str(ana.pk))
        await store.asave()
        key = store.session_key or ""
        loaded = await SessionStore(key).aload()
        known = await store.aexists(key)
        await store.adelete()
        return loaded, known, await store.aexists(key)

    assert async_to_sync(use)() == ({"_auth_user_id": str(ana.pk)}, True, False)


def test_expired_row_does_not_sign_in(ana: User) -> None:
    """It may be there until the next maintenance."""
    client = signed_in(ana)
    LoginSession.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    assert SessionStore(key_of(client)).load() == {}
    assert async_to_sync(SessionStore(key_of(client)).aload)() == {}
    assert client.get("/").status_code == 302


def nearly_expired() -> None:
    LoginSession.objects.update(expire_date=timezone.now() + timedelta(days=5))


def days_left() -> int:
    return round((LoginSession.objects.get().expire_date - timezone.now()) / timedelta(days=1))


def test_used_login_is_prolonged_once_a_day(ana: User) -> None:
    """UI-22: a user who opens Parley is not signed out after 30 days, and the browser's notifications go on.

    The row and the cookie are prolonged together.
    """
    client = Client()
    begun = client.post(reverse("sign-in"), PASSWORD | {"username": ana.username}).cookies[settings.SESSION_COOKIE_NAME]
    LoginSession.objects.update(expire_date=timezone.now() + timedelta(days=29, hours=1))
    assert settings.SESSION_COOKIE_NAME not in client.get(reverse("settings")).cookies
    nearly_expired()
    first, second = (client.get(reverse("settings")).cookies for _ in range(2))
    assert days_left() == 30
    prolonged = first[settings.SESSION_COOKIE_NAME]
    assert prolonged.value == begun.value
    assert {**prolonged, "expires": ""} == {**begun, "expires": ""}
    assert settings.SESSION_COOKIE_NAME not in second


def test_prolonging_brings_no_login_back(ana: User) -> None:
    """LIVE-06: a login that has ended during a request stays ended, and changes of other requests stay."""
    client = signed_in(ana)
    nearly_expired()
    first, second, third = (SessionStore(key_of(client)) for _ in range(3))
    for store in (first, second, third):
        store.load()
    second["seen"] = True
    second.save()
    assert not first.prolong()
    assert SessionStore(key_of(client))["seen"] is True
    nearly_expired()
    third.load()
    accounts.end_all_logins(with_tokens=False)
    assert not third.prolong()
    assert not LoginSession.objects.exists()
    assert client.get("/").status_code == 302


def test_only_logins_are_prolonged(ana: User) -> None:
    """LIVE-06: a login without its second step, and one of a user who was deactivated, expire as before."""
    client = signed_in(ana)
    nearly_expired()
    User.objects.filter(pk=ana.pk).update(is_active=False)
    client.get(reverse("sign-in"))
    assert days_left() == 5
    User.objects.filter(pk=ana.pk).update(is_active=True)
    client.post(reverse("sign-out"))
    assert not LoginSession.objects.exists()
    assert client.cookies[settings.SESSION_COOKIE_NAME].value == ""
    give_app(ana)
    client.post(reverse("sign-in"), PASSWORD | {"username": ana.username})
    nearly_expired()
    assert client.get(reverse("second-step")).status_code == 200
    assert days_left() == 5


@pytest.mark.parametrize("others", [1, 30])
def test_signing_out_elsewhere_costs_the_same_with_many_logins_of_other_users(
    ana: User, bo: User, others: int, django_assert_num_queries: Callable[[int], Any]
) -> None:
    """No login of anybody else is read."""
    kept, ended = signed_in(ana), signed_in(ana)
    SessionStore.get_model_class().objects.bulk_create(
        LoginSession(session_key=hash_key(f"{number}"), user=bo, session_data="unreadable", expire_date=timezone.now())
        for number in range(others)
    )
    with django_assert_num_queries(6):  # a savepoint and its release, sign-in links, the keys, the deletion, the event
        assert accounts.sign_out_elsewhere(user=ana, keep=key_of(kept)) == 1
    assert (kept.get("/").status_code, ended.get("/").status_code) == (200, 302)
    assert LoginSession.objects.filter(user=bo).count() == others


def test_expired_rows_go_by_themselves(ana: User, bo: User, settings: Any) -> None:
    """A batch at a time; what is valid, or is kept for ever, stays."""
    settings.SECURITY_LOG_DAYS = 30
    long_ago = timezone.now() - timedelta(days=31)
    signed_in(ana)
    LoginSession.objects.update(expire_date=long_ago)
    client = signed_in(bo)
    accounts.sign_in_link(user=ana)
    SignInLink.objects.update(expires_at=long_ago)
    SecurityEvent.objects.update(at=long_ago)
    record(Kind.SIGN_OUT, actor=bo)
    jobs.delete_expired(Deadline())
    assert LoginSession.objects.get().user == bo
    assert not SignInLink.objects.exists()
    assert [event.kind for event in SecurityEvent.objects.all()] == [Kind.SIGN_OUT]
    assert client.get("/").status_code == 200
    SecurityEvent.objects.update(at=long_ago)
    settings.SECURITY_LOG_DAYS = 0
    jobs.delete_expired(Deadline())
    assert SecurityEvent.objects.count() == 1
