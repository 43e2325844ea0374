"""Fixtures for tests of the API: a session, and users with tokens."""

from __future__ import annotations

import pytest

from chat.models import Session, SessionRole, User
from chat.services.sessions.lifecycle import create_session
from tests.api.asking import Asker, token_of
from tests.support.testing_node import let_in


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana, title="Plan")


@pytest.fixture
def asker(ana: User) -> Asker:
    """Ana's program with a token for reading and writing."""
    return Asker(token_of(ana))


@pytest.fixture
def reader(bo: User, session: Session) -> Asker:
    """Bo's program; Bo is a viewer of the session."""
    let_in(session, bo, SessionRole.VIEWER)
    return Asker(token_of(bo))
