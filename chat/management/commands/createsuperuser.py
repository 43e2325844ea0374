"""`manage.py createsuperuser`: Django's command, which needs the database of a server."""

from __future__ import annotations

from django.contrib.auth.management.commands.createsuperuser import Command as DjangoCommand

from chat.management.data_command import DataCommand


class Command(DataCommand, DjangoCommand):
    pass
