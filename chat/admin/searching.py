"""Searches in the lists of the admin."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

# Each word is a condition for each column: SQLite refuses a query with some hundreds of them.
MOST_WORDS = 20


class BoundedSearch:
    """Searches for the first words of what staff type. Place it before ModelAdmin."""

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        words = " ".join(search_term.split()[:MOST_WORDS])
        found: tuple[QuerySet[Any], bool] = super().get_search_results(request, queryset, words)  # type: ignore[misc]  # an admin's
        return found
