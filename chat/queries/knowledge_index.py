"""Find passages by a query in words.

`PassageIndex` is the interface that the tools use. A semantic index would be another class with this method, and the
service that adds files (`chat/services/people/knowledge.py`) would add passages to it.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection
from contextlib import closing
from typing import Protocol

from django.db import connection

from chat.files.passages import is_paired, words_of

# That of the index (migrations/0032_knowledge.py).
TOKENIZER = "porter unicode61"
# The most words of a query that are searched.
MAX_WORDS = 40
# A word of at least this many letters also finds longer words that begin with it, such as compounds.
MIN_BEGINNING_LENGTH = 5
_IS_LATIN = re.compile(r"[a-z]+")
# The English words that PostgreSQL does not index. SQLite would find nearly all passages by them.
_ENGLISH = """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it
    its itself they them their theirs themselves what which who whom this that these those am is are was were be been
    being have has had having do does did doing a an the and but if or because as until while of at by for with about
    against between into through during before after above below to from up down in out on off over under again further
    then once here there when where why how all any both each few more most other some such no nor not only own same so
    than too very s t can will just don should now
"""
STOP_WORDS = frozenset(_ENGLISH.split())


class PassageIndex(Protocol):
    def find(self, query: str, file_ids: Collection[str], most: int) -> list[int]:
        """Return the ids of the passages of these files that match a query best, the best first."""


class FullText:
    """The database's own full text index, which has each passage when it is stored (migrations/0032_knowledge.py).

    A passage matches if it has any of the words, other than STOP_WORDS. It ranks higher the more words it has and, on
    SQLite only, the rarer they are. A word that is repeated, in any English form, counts once.
    """

    def find(self, query: str, file_ids: Collection[str], most: int) -> list[int]:
        is_sqlite = connection.vendor == "sqlite"
        words = [word for word in dict.fromkeys(words_of(query)) if word not in STOP_WORDS][:MAX_WORDS]
        words = _once(words) if is_sqlite else words
        if not words or not file_ids:
            return []
        places = ", ".join(["%s"] * len(file_ids))
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


def _once(words: list[str]) -> list[str]:
    """Return one word of each stem, because FTS5 counts every form of a word, and PostgreSQL only its stem."""
    with closing(sqlite3.connect(":memory:")) as own:
        own.execute(f"CREATE VIRTUAL TABLE word USING fts5(form, tokenize='{TOKENIZER}')")
        own.execute("CREATE VIRTUAL TABLE stem USING fts5vocab(word, 'instance')")
        own.executemany("INSERT INTO word(rowid, form) VALUES (?, ?)", enumerate(words))
        stems = own.execute("SELECT term, doc FROM stem").fetchall()
    # Of several forms, the one that also finds longer words is kept.
    chosen = dict(sorted(stems, key=lambda stem: (_may_go_on(words[stem[1]]), -stem[1])))
    return [words[place] for place in sorted(chosen.values())]


def _may_go_on(word: str) -> bool:
    """Return whether a word also finds longer ones. A single Chinese character finds the pairs that begin with it."""
    if len(word) == 1:
        return is_paired(word)
    return len(word) >= MIN_BEGINNING_LENGTH and bool(_IS_LATIN.fullmatch(word))


def _as_fts5(word: str) -> str:
    return f'"{word}" *' if _may_go_on(word) else f'"{word}"'


def _as_tsquery(word: str) -> str:
    return f"'{word}':*" if _may_go_on(word) else f"'{word}'"
