"""Which files of a workspace a session's agent may use, and what is in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import ClassVar, TypeVar

from django.core.files.base import File as StoredFile
from django.core.files.storage import default_storage
from django.db import connection
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents.errors import ToolError
from agents.knowledge import File, Passage
from agents.loop import Agent
from agents.registry import AgentPreset
from agents.threads import in_thread
from agents.toolbox.knowledge import knowledge_tools
from agents.tools import Tool
from chat import ids
from chat.access import team_of, workspace_where, workspaces_where
from chat.agents_setup import registry
from chat.errors import Invalid, ServiceError
from chat.limits.rates import spend
from chat.models import KnowledgeFile, KnowledgePassage, Session, User
from chat.permissions import Permission
from chat.queries import presets
from chat.queries.knowledge_index import FullText, PassageIndex

ALL = "*"
Result = TypeVar("Result")


class NoSuchKnowledgeFile(ServiceError):
    CODE: ClassVar[str] = "no_such_file"

    def __init__(self) -> None:
        super().__init__(self.CODE, _("This file no longer exists."))


def files_in(workspace_id: int) -> QuerySet[KnowledgeFile]:
    """Return the files of a workspace by name, without removed ones."""
    return _present(KnowledgeFile.objects.filter(workspace=workspace_id))


def files_for(session: Session) -> QuerySet[KnowledgeFile]:
    """Return the files that people may choose for a session, by name; none once its owner has left the workspace."""
    return _present(KnowledgeFile.objects.filter(workspace__in=team_of(session)))


def _present(files: QuerySet[KnowledgeFile]) -> QuerySet[KnowledgeFile]:
    return files.filter(removed_at__isnull=True).select_related("added_by").order_by("name")


def removed_from(workspace_id: int) -> QuerySet[KnowledgeFile]:
    """Return the removed files of a workspace, which can be restored, the last removed first."""
    files = KnowledgeFile.objects.filter(workspace=workspace_id, removed_at__isnull=False)
    return files.select_related("added_by").order_by("-removed_at")


def files_of(user: User, workspace_id: int, *, removed: bool = False) -> QuerySet[KnowledgeFile]:
    """Return the files of a workspace of which the user is a member. Raises NoSuchWorkspace, Forbidden."""
    workspace = workspace_where(user, Permission.SEE_MEMBERS, workspace_id)
    return removed_from(workspace.pk) if removed else files_in(workspace.pk)


def search(user: User, workspace_id: int, query: str, most: int) -> list[Passage]:
    """Search all files of a workspace of which the user is a member, as agents do. Raises ServiceError."""
    files = {each.pk: each for each in files_of(user, workspace_id)}
    spend("searches", user.pk)
    return _found(FullText(), query, {pk: File(pk, each.name, each.passage_count) for pk, each in files.items()}, most)


def passages_of(file: KnowledgeFile, start: int, most: int) -> list[KnowledgePassage]:
    """Return passages of a file in order, from number `start` on."""
    return list(KnowledgePassage.objects.filter(file=file, number__gte=start).order_by("number")[:most])


def fetch(user: User, file_id: str, *, removed: bool = False) -> KnowledgeFile:
    """Fetch a file of a workspace of which the user is a member; with `removed`, a removed one, too.

    Raises NoSuchKnowledgeFile.
    """
    if not ids.may_be_one(file_id):
        raise NoSuchKnowledgeFile
    mine = workspaces_where(user, Permission.SEE_MEMBERS)
    found = KnowledgeFile.objects.filter(pk=file_id, workspace__in=mine)
    file = found.select_related("added_by", "workspace").first()
    if file is None or (file.removed_at and not removed):
        raise NoSuchKnowledgeFile
    return file


def opened(file: KnowledgeFile) -> StoredFile[bytes]:
    """Open the file itself. Raises NoSuchKnowledgeFile if it is lost."""
    try:
        return default_storage.open(file.file.name or "")
    except FileNotFoundError:
        raise NoSuchKnowledgeFile from None


def chosen(files: Iterable[KnowledgeFile], entries: Collection[str]) -> list[KnowledgeFile]:
    """Return the files that entries name: by id, by name, or by a pattern of names."""
    return [
        each
        for each in files
        if any(entry in (each.pk, each.name) or fnmatchcase(each.name, entry) for entry in entries)
    ]


def checked_choice(session: Session, entries: Iterable[str]) -> list[str]:
    """Return what people choose for a session: ids of files there, `*`, or what its agent names. Raises Invalid."""
    wanted = list(dict.fromkeys(entries))
    known = {ALL, *presets.kept(session).knowledge}
    if not known.issuperset(wanted):
        known |= set(files_for(session).values_list("pk", flat=True))
    if unknown := [each for each in wanted if each not in known]:
        raise Invalid(_("The workspace has no file “%(file)s”.") % {"file": unknown[0]})
    return wanted


def with_knowledge(agent: Agent, session: Session, entries: Collection[str]) -> Agent:
    """Give an agent the tools for the files that entries name; those of a session without tools get none."""
    files = _offered(session, entries)
    if not files:
        return agent
    return replace(agent, knowledge=ChosenFiles(files), tools=(*agent.tools, *knowledge_tools(files)))


def tools_of(session: Session, preset: AgentPreset, names: Collection[str] | None = None) -> tuple[Tool, ...]:
    """Return the tools of an agent of the session as it has them now; of past ones, those with these names."""
    own = registry().usable_tools(preset.tools if names is None else names, preset.servers)
    more = knowledge_tools(_offered(session, preset.knowledge))
    return (*own, *(each for each in more if names is None or each.name in names))


def _offered(session: Session, entries: Collection[str]) -> list[File]:
    """Return the files that entries name, if the session's agent has tools at all; no query without entries."""
    if not entries or session.mode == Session.Mode.CHAT:
        return []
    return [File(each.pk, each.name, each.passage_count) for each in chosen(files_for(session), entries)]


