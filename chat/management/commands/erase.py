"""`manage.py erase`: permanently erase a session or a user."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from typing import Any

from django.core.management.base import CommandError

from chat.errors import ServiceError
from chat.management.commands.purge import describe
from chat.management.data_command import DataCommand
from chat.models import Erasure, Session, User
from chat.services.deletion import overwriting, requests, users


class Command(DataCommand):
    help = "Permanently erase a session or a user, with all rows, revisions, files and drafts. This cannot be undone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        kinds = parser.add_subparsers(dest="kind", required=True)
        session = kinds.add_parser("session", help="erase a session, including a deleted one; its forks are kept")
        session.add_argument("name", metavar="ID", help="the session id, as in its URL")
        person = kinds.add_parser(
            "person", help="erase an account, its sessions, and its texts in other users' sessions"
        )
        person.add_argument("name", metavar="NAME", help="the user name")
        for each in (session, person):
            each.add_argument("--yes", action="store_true", help="do not ask for confirmation")

    def handle(self, *args: Any, kind: str = "", name: str = "", yes: bool = False, **options: Any) -> str:
        try:
            erasures = self._session(name, yes) if kind == "session" else [self._person(name, yes)]
        except ServiceError as refused:
            raise CommandError(str(refused)) from None
        counts: Counter[str] = Counter()
        for erasure in erasures:
            requests.carry_out(erasure)
            counts.update(erasure.counts)
        overwriting.overwrite_deleted()
        return f"Erased: {describe(counts)}. Earlier backups still contain it."

    def _session(self, session_id: str, yes: bool) -> list[Erasure]:
        session = Session.objects.filter(pk=session_id).first()
        if session is None:
            raise CommandError(f"There is no session {session_id!r}.")
        plan = requests.plan_session(session)
        below = f"{plan.subsessions} subsessions, " if plan.subsessions else ""
        self._ask(
            f"Session {session_id} of {session.owner} will be erased, with {below}{plan.messages} messages, "
            f"{plan.revisions} revisions and {plan.files} files. {plan.forks} forks will be kept.",
            session_id,
            yes,
        )
        return requests.request_sessions(session_id=session_id, author=None)

    def _person(self, username: str, yes: bool) -> Erasure:
        user = User.objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"There is no user {username!r}.")
        plan = users.plan(user)
        lines = [f"The account {username} will be erased, with {plan.sessions} sessions."]
        lines += [f"Session {session.pk} will be kept and transferred to {heir}." for session, heir in plan.handed_over]
        lines += [f"{heir} will become an owner of the workspace {workspace}." for workspace, heir in plan.workspaces]
        lines += [
            f"In other users' sessions, the text of {plan.messages} messages and {plan.files} files will be erased."
        ]
        self._ask("\n".join(lines), username, yes)
        return requests.request_user(user=user, author=None)

    def _ask(self, words: str, name: str, yes: bool) -> None:
        self.stdout.write(words)
        if yes:
            return
        try:
            answer = input(f"This cannot be undone. Type {name} to confirm: ").strip()
        except EOFError:
            raise CommandError("Nothing was erased. Without a terminal, confirm with --yes.") from None
        if answer != name:
            raise CommandError("Nothing was erased.")
