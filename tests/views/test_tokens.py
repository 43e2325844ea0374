"""Create and revoke API tokens on the settings page."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries

from chat.models import ApiToken, User
from chat.services.people import api_tokens

pytestmark = pytest.mark.django_db
SignIn = Callable[[User], Client]
SETTINGS = "/settings/"
FORM = {"part": "token", "token_name": "Nightly", "scope": "write", "days": "90"}


def secret_in(html: str) -> str | None:
    found = re.search(r"parley_[\w-]{43}", html)
    return found[0] if found else None


def test_token_is_shown_once_and_works(signed_in: SignIn, ana: User) -> None:
    """LIVE-06: only the page that creates the token shows it."""
    client = signed_in(ana)
    answer = client.post(SETTINGS, FORM)
    secret = secret_in(answer.content.decode())
    assert secret is not None
    assert "no-store" in answer["Cache-Control"]
    me = Client(headers={"Authorization": f"Bearer {secret}"}).get("/api/me").json()
    assert (me["username"], me["scope"]) == ("ana", "write")
    html = client.get(SETTINGS).content.decode()
    assert ("Nightly" in html, secret_in(html)) == (True, None)
    token = ApiToken.objects.get()
    assert token.expires_at is not None
    assert timedelta(days=89) < token.expires_at - timezone.now() < timedelta(days=91)


def test_revoked_token_is_gone(signed_in: SignIn, ana: User, bo: User) -> None:
    """LIVE-06: users can revoke their own tokens, and each only once."""
    mine, secret = api_tokens.create(user=ana, name="Nightly", scope="read", days=0)
    his, _secret = api_tokens.create(user=bo, name="Bo's", scope="read", days=0)
    client = signed_in(ana)
    assert "Bo&#x27;s" not in client.get(SETTINGS).content.decode()
    answers = [client.post(SETTINGS, {"part": "revoke", "token": token.pk}) for token in (mine, mine, his)]
    assert [answer.status_code for answer in answers] == [302, 422, 422]
    assert Client(headers={"Authorization": f"Bearer {secret}"}).get("/api/me").status_code == 401
    his.refresh_from_db()
    assert his.revoked_at is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"token_name": " "},
        {"token_name": "x" * 81},
        {"token_name": "a\0b"},
        {"scope": "admin"},
        {"scope": ""},
        {"days": "1"},
        {"days": "x"},
        {"days": "9" * 400},
    ],
)
def test_refused_form_is_explained_and_keeps_what_was_typed(
    signed_in: SignIn, ana: User, wrong: dict[str, str]
) -> None:
    """A refused form shows the reason and keeps the input (MSG-12)."""
    answer = signed_in(ana).post(SETTINGS, {**FORM, **wrong})
    html = answer.content.decode()
    assert (answer.status_code, 'class="errors"' in html, secret_in(html)) == (422, True, None)
    assert "token_name" in wrong or 'value="Nightly"' in html
    assert not ApiToken.objects.exists()


def test_number_of_tokens_is_limited_and_revoked_ones_do_not_count(signed_in: SignIn, ana: User) -> None:
    """MSG-12: revoked tokens do not count."""
    tokens = [ApiToken(user=ana, name="x", digest=f"{number}") for number in range(api_tokens.MAX_TOKENS)]
    ApiToken.objects.bulk_create(tokens)
    client = signed_in(ana)
    assert client.post(SETTINGS, FORM).status_code == 422
    api_tokens.revoke(user=ana, token_id=ApiToken.objects.values_list("pk", flat=True)[0])
    assert client.post(SETTINGS, FORM).status_code == 200


def test_expired_token_stays_in_the_list_and_is_marked(signed_in: SignIn, ana: User) -> None:
    """LIVE-06: an expired token stays in the list, so that the user sees why a program is rejected."""
    api_tokens.create(user=ana, name="Old", scope="read", days=30)
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(days=1))
    assert ">expired<" in signed_in(ana).get(SETTINGS).content.decode()


@pytest.mark.parametrize("count", [1, 30])
def test_page_costs_the_same_with_many_tokens(
    signed_in: SignIn, ana: User, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    """LIVE-01: one query reads all tokens."""
    client = signed_in(ana)
    for _ in range(count):
        api_tokens.create(user=ana, name="x", scope="read", days=0)
    with django_assert_num_queries(7):
        assert client.get(SETTINGS).status_code == 200
