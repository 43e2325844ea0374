"""Browsers that get push messages: how they are registered and when they are removed (UI-22)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from zipfile import ZipFile

import pytest
from django.utils import timezone

from chat.errors import Invalid, ServiceError
from chat.models import PushSubscription, User
from chat.queries.push import reachable
from chat.services.batches import Deadline
from chat.services.deletion.users import close_account, erase_user
from chat.services.maintenance import jobs
from chat.services.people import accounts, push
from chat.services.people.push import digest_of
from chat.transfer.exporting.personal import export_person
from tests.support.push_service import Browser, browsers_of, sign_out, subscribed

pytestmark = pytest.mark.django_db


def reached(*users: User) -> list[str]:
    return [row.endpoint.rsplit("/", 1)[1] for row in reachable(user.pk for user in users)]


def register(user: User, browser: Browser) -> PushSubscription:
    return push.register(user=user, target=browser.target, name="Firefox on Linux", language="en")


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "push",
        "http://push.example.org/a",
        "https://user:password@push.example.org/a",
        "https://push.example.org:22/a",
        "https://127.0.0.1/a",
        "https://10.0.0.1/a",
        "https://169.254.169.254/latest",
        "https://010.0.0.1/a",
        "https://127.1/a",
        "https://[::1]/a",
        "https://[a]@",
        "https://[::ffff:10.0.0.1]/a",
        "https://localhost/a",
        "https://push.example.org/\0",
        "https://push.example.org/ä",
        f"https://push.example.org/{'a' * 2048}",
    ],
)
def test_addresses_that_are_no_push_service_are_refused(ana: User, endpoint: str) -> None:
    """UI-22: a client cannot register an address in the server's own network."""
    with pytest.raises(Invalid):
        push.register(user=ana, target=replace(Browser("a").target, endpoint=endpoint), name="", language="")
    assert not PushSubscription.objects.exists()


def test_padding_of_keys_is_not_stored(ana: User) -> None:
    """UI-22: Base64 keys with any padding are accepted, and the padding is not stored, because it would not fit the
    column."""
    browser = Browser("a")
    target = replace(browser.target, auth=browser.target.auth + "=" * 500)
    assert push.register(user=ana, target=target, name="", language="").auth == browser.target.auth


def test_registering_again_renews(ana: User) -> None:
    """UI-22: a browser is listed once, even if it registers again."""
    browser = Browser("a")
    register(ana, browser)
    PushSubscription.objects.update(failures=7)
    other = Browser("a")
    row = register(ana, other)
    assert (PushSubscription.objects.count(), row.failures, row.p256dh) == (1, 0, other.target.p256dh)


