"""Find passages by a query in words.

`PassageIndex` is the interface that the tools use. A semantic index would be another class with this method, and the
service that adds files (`chat/services/people/knowledge.py`) would add passages to it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Protocol

from django.db import connection

from chat.files.passages import words_of

# The most words of a query that are searched.
MOST_WORDS = 40
# A word of at least this many letters also finds longer words that begin with it, such as compounds.
SHORTEST_BEGINNING = 5
_IS_LATIN = re.compile(r"[a-z]+")


class PassageIndex(Protocol):
    def find(self, query: str, file_ids: Collection[str], most: int) -> list[int]:
        """Return the ids of the passages of these files that match a query best, the best first."""


class FullText:
    """The database's own full text index, which has each passage when it is stored (migrations/0032_knowledge.py).

    A passage matches if it has any of the words. It ranks higher the more words it has and, on SQLite only, the rarer
    they are.
    """

    def find(self, query: str, file_ids: Collection[str], most: int) -> list[int]:
        words = list(dict.fromkeys(words_of(query)))[:MOST_WORDS]
        if not words or not file_ids:
            return []
        places = ", ".join(["%s"] * len(file_ids))
        is_sqlite = connection.vendor == "sqlite"
        with connection.cursor() as cursor:
            if is_sqlite:
                cursor.execute(
                    f"""SELECT p.id FROM chat_knowledge_search JOIN chat_knowledgepassage p
                    ON p.id = chat_knowledge_search.rowid
                    WHERE chat_knowledge_search MATCH %s AND p.file_id IN ({places})
                    ORDER BY bm25(chat_knowledge_search), p.id LIMIT %s""",  # noqa: S608  # all values are parameters
                    [" OR ".join(map(_as_fts5, words)), *file_ids, most],
                )
            else:
                # With 1, the rank is divided by the logarithm of the length, so that long passages do not rank higher.
                cursor.execute(
                    f"""SELECT p.id FROM chat_knowledgepassage p, to_tsquery('english', %s) q
                    WHERE p.vector @@ q AND p.file_id IN ({places})
                    ORDER BY ts_rank(p.vector, q, 1) DESC, p.id LIMIT %s""",  # noqa: S608  # all values are parameters
                    [" | ".join(map(_as_tsquery, words)), *file_ids, most],
                )
            return [found for (found,) in cursor.fetchall()]


def _may_go_on(word: str) -> bool:
    return len(word) >= SHORTEST_BEGINNING and bool(_IS_LATIN.fullmatch(word))


def _as_fts5(word: str) -> str:
    return f'"{word}" *' if _may_go_on(word) else f'"{word}"'


def _as_tsquery(word: str) -> str:
    return f"'{word}':*" if _may_go_on(word) else f"'{word}'"
