"""The users of a session, as scripts fetch them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from chat.models import Session, User
from chat.services.people import members_agents
from chat.services.people.members_agents import AgentSettings
from chat.services.sessions.agents import add_agent
from tests.support.testing_node import let_in, person

pytestmark = pytest.mark.django_db


def test_people_of_a_session_are_listed(
    signed_in: Callable[[User], Client], ana: User, bo: User, session: Session
) -> None:
    """UI-09: the list has the users who can be mentioned, the owner first, and no others of the workspace."""
    let_in(session, bo, "viewer")
    person("Cem")
    answer = signed_in(bo).get(reverse("session-people", args=[session.pk]))
    listed = [(who["id"], who["name"], who["username"], who["role"]) for who in answer.json()["people"]]
    assert listed == [(ana.pk, "Ana", "ana", "owner"), (bo.pk, "Bo", "bo", "viewer")]
    assert answer.json()["people"][0]["initials"] == "AN"
    assert answer.json()["people"][0]["color"].startswith("c")
    assert answer.json()["people"][0]["picture"] == ""


def test_agents_that_can_be_added_are_listed_for_those_who_may(
    signed_in: Callable[[User], Client], ana: User, bo: User, session: Session
) -> None:
    """RUN-17: the list has the agents that are not in the session yet. Viewers get none."""
    row = members_agents.make(author=ana, workspace_id=session.workspace_id, given=AgentSettings("Writer"))
    let_in(session, bo, "viewer")

    def absent(user: User) -> list[str]:
        answer = signed_in(user).get(reverse("session-people", args=[session.pk]))
        return [agent["name"] for agent in answer.json()["absent"]]

    assert absent(bo) == []
    assert row.name in absent(ana)
    add_agent(session=session, author=ana, agent=row.name)
    assert row.name not in absent(ana)
