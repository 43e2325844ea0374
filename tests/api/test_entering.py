"""Authentication of the API, and the answers to requests without it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat.models import ApiToken, User
from chat.services.people import api_tokens
from tests.api.asking import Asker

pytestmark = pytest.mark.django_db
ME = "/api/me"


@pytest.fixture
def made(ana: User) -> tuple[ApiToken, str]:
    return api_tokens.create(user=ana, name="Script", scope="write", days=30)


def status(secret: str) -> int:
    return int(Asker(secret).get(ME).status_code)


def test_token_and_cookie_say_who_asks(ana: User) -> None:
    """A token and a cookie both identify the user (LIVE-06)."""
    team = ana.memberships.get().workspace_id
    workspaces = {"workspaces": [{"id": team, "name": "Team", "role": "member"}], "workspace": team}
    for scope in ("read", "write"):
        _token, secret = api_tokens.create(user=ana, name="Script", scope=scope, days=0)
        who = {"id": ana.pk, "username": "ana", "name": "Ana", "scope": scope}
        assert Asker(secret).get(ME).json() == {**who, **workspaces, "can_begin_sessions": True}
    client = Client()
    client.force_login(ana)
    assert client.get(ME).json()["scope"] == "write"


def test_unauthenticated_request_gets_a_problem_and_the_authentication_scheme(ana: User) -> None:
    """LIVE-06: an unauthenticated request gets a problem and a header that explain how to authenticate."""
    answer = Client().get(ME)
    assert (answer.status_code, answer["Content-Type"]) == (401, "application/problem+json")
    assert answer["WWW-Authenticate"] == "Bearer"
    assert answer.json()["code"] == "signed_out"
    assert answer.json().keys() == {"type", "title", "status", "code", "detail"}


@pytest.mark.parametrize("secret", ["", "x", "parley_", "parley_" + "a" * 43, "parley_" + "é" * 43, "\udcff", "a b"])
def test_tokens_that_are_none(ana: User, secret: str) -> None:
    """LIVE-06, MSG-12: malformed and unknown tokens are refused, even beside a valid cookie."""
    client = Client()
    client.force_login(ana)
    value = secret.encode("utf-8", "surrogateescape").decode("latin-1")
    for asker in (Client(), client):
        answer = asker.get(ME, headers={"Authorization": f"Bearer {value}"})
        assert (answer.status_code, answer.json()["code"]) == (401, "bad_token")


def test_other_headers_are_a_proxy_s_matter(ana: User) -> None:
    """LIVE-06: authorization headers of other schemes are ignored, because a proxy with its own password may pass them
    on."""
    client = Client(headers={"Authorization": "Basic YTpi"})
    assert client.get(ME).json()["code"] == "signed_out"
    client.force_login(ana)
    assert client.get(ME).json()["username"] == "ana"


def test_token_ends(ana: User, made: tuple[ApiToken, str]) -> None:
    """LIVE-06: a token ends when its owner revokes it, when it expires, and when its owner is deactivated."""
    token, secret = made
    assert status(secret) == 200
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert status(secret) == 401
    ApiToken.objects.update(expires_at=None)
    User.objects.filter(pk=ana.pk).update(is_active=False)
    assert status(secret) == 401
    User.objects.filter(pk=ana.pk).update(is_active=True)
    assert status(secret) == 200
    api_tokens.revoke(user=ana, token_id=token.pk)
    assert status(secret) == 401


def test_use_of_a_token_is_noted_once_a_minute(ana: User, made: tuple[ApiToken, str]) -> None:
    """The last use of a token is stored at most once a minute (LIVE-06)."""
    token, secret = made
    status(secret)
    token.refresh_from_db()
    first = token.last_used_at
    assert first is not None
    status(secret)
    token.refresh_from_db()
    assert token.last_used_at == first
    ApiToken.objects.update(last_used_at=first - timedelta(minutes=1))
    status(secret)
    token.refresh_from_db()
    assert token.last_used_at is not None
    assert token.last_used_at >= first


def test_secret_is_not_kept(made: tuple[ApiToken, str]) -> None:
    """LIVE-06: only the digest of the secret is stored."""
    token, secret = made
    assert secret.startswith("parley_")
    assert len(secret) == 50
    assert secret not in str(ApiToken.objects.values().get())
    assert len(token.digest) == 64


def test_everything_is_private(ana: User, made: tuple[ApiToken, str]) -> None:
    """LIVE-06: answers and refusals must not be cached."""
    for answer in (Asker(made[1]).get(ME), Asker("").get(ME), Asker(made[1]).get("/api/nothing")):
        assert answer["Cache-Control"] == "private, no-store"


def test_refusals_on_the_way_are_problems(made: tuple[ApiToken, str]) -> None:
    """MSG-12: unknown addresses and unsupported methods get a problem."""
    asker = Asker(made[1])
    missing, wrong = asker.get("/api/nothing"), asker.delete(ME)
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    assert (wrong.status_code, wrong.json()["code"]) == (405, "method_not_allowed")
    assert wrong["Allow"] == "GET, HEAD, OPTIONS"


def test_answer_without_a_body_has_no_type(ana: User, made: tuple[ApiToken, str]) -> None:
    """MSG-12: an answer with 204 has no body and no media type."""
    team = ana.memberships.get().workspace_id
    answer = Asker(made[1]).post(f"/api/workspaces/{team}/enter")
    assert (answer.status_code, "Content-Type" in answer) == (204, False)


def test_tokens_outlive_a_new_password(ana: User, made: tuple[ApiToken, str]) -> None:
    """LIVE-06: tokens keep working after a change of the password. They are revoked in the settings."""
    client = Client()
    ana.set_unusable_password()
    ana.save()
    client.force_login(ana)
    values = {"new_password1": "a quite new one", "new_password2": "a quite new one"}
    assert client.post(reverse("settings"), {"part": "password", **values}).status_code == 302
    assert User.objects.get(pk=ana.pk).check_password("a quite new one")
    assert Asker(made[1]).get(ME).status_code == 200


def test_token_of_the_api_opens_no_page(made: tuple[ApiToken, str]) -> None:
    """LIVE-06: a token does not give access to pages, such as the settings in which tokens are made."""
    for address in ("/", "/settings/", "/admin/"):
        answer = Asker(made[1]).get(address)
        assert (answer.status_code, settings.SESSION_COOKIE_NAME in answer.cookies) == (302, False)
