"""API tokens in the admin: what staff see of them, and how they revoke one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from chat.models import ApiToken, SecurityEvent, User
from chat.services.people import api_tokens
from chat.services.people.security_log import Kind
from tests.admin.pages import said
from tests.support.signed_in import signed_in

pytestmark = pytest.mark.django_db
LIST = reverse("admin:chat_apitoken_changelist")


@pytest.fixture
def token(ana: User) -> ApiToken:
    return api_tokens.create(user=ana, name="Backup", scope="write", days=30)[0]


def revoke(client: Client, *tokens: ApiToken) -> str:
    values = {"action": "revoke", "_selected_action": [each.pk for each in tokens]}
    return said(client.post(LIST, values, follow=True))


def test_token_is_seen_and_revoked_at_once(staff_with: Callable[..., User], ana: User, token: ApiToken) -> None:
    """LIVE-06: staff never see the token; the user's page links to the list, and the user's log names the revoker."""
    keeper = signed_in(staff_with("view_apitoken", "change_apitoken", "view_user"))
    secret = api_tokens.create(user=ana, name="Other", scope="read", days=0)[1]
    person = reverse("admin:chat_user_change", args=[ana.pk])
    assert "2 API tokens" in said(keeper.get(person))
    shown = keeper.get(LIST, {"user__id__exact": ana.pk})
    assert all(words in said(shown) for words in ("Backup", "Other", "ana", "read only", "read and write"))
    assert "Other" not in said(keeper.get(LIST, {"scope__exact": "write"}))
    page = keeper.get(reverse("admin:chat_apitoken_change", args=[token.pk]))
    for each in (shown, page):
        assert not any(hidden in each.content.decode() for hidden in (secret, token.digest))
    assert "“Backup” of Ana is revoked." in revoke(keeper, token)
    assert api_tokens.alive([token.pk]) == set()
    assert "This token no longer exists." in revoke(keeper, token)
    [entry] = LogEntry.objects.all()
    assert (entry.object_id, entry.get_change_message()) == (str(ana.pk), "Changed revoked for API token “Backup”.")


def test_superuser_s_tokens_are_for_superusers(staff_with: Callable[..., User]) -> None:
    """LIVE-06: staff cannot stop the programs of users with more rights than their own."""
    boss = User.objects.create_superuser("root", display_name="Root")
    token, _secret = api_tokens.create(user=boss, name="Deploy", scope="write", days=0)
    keeper = signed_in(staff_with("view_apitoken", "change_apitoken"))
    assert "Items that you can’t change were skipped." in revoke(keeper, token)
    assert api_tokens.alive([token.pk]) == {token.pk}
    assert "is revoked." in revoke(signed_in(boss), token)
    assert SecurityEvent.objects.get(kind=Kind.TOKEN_REVOKED).actor == boss


def test_tokens_are_for_those_who_were_given_the_right(staff_with: Callable[..., User], token: ApiToken) -> None:
    """LIVE-06: viewing does not allow revoking, and managing users does not allow viewing."""
    looker = signed_in(staff_with("view_apitoken"))
    assert "Backup" in said(looker.get(LIST))
    revoke(looker, token)
    assert api_tokens.alive([token.pk]) == {token.pk}
    clerk = signed_in(staff_with("view_user", "change_user", name="kim"))
    assert "API token" not in said(clerk.get(reverse("admin:chat_user_change", args=[token.user_id])))
    assert clerk.get(LIST).status_code == 403


def test_tokens_stop_and_go_with_their_person(staff_with: Callable[..., User], ana: User, token: ApiToken) -> None:
    """LIVE-06: tokens cannot be deleted, but do not prevent deleting their user."""
    clerk = signed_in(staff_with("view_user", "change_user", "delete_user"))
    User.objects.filter(pk=ana.pk).update(is_active=False)
    assert api_tokens.alive([token.pk]) == set()
    ana.memberships.all().delete()
    assert clerk.post(reverse("admin:chat_user_delete", args=[ana.pk]), {"post": "yes"}).status_code == 302
    assert not ApiToken.objects.exists()
