"""The files of a workspace that a session's agent may use, and their content."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import ClassVar, TypeVar

from django.core.files.base import File as StoredFile
from django.core.files.storage import default_storage
from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Lower
from django.utils.translation import gettext as _

from agents.errors import ToolError
from agents.knowledge import File, Passage
from agents.loop import Agent
from agents.registry import AgentPreset
from agents.threads import in_thread
from agents.toolbox.knowledge import knowledge_tools
from agents.tools import Tool
from chat import ids
from chat.access import sharing_workspace, workspace_where, workspaces_where
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
    """Return the files of a workspace, sorted by name, without removed ones."""
    return _present(KnowledgeFile.objects.filter(workspace=workspace_id))


def files_for(session: Session) -> QuerySet[KnowledgeFile]:
    """Return the files that can be chosen for a session, sorted by name; none if its owner has left the workspace."""
    return _present(KnowledgeFile.objects.filter(workspace__in=sharing_workspace(session)))


def _present(files: QuerySet[KnowledgeFile]) -> QuerySet[KnowledgeFile]:
    return files.filter(removed_at__isnull=True).select_related("added_by").order_by(Lower("name"), "name")


def removed_from(workspace_id: int) -> QuerySet[KnowledgeFile]:
    """Return the removed files of a workspace, which can be restored, the last removed first."""
    files = KnowledgeFile.objects.filter(workspace=workspace_id, removed_at__isnull=False)
    return files.select_related("added_by").order_by("-removed_at")


def files_of(user: User, workspace_id: int, *, removed: bool = False) -> QuerySet[KnowledgeFile]:
    """Return the files of a workspace of which the user is a member. Raise NoSuchWorkspace, Forbidden."""
    workspace = workspace_where(user, Permission.SEE_MEMBERS, workspace_id)
    return removed_from(workspace.pk) if removed else files_in(workspace.pk)


def search(user: User, workspace_id: int, query: str, most: int) -> list[Passage]:
    """Search all files of a workspace of which the user is a member, as agents do. Raise ServiceError."""
    files = {each.pk: each for each in files_of(user, workspace_id)}
    spend("searches", user.pk)
    return _found(FullText(), query, {pk: File(pk, each.name, each.passage_count) for pk, each in files.items()}, most)


def passages_of(file: KnowledgeFile, start: int, most: int) -> list[KnowledgePassage]:
    """Return passages of a file in order, from number `start` on."""
    return list(KnowledgePassage.objects.filter(file=file, number__gte=start).order_by("number")[:most])


def fetch(user: User, file_id: str, *, removed: bool = False) -> KnowledgeFile:
    """Return a file of a workspace of which the user is a member; with `removed`, a removed file, too.

    Raise NoSuchKnowledgeFile.
    """
    if not ids.may_be_one(file_id):
        raise NoSuchKnowledgeFile
    mine = workspaces_where(user, Permission.SEE_MEMBERS)
    found = KnowledgeFile.objects.filter(pk=file_id, workspace__in=mine)
    file = found.select_related("added_by", "workspace").first()
    if file is None or (file.removed_at and not removed):
        raise NoSuchKnowledgeFile
    return file


def open_original(file: KnowledgeFile) -> StoredFile[bytes]:
    """Open the original file. Raise NoSuchKnowledgeFile if it is missing."""
    try:
        return default_storage.open(file.file.name or "")
    except FileNotFoundError:
        raise NoSuchKnowledgeFile from None


def select_files(files: Iterable[KnowledgeFile], entries: Collection[str]) -> list[KnowledgeFile]:
    """Return the files that entries select by id, by name, or by a pattern of names."""
    return [
        each
        for each in files
        if any(entry in (each.pk, each.name) or fnmatchcase(each.name, entry) for entry in entries)
    ]


def checked_choice(session: Session, entries: Iterable[str]) -> list[str]:
    """Check a choice of files for a session: their ids, `*`, or entries of its agent. Return it. Raise Invalid."""
    wanted = list(dict.fromkeys(entries))
    known = {ALL, *presets.agent_copy(session).knowledge}
    if not known.issuperset(wanted):
        known |= set(files_for(session).values_list("pk", flat=True))
    if unknown := [each for each in wanted if each not in known]:
        raise Invalid(_("The workspace has no file “%(file)s”.") % {"file": unknown[0]})
    return wanted


def with_knowledge(agent: Agent, session: Session, entries: Collection[str]) -> Agent:
    """Return an agent with the tools for the files that entries select, if there are any files."""
    files = _offered_files(session, entries)
    if not files:
        return agent
    return replace(agent, knowledge=ChosenFiles(files), tools=(*agent.tools, *knowledge_tools(files)))


def tools_of(session: Session, preset: AgentPreset, names: Collection[str] | None = None) -> tuple[Tool, ...]:
    """Return the present tools of an agent of the session or, for a past request, its tools with these `names`."""
    own = registry().usable_tools(preset.tools if names is None else names, preset.servers)
    more = knowledge_tools(_offered_files(session, preset.knowledge))
    return (*own, *(each for each in more if names is None or each.name in names))


def _offered_files(session: Session, entries: Collection[str]) -> list[File]:
    """Return the files that entries select; none in a session without tools. Without entries there is no query."""
    if not entries or session.mode == Session.Mode.CHAT:
        return []
    return [File(each.pk, each.name, each.passage_count) for each in select_files(files_for(session), entries)]


class ChosenFiles:
    """The files that an agent uses, for its tools. A file that was removed since is no longer found."""

    def __init__(self, files: Sequence[File], index: PassageIndex | None = None) -> None:
        self.files = files
        self._index = index or FullText()

    async def search(self, query: str, most: int, file: str = "") -> list[Passage]:
        asked = [self._file_named(file)] if file else self.files
        files = {each.id: each for each in asked}
        return await in_thread(_closing, lambda: _found(self._index, query, files, most))

    async def read(self, file: str, start: int, most: int) -> list[Passage]:
        asked = self._file_named(file)
        return await in_thread(_closing, lambda: self._passages(asked, start, most))

    def _file_named(self, name: str) -> File:
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
    """Do work with the database in a separate thread, and close the thread's connection, as nothing else would."""
    try:
        return work()
    finally:
        connection.close()
