"""Django's test client with the login of a user."""

from __future__ import annotations

from django.test import Client

from chat.models import User


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client
