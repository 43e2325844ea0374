"""`manage.py importsessions`: import conversations from files for a user."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import IO, Any

from django.core.management.base import CommandError

from chat.errors import ServiceError
from chat.management.amounts import amount
from chat.management.data_command import DataCommand
from chat.management.people import named_user, named_workspace
from chat.models import User, Workspace
from chat.transfer import public as transfer

# Archives of many years are larger than the limit of the import page.
DEFAULT_MEGABYTES = 2_000


class Command(DataCommand):
    help = (
        "Import conversations from Parley, ChatGPT, Claude, Open WebUI and LibreChat for a user. Without --all or "
        "--only, list the conversations in the files. Exits with 1 if a file or a conversation could not be imported."
    )

    requires_system_checks = "__all__"  # imported sessions are given to agents that are configured

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a JSON or ZIP file")
        parser.add_argument("--owner", required=True, help="the user name of the user who will own the sessions")
        parser.add_argument(
            "--workspace", type=int, help="the id of one of the user's workspaces; default: the current one"
        )
        parser.add_argument("--all", action="store_true", help="import all conversations in the files")
        parser.add_argument(
            "--only",
            type=_indexes,
            action="extend",
            metavar="INDEX",
            help="import only these conversations, such as 0 or 0,3",
        )
        parser.add_argument(
            "--new-ids", action="store_true", help="give sessions new ids, even if a file exported from Parley has some"
        )
        parser.add_argument(
            "--max-mb",
            type=int,
            default=DEFAULT_MEGABYTES,
            help="the largest size of a file, unpacked (default: %(default)s)",
        )

    def handle(
        self, *args: Any, files: list[Path], owner: str, workspace: int | None, max_mb: int, **options: Any
    ) -> None:
        user = named_user(owner)
        place = None if workspace is None else named_workspace(workspace)
        if place is not None and not place.memberships.filter(user=user).exists():
            raise CommandError(f"{owner} is not a member of workspace {workspace}.")
        if options["only"] and len(files) > 1:
            raise CommandError(
                "--only works with one file, because indexes belong to a file. To give several indexes: --only 0,3"
            )
        failed = 0
        for path in files:
            try:
                with path.open("rb") as file:
                    failed += self._one(path, file, user, place, max_mb << 20, options)
            except OSError as error:
                failed += self._fail(f"{path}: {error.strerror}")
            except ServiceError as refused:
                failed += self._fail(f"{path}: {refused.message}")
        if failed:
            raise CommandError(f"{failed} could not be imported.", returncode=1)

    def _one(
        self, path: Path, file: IO[bytes], user: User, workspace: Workspace | None, most: int, options: dict[str, Any]
    ) -> int:
        """Import one file, or list it. Return the number of conversations that failed."""
        if not options["all"] and not options["only"]:
            return self._list(path, file, most)
        outcome = transfer.import_file(
            owner=user,
            workspace=workspace,
            file=file,
            chosen=options["only"],
            keep_ids=not options["new_ids"],
            limits=transfer.OperatorLimits(most),
        )
        for each in outcome.imported:
            self.stdout.write(f"{each.session.pk}\t{each.messages}\t{each.session.title}")
            for note in each.notes:
                self.stdout.write(f"\t{note}")
        for problem in outcome.problems:
            self._fail(problem)
        return len(outcome.problems)

    def _list(self, path: Path, file: IO[bytes], most: int) -> int:
        found = transfer.list_conversations(file, limits=transfer.OperatorLimits(most))
        conversations = amount(len(found.conversations), "conversation")
        self.stdout.write(f"{path}: {conversations}; import them with --all or --only INDEX")
        for each in found.conversations:
            facts = (each.index, each.source, each.began, each.count, each.size, each.title)
            self.stdout.write("\t".join(map(str, facts)))
        for problem in found.problems:
            self._fail(problem)
        return len(found.problems)

    def _fail(self, words: str) -> int:
        self.stderr.write(words)
        return 1


def _indexes(text: str) -> list[int]:
    """Return the numbers in a text such as `0,3`. Raise ArgumentTypeError."""
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not an index; use --only 0, or --only 0,3 for several") from None
