"""PostgreSQL's own index of what was said: what Django asks is what the index answers."""

from __future__ import annotations

import pytest
from django.db import connection

from chat.models import ChatMessage
from chat.queries.search import FOUND

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]


@pytest.mark.parametrize("term", ["deployment", "ÄNDERUNG", "部署指南"])
def test_search_reads_its_index(term: str) -> None:
    """Migration 0004: the condition and the expression of the index are those of the query, in every script."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_indexscan = off")  # of a few rows any index would do
    plan = ChatMessage.objects.filter(FOUND, text__icontains=term).explain()
    assert "message_search" in plan
    assert "Index Cond: (upper(text)" in plan
