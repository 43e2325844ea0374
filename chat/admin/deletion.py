"""Deleting in the admin where something may stand against it: said in words, without naming what others keep there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.admin import ModelAdmin
from django.db.models import QuerySet
from django.http import HttpRequest

from chat.admin.searching import BoundedSearch

# What the admin's pages ask for: what would go, how much of each kind, which rights are wanting, what is in the way.
Plan = tuple[list[Any], dict[Any, int], set[Any], list[Any]]


class KeepingAdmin(BoundedSearch, ModelAdmin):  # type: ignore[type-arg]  # only its stub takes arguments
    """Refuses to delete what `what_holds` gives reasons to keep."""

    def what_holds(self, rows: QuerySet[Any]) -> list[str]:
        """Say for each row why it cannot be deleted."""
        raise NotImplementedError

    def get_deleted_objects(self, objs: Sequence[Any] | QuerySet[Any], request: HttpRequest) -> Plan:
        rows = self.model._default_manager.filter(pk__in=[each.pk for each in objs])
        reasons = self.what_holds(rows)
        if reasons:
            return [], {}, set(), reasons
        deleted, counts, wanting, held = super().get_deleted_objects(objs, request)
        return deleted, counts, wanting, held
