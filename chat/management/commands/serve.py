"""`manage.py serve`: everything that one machine needs, in one process."""

from __future__ import annotations

from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.core import checks
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import DatabaseError

from chat.management.addresses import home_url, link_url
from chat.management.one_at_a_time import one_at_a_time
from chat.services import accounts
from chat.services.errors import Refused


class Command(BaseCommand):
    help = "Prepare the database, then serve the pages and run the agents."
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django declares it so; handle() tells what they find

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._serve()
        except KeyboardInterrupt:
            raise SystemExit(130) from None

    def _serve(self) -> None:
        self._check()
        from chat.management.web_server import listen, serve  # it installs Daphne's event loop

        try:
            listening = listen(settings.HOST, settings.PORT)
        except OSError as error:
            raise SystemExit(_no_address(error)) from error
        self._prepare()
        from config.asgi import application

        self.port = listening.getsockname()[1]
        if not serve(application, listening, self._announce):
            raise SystemExit(1)

    def _check(self) -> None:
        found = [message for message in checks.run_checks() if not message.is_silenced()]
        for message in found:
            self.stderr.write(f"{message.msg} {message.hint or ''}".strip())
        if any(message.is_serious() for message in found):
            raise SystemExit(1)

    def _prepare(self) -> None:
        try:
            with one_at_a_time(self._tell_waiting):
                call_command("migrate", interactive=False, verbosity=0)
        except DatabaseError as error:
            raise SystemExit(f"Parley cannot use its database: {str(error).strip()}") from error

    def _tell_waiting(self) -> None:
        self.stdout.write("Waiting for another server that is preparing the database.")
        self.stdout.flush()

    async def _announce(self) -> None:
        self.stdout.write(await database_sync_to_async(self._welcome)())
        self.stdout.flush()

    def _welcome(self) -> str:
        try:
            with one_at_a_time(self._tell_waiting):
                administrator = accounts.first_administrator()
        except Refused as refused:
            return f"Parley is ready at {home_url(self.port)} ({refused})"
        token = accounts.sign_in_link(user=administrator)
        return f"Parley is ready. Sign in with this link, once: {link_url(token, self.port)}"


def _no_address(error: OSError) -> str:
    where = f"{settings.HOST}:{settings.PORT}"
    return f"Parley cannot listen on {where}: {error.strerror}. Set HOST and PORT to an address that is free."