def test_number_of_browsers_is_bounded(ana: User, bo: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-22: each user has a limit of browsers, because every notification sends a message to each of them."""
    monkeypatch.setattr(push, "MAX_BROWSERS", 2)
    for path in ("a", "b"):
        register(ana, Browser(path))
    with pytest.raises(Invalid, match="2 browsers"):
        register(ana, Browser("c"))
    register(ana, Browser("b"))
    register(bo, Browser("a"))
    assert (browsers_of(ana), browsers_of(bo)) == (["a", "b"], ["a"])


def test_refreshing_follows_a_browser_to_its_new_address(ana: User, bo: User) -> None:
    """UI-22: a browser's new address replaces the old one.

    Unregistered browsers, and those of other users, are ignored.
    """
    old, new = Browser("old"), Browser("new")
    register(ana, old)
    assert push.refresh(user=bo, target=new.target, before=digest_of(old.target.endpoint)) is None
    assert push.refresh(user=ana, target=new.target, before="") is None
    row = push.refresh(user=ana, target=new.target, before=digest_of(old.target.endpoint))
    assert row is not None
    assert (row.endpoint, browsers_of(ana), browsers_of(bo)) == (new.target.endpoint, ["new"], [])
    register(ana, old)
    push.refresh(user=ana, target=new.target, before=digest_of(old.target.endpoint))
    assert browsers_of(ana) == ["new"]


def test_only_browsers_that_are_signed_in_and_wanted_get_messages(ana: User, bo: User) -> None:
    """UI-22: a browser gets messages if the user's setting is on, its login is valid, and it has the present key."""
    subscribed(ana, "a")
    subscribed(bo, "b")
    assert reached(ana, bo) == ["a", "b"]
    assert reached(bo) == ["b"]
    User.objects.filter(pk=ana.pk).update(notify=False)
    assert reached(ana, bo) == ["b"]
    User.objects.filter(pk=ana.pk).update(notify=True)
    sign_out(ana)
    assert reached(ana, bo) == ["b"]
    PushSubscription.objects.update(key="another")
    assert reached(bo) == []


def test_users_remove_their_own_browsers_only(ana: User, bo: User) -> None:
    """UI-22: the browser of another user is reported as not found."""
    row = register(ana, Browser("a"))
    with pytest.raises(ServiceError, match="no longer gets notifications"):
        push.remove(user=bo, subscription_id=row.pk)
    assert browsers_of(ana) == ["a"]
    push.remove(user=ana, subscription_id=row.pk)
    assert browsers_of(ana) == []


def test_results_are_recorded(ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-22: expired subscriptions are removed immediately, failing ones after several failures."""
    monkeypatch.setattr(push, "MAX_FAILURES", 2)
    good, bad, gone = (register(ana, Browser(path)).pk for path in ("good", "bad", "gone"))
    push.record_delivery(delivered=[good], failed=[bad], gone=[gone])
    assert browsers_of(ana) == ["good", "bad"]
    assert PushSubscription.objects.get(pk=good).last_success_at is not None
    push.record_delivery(delivered=[bad], failed=[], gone=[])
    push.record_delivery(delivered=[], failed=[bad], gone=[])
    assert browsers_of(ana) == ["good", "bad"]
    push.record_delivery(delivered=[], failed=[bad], gone=[])
    assert browsers_of(ana) == ["good"]


def test_ending_logins_removes_their_browsers(ana: User, bo: User) -> None:
    """UI-22: signing out elsewhere, closing the account and ending all logins remove the browsers."""
    subscribed(ana, "a")
    subscribed(bo, "b")
    accounts.sign_out_elsewhere(user=ana, keep=None)
    assert (browsers_of(ana), browsers_of(bo)) == ([], ["b"])
    subscribed(ana, "a")
    close_account(ana, None)
    assert (browsers_of(ana), browsers_of(bo)) == ([], ["b"])
    accounts.end_all_logins(with_tokens=False)
    assert browsers_of(bo) == []


def test_browsers_without_a_login_are_deleted_at_last(ana: User, bo: User) -> None:
    """UI-22: browsers without a login are deleted later, so that signing in again reactivates them."""
    subscribed(ana, "a")
    subscribed(bo, "b")
    sign_out(ana)
    jobs.delete_expired(Deadline())
    assert browsers_of(ana) == ["a"]
    PushSubscription.objects.update(refreshed_at=timezone.now() - timedelta(days=91))
    assert jobs.delete_expired(Deadline()) == 1
    assert (browsers_of(ana), browsers_of(bo)) == ([], ["b"])


def test_erasing_and_exporting_include_them(ana: User) -> None:
    """UI-22: erasing a user deletes their browsers, and the export contains the browsers without addresses and keys,
    which are secret."""
    browser = subscribed(ana, "secret-address")
    archive = ZipFile(BytesIO(b"".join(export_person(user=ana, author=ana))))
    account = archive.read("account.json").decode()
    (exported,) = json.loads(account)["browsers_with_notifications"]
    assert (exported["name"], exported["last_success_at"]) == ("Chrome on Linux", None)
    assert "secret-address" not in account
    assert browser.target.auth not in account
    close_account(ana, None)
    register(ana, browser)
    assert erase_user(ana.pk)
    assert not PushSubscription.objects.exists()
