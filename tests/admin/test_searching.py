"""Searches in the admin's lists."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest
from django.test import RequestFactory

from chat.admin.base import MAX_SEARCH_WORDS
from chat.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
SEARCHED = [each for each in admin.site._registry.values() if each.search_fields]


@pytest.fixture
def root() -> User:
    return User.objects.create_superuser("root")


@pytest.mark.parametrize("model_admin", SEARCHED, ids=lambda each: each.opts.model_name)
def test_any_number_of_words_can_be_searched_for(model_admin: ModelAdmin[User], root: User) -> None:
    """ADM-01: a search with very many words works, although the database limits the conditions of a query."""
    request: HttpRequest = RequestFactory().get("/")
    request.user = root
    words = " ".join(f"word{number}" for number in range(1_000))
    found, _is_doubled = model_admin.get_search_results(request, model_admin.get_queryset(request), words)
    assert list(found) == []


def test_first_words_count(root: User) -> None:
    people = admin.site._registry[User]
    request: HttpRequest = RequestFactory().get("/")
    request.user = root
    for further, found in ((0, [root]), (1, [])):
        words = " ".join([*["root"] * (MAX_SEARCH_WORDS - further), *["other"] * (1 + further)])
        assert list(people.get_search_results(request, User.objects.all(), words)[0]) == found
