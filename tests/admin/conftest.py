"""Fixtures for tests of the admin: staff with various permissions, and another user's private session."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from chat.models import Session, User
from chat.services.sessions.lifecycle import create_session
from tests.support.signed_in import signed_in

MANAGES = ("view_session", "change_session", "view_chatmessage", "change_chatmessage")


@pytest.fixture
def staff_with(db: None) -> Callable[..., User]:
    """A function that creates a staff user with only these permissions."""

    def make(*permissions: str, name: str = "mia") -> User:
        user = User.objects.create_user(name, display_name=name.title(), is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions, content_type__app_label="chat"))
        return user

    return make


@pytest.fixture
def mia(staff_with: Callable[..., User]) -> User:
    """Mia, a session manager."""
    return staff_with(*MANAGES)


@pytest.fixture
def admin(mia: User) -> Client:
    """Mia's client."""
    return signed_in(mia)


@pytest.fixture
def session(ana: User) -> Session:
    """A private session of Ana."""
    return create_session(owner=ana, title="Plan")
