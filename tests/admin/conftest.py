"""Fixtures for tests of the admin: staff with various permissions, and another user's private session."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from chat.models import Session, User
from chat.services.sessions.lifecycle import create_session

MANAGES = ("view_session", "change_session", "view_chatmessage", "change_chatmessage")


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def staff_with(db: None) -> Callable[..., User]:
    """Create a staff user with these permissions and no others."""

    def make(*permissions: str, name: str = "mia") -> User:
        user = User.objects.create_user(name, display_name=name.title(), is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions, content_type__app_label="chat"))
        return user

    return make


@pytest.fixture
def mia(staff_with: Callable[..., User]) -> User:
    """A session manager."""
    return staff_with(*MANAGES)


@pytest.fixture
def admin(mia: User) -> Client:
    """Mia's browser."""
    return signed_in(mia)


@pytest.fixture
def session(ana: User) -> Session:
    """Ana's private session, shared with no one."""
    return create_session(owner=ana, title="Plan")