class ChosenFiles:
    """The files that an agent uses, for its tools. A file that is removed since is not found any more."""

    def __init__(self, files: Sequence[File], index: PassageIndex | None = None) -> None:
        self.files = files
        self._index = index or FullText()

    async def search(self, query: str, most: int, file: str = "") -> list[Passage]:
        asked = [self._named(file)] if file else self.files
        files = {each.id: each for each in asked}
        return await in_thread(_closing, lambda: _found(self._index, query, files, most))

    async def read(self, file: str, start: int, most: int) -> list[Passage]:
        asked = self._named(file)
        return await in_thread(_closing, lambda: self._passages(asked, start, most))

    def _named(self, name: str) -> File:
        found = [each for each in self.files if each.name == name]
        found = found or [each for each in self.files if each.name.casefold() == name.strip().casefold()]
        if not found:
            known = ", ".join(each.name for each in self.files[:20])
            raise ToolError(f"There is no file {name!r}. Files: {known}.")
        return found[0]

    def _passages(self, file: File, start: int, most: int) -> list[Passage]:
        rows = KnowledgePassage.objects.filter(file=file.id, file__removed_at__isnull=True, number__gte=start)
        return [_passage(row, {file.id: file}) for row in rows.order_by("number")[:most]]


def _found(index: PassageIndex, query: str, files: dict[str, File], most: int) -> list[Passage]:
    there = KnowledgeFile.objects.filter(pk__in=files, removed_at__isnull=True).values_list("pk", flat=True)
    places = index.find(query, list(there), most)
    rows = KnowledgePassage.objects.in_bulk(places)
    return [_passage(rows[place], files) for place in places if place in rows]


def _passage(row: KnowledgePassage, files: dict[str, File]) -> Passage:
    return Passage(files[row.file_id], row.number, row.page, row.text)


def _closing(work: Callable[[], Result]) -> Result:
    """Work with the database in a thread of its own, whose connection nothing else would close."""
    try:
        return work()
    finally:
        connection.close()
