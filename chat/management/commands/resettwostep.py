"""`manage.py resettwostep`: remove the second factors of a user who has lost them."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from chat.management.data_command import DataCommand
from chat.models import User
from chat.services.people import second_factor


class Command(DataCommand):
    help = "Remove a user's authenticator app, passkeys and recovery codes, and sign them out everywhere."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", help="the user name")

    def handle(self, *args: Any, username: str, **options: Any) -> str:
        user = User.objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"There is no user {username!r}.")
        if not second_factor.reset(user=user, author=None):
            return f"{username} has no two-step verification."
        return f"Two-step verification of {username} was reset. They can sign in and set it up again."
