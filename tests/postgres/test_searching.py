"""PostgreSQL's search index, which answers Django's query."""

from __future__ import annotations

import pytest
from django.db import connection

from chat.models import ChatMessage
from chat.queries.search import FOUND

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]


@pytest.mark.parametrize("term", ["deployment", "ÄNDERUNG", "部署指南"])
def test_search_reads_its_index(term: str) -> None:
    """The condition and the expression of the index in migration 0004 are those of the query, in every script."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_indexscan = off")  # with few rows, PostgreSQL would use any index
    plan = ChatMessage.objects.filter(FOUND, text__icontains=term).explain()
    assert "message_search" in plan
    assert "Index Cond: (upper(text)" in plan
