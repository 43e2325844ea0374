"""Base classes for the pages of the admin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from django.contrib.admin import ModelAdmin, SimpleListFilter, display
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from chat.access import may_open_in_admin
from chat.rendering.text.formatting import moment

# Each word adds a condition for each column, and SQLite rejects queries with several hundred conditions.
MAX_SEARCH_WORDS = 20

# The return value of ModelAdmin.get_deleted_objects: the objects to delete, the number of objects by model name, the
# names of models that the user may not delete, and the objects that prevent the deletion.
DeletionPlan = tuple[list[Any], dict[Any, int], set[Any], list[Any]]


def time_column(model: type[Model], name: str) -> Any:
    """Return a column or read-only field that shows a time field of the model in the viewer's time zone.

    The type is Any because the stubs of `ModelAdmin.fields` do not allow callables.
    """
    label = model._meta.get_field(name).verbose_name  # type: ignore[union-attr]  # not a relation from another model

    @display(description=label, ordering=name)
    def column(row: Any) -> str:
        at = getattr(row, name)
        return moment(at) if at else "—"

    column.__name__ = name
    return column


@cache
def _plain_column(model: type[Model], name: str) -> Callable[[Any], str]:
    """Return a read-only field that shows a related row without a link. The cache lets Django compare such fields."""

    @display(description=model._meta.get_field(name).verbose_name)  # type: ignore[union-attr]  # a foreign key has one
    def column(row: Any) -> str:
        related = getattr(row, name)
        return "—" if related is None else str(related)

    column.__name__ = name
    return column


class PlainRelations:
    """A mixin that shows related rows without a link to staff who may not open them. Place it before ModelAdmin.

    Django links each read-only relation to its page in the admin, even if that page refuses the user.
    """

    model: Any

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        names = super().get_fields(request, obj)  # type: ignore[misc]  # ModelAdmin has it
        can_change = self.has_change_permission(request, obj)  # type: ignore[attr-defined]  # likewise
        return names if can_change else self.plain(request, names)

    def plain(self, request: HttpRequest, names: Iterable[Any]) -> list[Any]:
        """Replace the relations whose pages the user may not open."""
        relations = {field.name: field.related_model for field in self.model._meta.fields if field.many_to_one}
        refused = {name for name, model in relations.items() if not may_open_in_admin(request.user, model)}
        return [_plain_column(self.model, name) if name in refused else name for name in names]


class BoundedSearch:
    """A mixin that searches for only the first MAX_SEARCH_WORDS words of a search term. Place it before ModelAdmin."""

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        words = " ".join(search_term.split()[:MAX_SEARCH_WORDS])
        results: tuple[QuerySet[Any], bool] = super().get_search_results(request, queryset, words)  # type: ignore[misc]  # ModelAdmin has it
        return results


class HiddenColumns:
    """A mixin that refuses conditions on columns that the page does not show. Place it before ModelAdmin.

    Django accepts conditions on all columns of a model in the query of a list's URL, such as `title__startswith=a`. So
    staff could guess a text letter by letter, without a search in the security log.
    """

    hidden_columns: tuple[str, ...] = ()

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        is_hidden = lookup.partition("__")[0] in self.hidden_columns
        return not is_hidden and super().lookup_allowed(lookup, value, request)  # type: ignore[misc]  # ModelAdmin has it


class ReadOnly(PlainRelations, BoundedSearch):
    """A mixin for pages on which staff can neither add nor change rows. Place it before ModelAdmin."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


class GuardedDeletion(PlainRelations, BoundedSearch, ModelAdmin):  # type: ignore[type-arg]  # only its stub takes arguments
    """Pages that refuse to delete rows that other rows need.

    Django would list those other rows, such as sessions whose titles staff may not read.
    """

    def deletion_obstacles(self, rows: QuerySet[Any]) -> list[str]:
        """Return a sentence for each row that cannot be deleted."""
        raise NotImplementedError

    def get_deleted_objects(self, objs: Sequence[Any] | QuerySet[Any], request: HttpRequest) -> DeletionPlan:
        rows = self.model._default_manager.filter(pk__in=[each.pk for each in objs])
        obstacles = self.deletion_obstacles(rows)
        if obstacles:
            return [], {}, set(), obstacles
        deleted, counts, missing_permissions, protected = super().get_deleted_objects(objs, request)
        return deleted, counts, missing_permissions, protected


class NamedChoicesFilter(SimpleListFilter):
    """A filter by a column whose values have display names."""

    column = ""
    named_choices: dict[Any, Any] = {}  # noqa: RUF012  # a class attribute, as in Django

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(str(value), name) for value, name in self.named_choices.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value is None:
            return queryset
        is_known = value in map(str, self.named_choices)
        return queryset.filter(**{self.column: value}) if is_known else queryset.none()
