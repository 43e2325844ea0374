"""The list of all sessions: filters, pagination and states. It stays fast with a hundred thousand sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.contrib.admin import DateFieldListFilter, SimpleListFilter
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Page, Paginator
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from chat.admin.base import NamedChoicesFilter
from chat.models import TURN_MARKERS, ChatMessage, RunState, Session

if TYPE_CHECKING:
    SessionPaginator = Paginator[Session]
else:
    SessionPaginator = Paginator

# The number of values that a filter offers. Staff find other values with the search.
MAX_CHOICES = 20

STATUSES: dict[str, Any] = {
    Session.Status.ACTIVE.value: _("Active"),
    Session.Status.ARCHIVED.value: _("Archived"),
    Session.Status.DELETED.value: _("Deleted"),
}
RUN_STATES: dict[str, Any] = {
    RunState.IDLE.value: _("Idle"),
    RunState.RUNNING.value: _("Working"),
    RunState.CANCELLING.value: _("Stopping"),
    RunState.WAITING.value: _("Waiting for an answer"),
}


def state_badge(session: Session) -> SafeString:
    """Return a badge with the state of a session's run, or with the session's status if the run is idle."""
    if session.run.state != RunState.IDLE and session.status != Session.Status.DELETED:
        return _badge("working", RUN_STATES, session.run.state)
    return _badge(session.status, STATUSES, session.status)


def run_badge(session: Session) -> SafeString:
    """Return a badge with the state of a session's run."""
    return _badge("idle" if session.run.state == RunState.IDLE else "working", RUN_STATES, session.run.state)


def _badge(css_class: str, names: dict[str, Any], value: str) -> SafeString:
    return format_html('<span class="badge {}">{}</span>', css_class, names[value])


class TwoStepPaginator(SessionPaginator):
    """A paginator that selects the ids of a page and then reads these rows, so that the database sorts only ids."""

    def _get_page(self, rows: QuerySet[Session], *args: Any, **kwargs: Any) -> Page[Session]:
        return Page(read_sessions(list(rows.values_list("pk", flat=True))), *args, **kwargs)

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        return rows.order_by().count() if isinstance(rows, QuerySet) else len(rows)


def read_sessions(ids: list[str]) -> list[Session]:
    """Read sessions in the order of `ids`, with the number of their messages as `message_count`, in three queries."""
    rows = Session.objects.select_related("owner", "workspace", "run").defer("system_prompt", "config")
    sessions = rows.in_bulk(ids)
    live = ChatMessage.objects.filter(session__in=ids, sequence__isnull=False).exclude(type__in=TURN_MARKERS)
    counts = dict(live.order_by().values_list("session").annotate(Count("pk")))
    for session in sessions.values():
        session.message_count = counts.get(session.pk, 0)  # type: ignore[attr-defined]  # as an annotation would be
    return [sessions[pk] for pk in ids if pk in sessions]


class SessionList(ChangeList):
    """A change list that takes its rows from the paginator even if there is only one page."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if not self.multi_page:
            self.result_list = self.paginator.page(1).object_list


class StatusFilter(NamedChoicesFilter):
    title = _("status")
    parameter_name = column = "status"
    named_choices = STATUSES


class RunStateFilter(NamedChoicesFilter):
    title = _("state of the run")
    parameter_name, column = "run", "run__state"
    named_choices = RUN_STATES


class FrequentValuesFilter(SimpleListFilter):
    """A filter that offers the most frequent values of a column, and the value in the URL."""

    column = ""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        counted = Session.objects.values_list(self.column).annotate(sessions=Count("*")).order_by("-sessions")
        values = [value for value, _count in counted[:MAX_CHOICES] if value not in ("", None)]
        chosen = self.used_parameters.get(str(self.parameter_name))
        if chosen and chosen not in map(str, values) and self._is_valid(chosen):
            values.append(chosen)
        return sorted(self._name(values), key=lambda choice: choice[1].casefold())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Session]) -> QuerySet[Session]:
        value = self.value()
        if value is None:
            return queryset
        return queryset.filter(**{self.column: value}) if self._is_valid(value) else queryset.none()

    def _is_valid(self, value: str) -> bool:
        return "\0" not in value

    def _name(self, values: list[Any]) -> Iterator[tuple[str, str]]:
        yield from ((str(value), str(value)) for value in values)


class RelatedFilter(FrequentValuesFilter):
    """A filter that offers the most frequent values of a foreign key."""

    def _is_valid(self, value: str) -> bool:
        return value.isascii() and value.isdigit() and len(value) < 16

    def _name(self, values: list[Any]) -> Iterator[tuple[str, str]]:
        related = Session._meta.get_field(self.column.removesuffix("_id")).related_model
        for row in related.objects.filter(pk__in=values):  # type: ignore[union-attr]  # a foreign key has one
            yield str(row.pk), str(row)


class WorkspaceFilter(RelatedFilter):
    title = _("workspace")
    parameter_name, column = "workspace", "workspace_id"


class OwnerFilter(RelatedFilter):
    title = _("owner")
    parameter_name, column = "owner", "owner_id"


class ModelFilter(FrequentValuesFilter):
    title = _("model")
    parameter_name = column = "model"


class LastActiveFilter(DateFieldListFilter):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = _("last active")


class BegunFilter(DateFieldListFilter):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = _("created")
