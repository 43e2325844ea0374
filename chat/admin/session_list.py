"""The list of all sessions: quick on a hundred thousand of them, whatever is searched, filtered and counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.contrib.admin import DateFieldListFilter, SimpleListFilter
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Page, Paginator
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from chat.admin.states import RUN_STATES, STATUSES
from chat.models import TURN_MARKERS, ChatMessage, Session

if TYPE_CHECKING:
    Pages = Paginator[Session]
else:
    Pages = Paginator

# As many as one takes in; further ones are found by the search.
MOST_CHOICES = 20


class TwoSteps(Pages):
    """Finds out first which sessions stand on a page, by their ids alone, then reads these: nothing else is sorted."""

    def _get_page(self, found: QuerySet[Session], *args: Any, **kwargs: Any) -> Page[Session]:
        return Page(in_order(list(found.values_list("pk", flat=True))), *args, **kwargs)

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        return rows.order_by().count() if isinstance(rows, QuerySet) else len(rows)


def in_order(ids: list[str]) -> list[Session]:
    """Read sessions for the list, with the number of their messages as `message_count`; three queries."""
    rows = Session.objects.select_related("owner", "workspace", "run").defer("system_prompt", "config")
    sessions = rows.in_bulk(ids)
    live = ChatMessage.objects.filter(session__in=ids, sequence__isnull=False).exclude(type__in=TURN_MARKERS)
    counts = dict(live.order_by().values_list("session").annotate(Count("pk")))
    for session in sessions.values():
        session.message_count = counts.get(session.pk, 0)  # type: ignore[attr-defined]  # as an annotation has it
    return [sessions[pk] for pk in ids if pk in sessions]


class SessionList(ChangeList):
    """All pages come from the paginator, the only one too; what can be filtered stays what it was."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if not self.multi_page:
            self.result_list = self.paginator.page(1).object_list


class ChosenFilter(SimpleListFilter):
    """A filter by one column with known values."""

    column = ""
    choices_known: list[tuple[str, Any]] = []  # noqa: RUF012  # as in Django

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return self.choices_known

    def queryset(self, request: HttpRequest, queryset: QuerySet[Session]) -> QuerySet[Session]:
        value = self.value()
        if value is None:
            return queryset
        return queryset.filter(**{self.column: value}) if value in dict(self.choices_known) else queryset.none()


class StatusFilter(ChosenFilter):
    title = _("status")
    parameter_name = column = "status"
    choices_known = STATUSES


class RunStateFilter(ChosenFilter):
    title = _("state of the run")
    parameter_name, column = "run", "run__state"
    choices_known = RUN_STATES


class BusiestFilter(SimpleListFilter):
    """A filter by those values of a column that most sessions have, and the one that is chosen."""

    column, shown = "", ""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        counted = Session.objects.values_list(self.column).annotate(sessions=Count("*")).order_by("-sessions")
        values = [value for value, _count in counted[:MOST_CHOICES] if value not in ("", None)]
        chosen = self.used_parameters.get(str(self.parameter_name))
        if chosen and chosen not in map(str, values) and self._may_be_one(chosen):
            values.append(chosen)
        return sorted(self._named(values), key=lambda choice: choice[1].casefold())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Session]) -> QuerySet[Session]:
        value = self.value()
        if value is None:
            return queryset
        return queryset.filter(**{self.column: value}) if self._may_be_one(value) else queryset.none()

    def _may_be_one(self, value: str) -> bool:
        return "\0" not in value

    def _named(self, values: list[Any]) -> Iterator[tuple[str, str]]:
        yield from ((str(value), str(value)) for value in values)


class RelatedFilter(BusiestFilter):
    """The same for a column that names another row."""

    def _may_be_one(self, value: str) -> bool:
        return value.isascii() and value.isdigit() and len(value) < 16

    def _named(self, values: list[Any]) -> Iterator[tuple[str, str]]:
        related = Session._meta.get_field(self.column.removesuffix("_id")).related_model
        for row in related.objects.filter(pk__in=values):  # type: ignore[union-attr]  # a foreign key has one
            yield str(row.pk), str(row)


class WorkspaceFilter(RelatedFilter):
    title = _("workspace")
    parameter_name, column = "workspace", "workspace_id"


class OwnerFilter(RelatedFilter):
    title = _("owner")
    parameter_name, column = "owner", "owner_id"


class ModelFilter(BusiestFilter):
    title = _("model")
    parameter_name = column = "model"


class LastActiveFilter(DateFieldListFilter):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = _("last active")


class BegunFilter(DateFieldListFilter):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = _("begun")
