"""`manage.py signinlink`: print a one-time sign-in link, for an administrator or a user who forgot the password."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from chat.errors import ServiceError
from chat.management.addresses import link_url
from chat.management.data_command import DataCommand
from chat.models import User
from chat.services.people import accounts


class Command(DataCommand):
    help = "Print a one-time sign-in link for a user, valid for a day. It replaces the user's earlier links."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", nargs="?", help="the user name; default: the first administrator")

    def handle(self, *args: Any, username: str | None = None, **options: Any) -> str:
        return link_url(accounts.sign_in_link(user=self._user(username)))

    def _user(self, username: str | None) -> User:
        if username == "":  # such as from an empty variable in a script
            raise CommandError("The user name is empty. Leave it out for the first administrator.")
        try:
            return User.objects.get(username=username, is_active=True) if username else accounts.first_administrator()
        except User.DoesNotExist:
            raise CommandError(f"There is no active user {username!r}.") from None
        except ServiceError as refused:
            raise CommandError(str(refused)) from None
