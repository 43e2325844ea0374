"""`manage.py changepassword`: Django's command, which also ends the user's logins and logs the event."""

from __future__ import annotations

import getpass
from typing import Any

from django.contrib.auth.management.commands.changepassword import Command as DjangoCommand

from chat.management.data_command import DataCommand
from chat.models import User
from chat.services.people import accounts


class Command(DataCommand, DjangoCommand):
    def handle(self, *args: Any, **options: Any) -> Any:
        name = options["username"] or getpass.getuser()
        result = super().handle(*args, **{**options, "username": name})
        accounts.password_was_changed(user=User.objects.get(username=name), author=None)
        return result
