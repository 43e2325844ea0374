"""`manage.py endlogins`: sign out all users, for example after a backup was restored."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from chat.management.amounts import amount
from chat.management.data_command import DataCommand
from chat.services.people import accounts


class Command(DataCommand):
    help = (
        "Sign out all users in all browsers, and revoke all one-time sign-in links. Use it after restoring a backup, "
        "which brings back logins, links and tokens that were revoked after it was made."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tokens", action="store_true", help="also revoke all API tokens and invitation links")

    def handle(self, *args: Any, tokens: bool = False, **options: Any) -> str:
        ended = accounts.end_all_logins(with_tokens=tokens)
        logins, revoked = amount(ended["logins"], "login"), amount(ended["tokens"], "API token")
        return f"Ended {logins} and {revoked}." if tokens else f"Ended {logins}."
