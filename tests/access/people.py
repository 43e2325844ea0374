"""The actors of the access tests: users with every kind of access to a session, or none."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from chat.models import AgentPreset, ChatMessage, Membership, Session, SessionRole, User, Workspace
from chat.services.people import sharing
from chat.services.sessions.lifecycle import create_session
from tests.support.testing_node import person

OWNER, EDITOR, VIEWER = "owner", "editor", "viewer"
STRANGER = "stranger"  # a member of the workspace without access to the session
ADMIN = "admin"  # an admin of the workspace without access to the session
OUTSIDER = "outsider"  # signed in, a member of another workspace only
STAFF = "staff"  # an administrator without access to the session
LEFT = "left"  # an editor who is no longer a member of the workspace
GUEST = "guest"  # an editor who joined by an invitation link, without another workspace
ANONYMOUS = "anonymous"
SIGNED_IN = (OWNER, EDITOR, VIEWER, GUEST, STRANGER, ADMIN, OUTSIDER, STAFF, LEFT)
STRANGERS = (STRANGER, ADMIN, OUTSIDER, STAFF, LEFT)
EVERYONE = (*SIGNED_IN, ANONYMOUS)
Status = int | str
Expected = dict[str, Status]
MESSAGE = "m_" + "1" * 24  # a message of a user in the session
SHARED_AGENT, OWN_AGENT = "shared-agent", "own-agent"  # agents of the owner


@dataclass(frozen=True)
class Answers:
    """The answers of a kind of client to each actor; `anonymous` is the answer without a sign-in."""

    anonymous: Status

    def signed_in(self, status: Status) -> Expected:
        return {**dict.fromkeys(SIGNED_IN, status), ANONYMOUS: self.anonymous}

    def seeing(self, status: Status) -> Expected:
        """Return the answers to a request that all users of the session may make."""
        return {**self.signed_in(404), OWNER: status, EDITOR: status, VIEWER: status, GUEST: status}

    def editing(self, status: Status) -> Expected:
        """Return the answers to a request that editors may make; other users of the session are refused as
        forbidden."""
        return {**self.seeing(403), OWNER: status, EDITOR: status, GUEST: status}

    def choosing(self, status: Status) -> Expected:
        """Return the answers to a request that configures the session, which editors who are not guests may make."""
        return {**self.editing(status), GUEST: 403}

    def members(self, status: Status) -> Expected:
        """Return the answers to a request that members of the workspace may make, with or without access to the
        session."""
        return {**self.signed_in(404), **dict.fromkeys((OWNER, EDITOR, VIEWER, STRANGER, ADMIN), status)}

    def managing(self, status: Status) -> Expected:
        """Return the answers to a request that admins of the workspace may make; other members are refused as
        forbidden."""
        return {**self.members(403), ADMIN: status}

    def owning(self, status: Status) -> Expected:
        """Return the answers to a request that the owner may make; other users of the session are refused as
        forbidden."""
        return {**self.seeing(403), OWNER: status}


class People:
    """A session and one user of each kind."""

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
        token = sharing.invite(session=self.session, author=self[OWNER], role=SessionRole.EDITOR)[1]
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
