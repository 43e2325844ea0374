"""`manage.py serve`: serve Parley completely, in one process on one machine."""

from __future__ import annotations

from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.core.management.base import BaseCommand

from chat.errors import ServiceError
from chat.management import addresses
from chat.management.migration_lock import one_at_a_time
from chat.management.startup import check_configuration, prepare_database
from chat.services.people import accounts
from config import service_manager
from config.descriptors import raise_descriptor_limit
from config.listening import listen


class Command(BaseCommand):
    help = "Prepare the database, then serve Parley and run the agents."
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django's declaration; handle() runs the checks

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._serve()
        except KeyboardInterrupt:
            raise SystemExit(130) from None
        finally:
            addresses.forget()

    def _serve(self) -> None:
        raise_descriptor_limit()
        check_configuration(self.stderr.write)
        try:
            listening = listen(settings.HOST, settings.PORT)
        except OSError as error:
            problem = f"Parley cannot listen on {settings.HOST}:{settings.PORT}: {error.strerror}."
            raise SystemExit(f"{problem} Set HOST and PORT to an address that is free.") from error
        prepare_database(self._report)
        self.port = listening.getsockname()[1]
        if settings.WEB_SERVER == "daphne":
            from chat.servers.daphne_server import serve  # imported here, because it installs its own event loop
        else:
            from chat.servers.uvicorn_server import serve
        if not serve(listening, self._announce):
            raise SystemExit(1)

    def _report(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    async def _announce(self) -> None:
        addresses.remember(self.port)
        self._report(await database_sync_to_async(self._welcome)())
        self._watchdog = await service_manager.ready()

    def _welcome(self) -> str:
        """Return the line with the address of Parley. It has a sign-in link if no administrator can sign in otherwise.

        If several servers share a log, many people may read it. Then only the command `signinlink` prints links.
        """
        home = addresses.home_url(self.port)
        try:
            with one_at_a_time(lambda: self._report("Waiting for another server to finish preparing the database.")):
                administrator = accounts.first_administrator()
        except ServiceError as refused:
            return f"Parley is ready at {home} ({refused})"
        if accounts.an_administrator_can_sign_in():
            return f"Parley is ready at {home}"
        if settings.REDIS_URL or settings.RUNNER == "none":
            return f"Parley is ready at {home} (manage.py signinlink prints a sign-in link)"
        token = accounts.sign_in_link(user=administrator, keeps_last=True)
        return f"Parley is ready. Sign in with this one-time link: {addresses.link_url(token, self.port)}"
