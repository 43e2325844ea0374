"""The lists of sessions, and beginning one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from chat.models import Session, User
from chat.services.messages import send_message
from chat.services.sessions import create_session
from tests.support.house import let_in

pytestmark = pytest.mark.django_db
SignIn = Callable[[User], Client]


def home_of(client: Client) -> str:
    return client.get(reverse("home")).content.decode()


def test_home_lists_mine_and_what_is_shared_with_me(signed_in: SignIn, ana: User, bo: User, session: Session) -> None:
    let_in(create_session(owner=bo, workspace=session.workspace, title="Shared"), ana, "viewer")
    create_session(owner=bo, workspace=session.workspace, title="Private")
    html = home_of(signed_in(ana))
    assert ["Plan" in html, "Shared" in html, "Private" in html] == [True, True, False]
    assert html.index("Shared") < html.index("Plan")  # the last active first


def test_home_shows_which_agents_work(signed_in: SignIn, ana: User, session: Session) -> None:
    before = "Working" in home_of(signed_in(ana))
    send_message(session=session, author=ana, text="Go")
    assert (before, "Working" in home_of(signed_in(ana))) == (False, True)


def test_empty_home_says_how_to_begin(signed_in: SignIn, ana: User) -> None:
    assert "No sessions yet" in home_of(signed_in(ana))


def test_new_session_is_opened(signed_in: SignIn, ana: User) -> None:
    client = signed_in(ana)
    response = client.post(reverse("new-session"))
    session = Session.objects.get()
    assert response.headers["Location"] == reverse("session", args=[session.pk])
    assert session.owner == ana
    assert client.get(reverse("new-session")).status_code == 405


def test_rail_marks_the_open_session(signed_in: SignIn, ana: User, session: Session) -> None:
    create_session(owner=ana, title="Other")
    html = signed_in(ana).get(reverse("rail"), {"current": session.pk}).content.decode()
    current = [item for item in html.split("<li>")[1:] if 'aria-current="page"' in item]
    assert len(current) == 1
    assert "Plan" in current[0]
