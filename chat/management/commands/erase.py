"""`manage.py erase`: erase a session or a person for good."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from chat.errors import ServiceError
from chat.management.commands.purge import described
from chat.management.data_command import DataCommand
from chat.models import Erasure, Session, User
from chat.services.deletion import overwriting, requests, users


class Command(DataCommand):
    help = "Erase a session or a person for good: rows, revisions, files, drafts. There is no way back."

    def add_arguments(self, parser: ArgumentParser) -> None:
        kinds = parser.add_subparsers(dest="kind", required=True)
        session = kinds.add_parser("session", help="erase a session, also one that is deleted; its forks stay")
        session.add_argument("name", metavar="ID", help="the session's id, as in its address")
        person = kinds.add_parser("person", help="erase an account, its sessions, and its words in those of others")
        person.add_argument("name", metavar="NAME", help="the user name with which they sign in")
        for each in (session, person):
            each.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *args: Any, kind: str = "", name: str = "", yes: bool = False, **options: Any) -> str:
        try:
            erasure = self._session(name, yes) if kind == "session" else self._person(name, yes)
        except ServiceError as refused:
            raise CommandError(str(refused)) from None
        requests.carry_out(erasure)
        overwriting.overwrite_deleted()
        return f"Erased: {described(erasure.counts)}. Backups made before still hold it."

    def _session(self, session_id: str, yes: bool) -> Erasure:
        session = Session.objects.filter(pk=session_id).first()
        if session is None:
            raise CommandError(f"There is no session {session_id!r}.")
        plan = requests.plan_session(session)
        self._ask(
            f"The session {session_id} of {session.owner} goes, with {plan.messages} messages, {plan.revisions} "
            f"revisions and {plan.files} files. {plan.forks} forks of it stay.",
            session_id,
            yes,
        )
        return requests.request_session(session_id=session_id, author=None)

    def _person(self, username: str, yes: bool) -> Erasure:
        user = User.objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"There is no user {username!r}.")
        plan = users.plan(user)
        lines = [f"The account {username} goes, with {plan.sessions} sessions."]
        lines += [f"{session.pk} stays, and belongs to {heir} from now on." for session, heir in plan.handed_over]
        lines += [f"In sessions of others, {plan.messages} messages lose their words, with {plan.files} files."]
        self._ask("\n".join(lines), username, yes)
        return requests.request_user(user=user, author=None)

    def _ask(self, words: str, name: str, yes: bool) -> None:
        self.stdout.write(words)
        if not yes and input(f"There is no way back. Type {name} to erase it: ").strip() != name:
            raise CommandError("Nothing was erased.")
