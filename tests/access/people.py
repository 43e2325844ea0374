"""Everybody who may stand before a session: each with their own way to it, or none."""

from __future__ import annotations

import pytest

from chat.models import Role, Session, User, Workspace
from chat.services import sharing
from chat.services.sessions import create_session
from tests.support.house import person

OWNER, EDITOR, VIEWER = "owner", "editor", "viewer"
STRANGER = "stranger"  # a member of the workspace whom nobody has let in
OUTSIDER = "outsider"  # signed in, of another workspace
STAFF = "staff"  # an administrator whom nobody has let in
LEFT = "left"  # an editor who is no member of the workspace any more
ANONYMOUS = "anonymous"
SIGNED_IN = (OWNER, EDITOR, VIEWER, STRANGER, OUTSIDER, STAFF, LEFT)
STRANGERS = (STRANGER, OUTSIDER, STAFF, LEFT)
EVERYBODY = (*SIGNED_IN, ANONYMOUS)


class People:
    """A session and everybody around it."""

    def __init__(self, workspace: Workspace) -> None:
        self.users: dict[str, User | None] = {
            name: person(name.title(), workspace) for name in (OWNER, EDITOR, VIEWER, STRANGER, LEFT)
        }
        self.users[OUTSIDER] = person("Outsider")
        self.users[STAFF] = User.objects.create_superuser("staff", password="correct horse")
        self.users[ANONYMOUS] = None
        self.session: Session = create_session(owner=self[OWNER], workspace=workspace, title="Plan")
        for name, role in ((EDITOR, Role.EDITOR), (VIEWER, Role.VIEWER), (LEFT, Role.EDITOR)):
            sharing.share(session=self.session, author=self[OWNER], user=self[name], role=role)
        self[LEFT].memberships.all().delete()

    def __getitem__(self, name: str) -> User:
        user = self.users[name]
        if user is None:
            raise KeyError(name)
        return user


@pytest.fixture
def people(workspace: Workspace) -> People:
    return People(workspace)
