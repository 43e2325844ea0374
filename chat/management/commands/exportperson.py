"""`manage.py exportperson`: write all data of one user into an archive."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from chat.errors import ServiceError
from chat.management import private_files
from chat.management.data_command import DataCommand
from chat.management.paths import explained
from chat.models import User
from chat.transfer.public import export_person


class Command(DataCommand):
    help = "Export all data of a user as a ZIP archive, as the user can do in the settings."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", metavar="NAME", help="the user name")
        parser.add_argument("--to", metavar="FILE", help="the file to write; default: NAME.zip")

    def handle(self, *args: Any, name: str = "", to: str | None = None, **options: Any) -> str:
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"There is no user {name!r}.")
        place = Path(to or f"{name}.zip")
        try:
            with private_files.create(place) as file:
                file.writelines(export_person(user=user, author=None))
        except ServiceError as refused:
            place.unlink()
            raise CommandError(str(refused)) from None
        except OSError as error:
            raise CommandError(f"Cannot write {explained(error, place, makes_new=True)}") from error
        return f"Exported to {place}."
