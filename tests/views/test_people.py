"""The users of a session, as scripts request them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from chat.models import Session, User
from tests.support.testing_node import let_in, person

pytestmark = pytest.mark.django_db


def test_people_of_a_session_are_listed(
    signed_in: Callable[[User], Client], ana: User, bo: User, session: Session
) -> None:
    """UI-09: the list has the users who can be mentioned, the owner first, and no others of the workspace."""
    let_in(session, bo, "viewer")
    person("Cem")
    answer = signed_in(bo).get(reverse("session-people", args=[session.pk]))
    told = [(who["id"], who["name"], who["username"], who["role"]) for who in answer.json()["people"]]
    assert told == [(ana.pk, "Ana", "ana", "owner"), (bo.pk, "Bo", "bo", "viewer")]
    assert answer.json()["people"][0]["initials"] == "AN"
    assert answer.json()["people"][0]["colour"].startswith("c")
    assert answer.json()["people"][0]["picture"] == ""
