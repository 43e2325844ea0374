"""All users who may open a session: each with their own way to it, or none."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from chat.models import AgentPreset, ChatMessage, Membership, Session, SessionRole, User, Workspace
from chat.services.people import sharing
from chat.services.sessions.lifecycle import create_session
from tests.support.testing_node import person

OWNER, EDITOR, VIEWER = "owner", "editor", "viewer"
STRANGER = "stranger"  # a member of the workspace whom no one has let in
ADMIN = "admin"  # an admin of the workspace whom no one has let in
OUTSIDER = "outsider"  # signed in, of another workspace
STAFF = "staff"  # an administrator whom no one has let in
LEFT = "left"  # an editor who is no member of the workspace any more
GUEST = "guest"  # an editor who came by an invitation link, and is in no other workspace
ANONYMOUS = "anonymous"
SIGNED_IN = (OWNER, EDITOR, VIEWER, GUEST, STRANGER, ADMIN, OUTSIDER, STAFF, LEFT)
STRANGERS = (STRANGER, ADMIN, OUTSIDER, STAFF, LEFT)
EVERYONE = (*SIGNED_IN, ANONYMOUS)
Status = int | str
Expected = dict[str, Status]
MESSAGE = "m_" + "1" * 24  # a user said it in the session
SHARED_AGENT, OWN_AGENT = "shared-agent", "own-agent"  # the owner has made them


@dataclass(frozen=True)
class Face:
    """How a face answers everyone; `anonymous` is what it says to those who are not signed in."""

    anonymous: Status

    def signed_in(self, status: Status) -> Expected:
        return {**dict.fromkeys(SIGNED_IN, status), ANONYMOUS: self.anonymous}

    def seeing(self, status: Status) -> Expected:
        """For everyone in the session."""
        return {**self.signed_in(404), OWNER: status, EDITOR: status, VIEWER: status, GUEST: status}

    def editing(self, status: Status) -> Expected:
        """For those who may write in the session; others who are in it learn that they may not."""
        return {**self.seeing(403), OWNER: status, EDITOR: status, GUEST: status}

    def choosing(self, status: Status) -> Expected:
        """For those who may choose what the session uses: editors who are no guests."""
        return {**self.editing(status), GUEST: 403}

    def members(self, status: Status) -> Expected:
        """For members of the workspace, whether or not they see the session."""
        return {**self.signed_in(404), **dict.fromkeys((OWNER, EDITOR, VIEWER, STRANGER, ADMIN), status)}

    def managing(self, status: Status) -> Expected:
        """For admins of the workspace; other members learn that they may not."""
        return {**self.members(403), ADMIN: status}

    def owning(self, status: Status) -> Expected:
        """For its owner; others who are in it learn that it is not theirs to do."""
        return {**self.seeing(403), OWNER: status}


class People:
    """A session and everyone around it."""

    def __init__(self, workspace: Workspace) -> None:
        self.users: dict[str, User | None] = {
            name: person(name.title(), workspace) for name in (OWNER, EDITOR, VIEWER, STRANGER, ADMIN, LEFT)
        }
        self[ADMIN].memberships.update(role=Membership.Role.ADMIN)
        self.users[OUTSIDER] = person("Outsider")
        self.users[GUEST] = User.objects.create_user(
            "guest", password="correct horse", display_name="Guest", can_own_workspace=False
        )
        self.users[STAFF] = User.objects.create_superuser("staff", password="correct horse")
        self.users[ANONYMOUS] = None
        self.session: Session = create_session(owner=self[OWNER], workspace=workspace, title="Plan")
        for name, role in ((EDITOR, SessionRole.EDITOR), (VIEWER, SessionRole.VIEWER), (LEFT, SessionRole.EDITOR)):
            sharing.share(session=self.session, author=self[OWNER], user=self[name], role=role)
        token = sharing.invite(session=self.session, author=self[OWNER], role=SessionRole.EDITOR)
        sharing.accept(token=token, user=self[GUEST])
        ChatMessage.objects.create(pk=MESSAGE, session=self.session, sequence=1000, role="user", text="Hello")
        for name, is_shared in ((SHARED_AGENT, True), (OWN_AGENT, False)):
            values = {"title": name, "workspace": workspace, "user": self[OWNER], "prompts": ["Hi"]}
            AgentPreset.objects.create(name=name, is_shared=is_shared, **values)
        self[LEFT].memberships.all().delete()

    def __getitem__(self, name: str) -> User:
        user = self.users[name]
        if user is None:
            raise KeyError(name)
        return user


@pytest.fixture
def people(workspace: Workspace) -> People:
    return People(workspace)
