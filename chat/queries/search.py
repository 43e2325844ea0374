"""Search: sessions by title, and messages by full text, among those that the user may see, the newest first.

Sessions whose title is the query or begins with it come before the others, and whole words before parts of words.
A result must contain every term, anywhere in a word, in any case. migrations/0004_search.py describes the index.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from django.db import connection
from django.db.models import F, Max, Q, QuerySet, TextField, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce, Left, Length, Lower, Replace
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

from chat.access import sessions_of
from chat.limits.rates import spend
from chat.models import ChatMessage, MessageStatus, MessageType, Session, User

LIMIT = 20
# The search reads this many times the limit, to find the results with whole words among them.
POOL = 3
# The characters of a message that are read to rank it, and for its snippet if the first hit is in them. A message can
# have 2 MB.
HEAD = 20_000
# The most sessions that are found by their messages, those with the newest messages first.
MAX_SESSIONS = 500
MAX_TERMS = 8
MAX_TERM_LENGTH = 100
# The length of trigrams. The index finds no shorter terms.
TRIGRAM = 3
FINISHED = (MessageStatus.COMPLETE, MessageStatus.INTERRUPTED, MessageStatus.FAILED)
# The messages that a search finds. The index of SQLite also holds removed ones (migrations/0014_erasing_and_guests.py).
FOUND = Q(type=MessageType.TEXT, status__in=FINISHED, removed_at=None)
# The characters of a snippet before the first hit, and in all.
BEFORE_HIT = 50
SNIPPET = 220
# The characters before the first hit, and after it, from which a snippet is made.
REACH = 600
MAX_CUT_WORD_LENGTH = 25
# The signs of Markdown that snippets leave out. Each pattern takes linear time.
_LINE_START = re.compile(
    r"^[ \t]{0,8}(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+(?:\[[ xX]\][ \t])?|(?:```|~~~)[^\n]*$|\|[ \t]*)", re.MULTILINE
)
_TABLE_RULE = re.compile(r"^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t:-]*)*$\n?", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\[\]\n]{0,200})\]\([^()\s]{1,500}\)")
_EMPHASIS = re.compile(r"(\*\*|__|~~)(\S[^\n*_~]{0,300}?)\1")
_ITALIC = re.compile(r"(?<![\w*\\])([*_])(?![\s*_])([^\n*_]{1,300})(?<!\s)\1(?![\w*])")
_ROW_END = re.compile(r"[ \t]*\|[ \t]*$", re.MULTILINE)
_CELL = re.compile(r"[ \t]*\|[ \t]*(?=\S)")
# Limits of the search within one session: found messages, and characters of the query.
MAX_FOUND_MESSAGES = 500
MAX_FIND_LENGTH = 200


@dataclass(frozen=True, slots=True)
class SessionHit:
    """A session whose title has all terms; `title` is HTML with the hits marked.

    `rank` is 0 if the title is the query, 1 if it begins with it, otherwise 2. The palette ranks actions in the same
    way.
    """

    rank: int
    id: str
    title: SafeString
    workspace: int
    workspace_name: str
    archived: bool
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class MessageHit:
    """A message that has all terms; `snippet` is HTML with the hits marked."""

    id: str
    session_id: str
    session_title: str
    workspace: int
    workspace_name: str
    sender: str
    snippet: SafeString
    timestamp: datetime


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search."""

    sessions: list[SessionHit]
    messages: list[MessageHit]


def terms_of(query: str) -> list[str]:
    """Split a search query into the terms that must all be found."""
    words = query.replace("\0", " ").split()
    return list(dict.fromkeys(word[:MAX_TERM_LENGTH] for word in words))[:MAX_TERMS]


def search(user: User, query: str, limit: int = LIMIT) -> Found:
    """Find up to `limit` sessions and as many messages. Raise RateLimited."""
    terms = terms_of(query)
    if not terms:
        return Found([], [])
    spend("searches", user.pk)
    visible = sessions_of(user)
    return Found(_sessions(visible, terms, limit), _messages(visible, terms, limit))


def sessions_with(query: str, among: QuerySet[Session], *, in_messages: bool) -> QuerySet[Session]:
    """Return the sessions whose title, owner or id has all terms, or that have a message with all terms.

    `in_messages` is True if the user may read the messages. Otherwise neither messages nor titles are searched, because
    the results would reveal the content word by word.
    """
    terms = terms_of(query)
    if not terms:
        return among
    named = Q()
    for term in terms:
        titles = ("title",) if in_messages else ()
        named &= _in_columns(term, *titles, "owner__username", "owner__display_name")
    exactly = terms if len(terms) == 1 else []
    saying = _saying(among, terms) if in_messages else []
    return among.filter(named | Q(pk__in=[*exactly, *saying]))


def _in_columns(term: str, *columns: str) -> Q:
    """Return a condition for a term in any column. SQLite ignores case for ASCII only, so usual spellings are added."""
    found = Q()
    for column in columns:
        for form in {term} if term.isascii() else {term, term.lower(), term.upper(), term.title()}:
            found |= Q(**{f"{column}__icontains": form})
    return found


def _saying(among: QuerySet[Session], terms: list[str]) -> list[str]:
    """Return the ids of sessions that have a message with all terms: up to a limit, those with the newest messages."""
    indexed, short = _by_length(terms)
    if connection.vendor == "sqlite" and indexed:
        return _ask_index("DISTINCT d.session_id", among.order_by(), indexed, short, MAX_SESSIONS)
    found = ChatMessage.objects.filter(FOUND, session__in=among.order_by().values("pk")).filter(*_with_all(terms))
    newest = found.order_by().values("session").annotate(last=Max("timestamp")).order_by("-last", "session")
    return list(newest.values_list("session", flat=True)[:MAX_SESSIONS])


def _with_all(terms: list[str]) -> list[Q]:
    """Return the conditions for messages with all terms, for searches without the index."""
    return [Q(text__icontains=term) for term in terms]


def _by_length(terms: list[str]) -> tuple[list[str], list[str]]:
    """Return the terms that the index can find, and those that are too short for it."""
    return [term for term in terms if len(term) >= TRIGRAM], [term for term in terms if len(term) < TRIGRAM]


def _sessions(visible: QuerySet[Session], terms: list[str], limit: int) -> list[SessionHit]:
    """Match titles in Python, because no database folds the case of all scripts, and a user has few sessions."""
    titled = visible.exclude(title="").order_by("-updated_at")
    rows = titled.values_list("pk", "title", "status", "updated_at", "workspace", "workspace__name")
    patterns = [_pattern([term]) for term in terms]
    query = " ".join(terms)
    matching = (row for row in rows.iterator() if all(pattern.search(row[1]) for pattern in patterns))
    found = list(islice(matching, POOL * limit))
    if len(found) == POOL * limit:  # the scan ended early, so query the database for older titles that begin so
        seen = {row[0] for row in found}
        found += (row for row in rows.filter(title__istartswith=query)[:limit] if row[0] not in seen)
    ranked = [(_rank(row[1], query), row) for row in found]
    whole = _whole(terms)
    ranked.sort(key=lambda each: (each[0], whole(each[1][1])))  # stable: the newest stay first
    return [
        SessionHit(rank, pk, marked(title, terms), workspace, name, status == Session.Status.ARCHIVED, updated_at)
        for rank, (pk, title, status, updated_at, workspace, name) in ranked[:limit]
    ]


def _rank(title: str, query: str) -> int:
    title, query = " ".join(title.split()).casefold(), query.casefold()
    if title == query:
        return 0
    return 1 if title.startswith(query) else 2


def _whole(terms: list[str]) -> Callable[[str], int]:
    """Return a function that ranks a text: 0 for the query as whole words, 1 for all terms as words, otherwise 2."""
    bounded = [
        re.compile(_edge(term[0], r"(?<!\w)") + re.escape(term) + _edge(term[-1], r"(?!\w)"), re.IGNORECASE)
        for term in (" ".join(terms), *terms)
    ]

    def rank(text: str) -> int:
        if bounded[0].search(text):
            return 0
        return 1 if all(term.search(text) for term in bounded[1:]) else 2

    return rank


def _edge(sign: str, boundary: str) -> str:
    """Return the pattern of a word boundary if the term ends there with a letter or digit, otherwise ""."""
    return boundary if sign.isalnum() else ""


def _messages(visible: QuerySet[Session], terms: list[str], limit: int) -> list[MessageHit]:
    # The query as a whole first: its words alone may be in too many newer messages.
    found = _newest_with(visible, [" ".join(terms)], limit) if len(terms) > 1 else []
    found += _newest_with(visible, terms, POOL * limit)
    rows = list({row.pk: row for row in found}.values())
    rows.sort(key=lambda row: row.timestamp, reverse=True)
    whole = _whole(terms)
    rows.sort(key=lambda row: whole(_head(row)))  # stable: the newest stay first
    return [_hit(row, terms) for row in rows[:limit]]


def _newest_with(visible: QuerySet[Session], terms: list[str], limit: int) -> list[ChatMessage]:
    found = ChatMessage.objects.filter(FOUND)
    indexed, short = _by_length(terms)
    if connection.vendor == "sqlite" and indexed:
        found = found.filter(pk__in=_ask_index("d.message_id", visible, indexed, short, limit))
    else:
        found = found.filter(session__in=visible).filter(*_with_all(terms))
    found = found.defer("text").annotate(head=Left("text", HEAD), chars=Length("text"))
    return list(found.select_related("session__workspace").order_by("-timestamp", "pk")[:limit])


def _head(row: ChatMessage) -> str:
    head: str = row.head  # type: ignore[attr-defined]  # by _newest_with
    return head


def _text(row: ChatMessage, terms: list[str]) -> str:
    """Return the text of a message, or only its beginning if that contains the whole snippet."""
    head = _head(row)
    if row.chars <= HEAD:  # type: ignore[attr-defined]  # likewise
        return head
    first = _pattern(terms).search(head)
    if first is not None and first.start() + 2 * REACH < HEAD:
        return head
    return ChatMessage.objects.values_list("text", flat=True).filter(pk=row.pk).first() or head


def _ask_index(what: str, visible: QuerySet[Session], indexed: list[str], short: list[str], limit: int) -> list[str]:
    """Query the index from its newest entry back, up to the limit. Short terms are matched in the found messages.

    `what` is a column of the entries, `d`.
    """
    gate, parameters = visible.values("pk").query.get_compiler(connection=connection, elide_empty=False).as_sql()
    likes = "".join(" AND m.text LIKE %s ESCAPE '!'" for _term in short)
    with connection.cursor() as cursor:
        cursor.execute(
            f"""SELECT {what} FROM chat_search JOIN chat_searchdoc d ON d.docid = chat_search.rowid
            JOIN chat_chatmessage m ON m.id = d.message_id
            WHERE chat_search MATCH %s AND m.removed_at IS NULL AND d.session_id IN ({gate}){likes}
            ORDER BY chat_search.rowid DESC LIMIT %s""",  # noqa: S608  # the gate is Django's, all values are parameters
            [_match(indexed), *parameters, *map(_like, short), limit],
        )
        return [found for (found,) in cursor.fetchall()]


def _match(terms: list[str]) -> str:
    """Return terms as an FTS5 query. Each is quoted, because it may contain any character."""
    return " AND ".join('"' + term.replace('"', '""') + '"' for term in terms)


def _like(term: str) -> str:
    return "%" + re.sub(r"([!%_])", r"!\1", term) + "%"


def _hit(row: ChatMessage, terms: list[str]) -> MessageHit:
    session = row.session
    return MessageHit(
        id=row.pk,
        session_id=session.pk,
        session_title=session.title,
        workspace=session.workspace_id,
        workspace_name=session.workspace.name,
        sender=row.sender or row.model,
        snippet=marked(around_hit(_text(row, terms), terms), terms),
        timestamp=row.timestamp,
    )


def around_hit(text: str, terms: list[str]) -> str:
    """Return one line of a long text around its first hit, cut between words and without Markdown.

    A hit inside Markdown's signs, or in the address of a link, is shown in the text as written.
    """
    pattern = _pattern(terms)
    first = pattern.search(text)
    begin = max(0, first.start() - REACH) if first else 0
    window = text[begin : begin + 2 * REACH]
    plain = without_markdown(window)
    line = " ".join((plain if pattern.search(plain) else window).split())
    hit = pattern.search(line)
    start = _between_words(line, max(0, (hit.start() if hit else 0) - BEFORE_HIT), 1)
    # A long word before the hit is cut, so that the hit itself is shown.
    start = min(start, hit.start() if hit else 0)
    end = _between_words(line, min(len(line), start + SNIPPET), -1)
    end = max(end, min(hit.end() if hit else 0, start + SNIPPET))
    before = "…" if begin or start else ""
    return before + line[start:end].strip() + ("…" if end < len(line) or begin + len(window) < len(text) else "")


def _between_words(line: str, place: int, step: int) -> int:
    """Return the next gap between words in one direction, or the same place if there is none nearby."""
    for moved in range(place, place + step * MAX_CUT_WORD_LENGTH, step):
        if not 0 < moved < len(line) or line[moved - 1].isspace() or line[moved].isspace():
            return moved
    return place


def without_markdown(text: str) -> str:
    """Return a text without the signs of headings, lists, quotes, tables, emphasis, code and links."""
    text = _TABLE_RULE.sub("", text)
    text = _ROW_END.sub("", _LINE_START.sub("", text))
    text = _LINK.sub(r"\1", text)
    text = _ITALIC.sub(r"\2", _EMPHASIS.sub(r"\2", text))
    return _CELL.sub(" · ", text).replace("`", "")


def marked(text: str, terms: list[str]) -> SafeString:
    """Return the escaped text as HTML, with the terms marked."""
    pieces = _pattern(terms, group=True).split(text)
    html = "".join(
        f"<mark>{conditional_escape(piece)}</mark>" if place % 2 else conditional_escape(piece)
        for place, piece in enumerate(pieces)
    )
    return mark_safe(html)  # noqa: S308  # each piece is escaped, and the tags are ours


def _pattern(terms: list[str], *, group: bool = False) -> re.Pattern[str]:
    longest_first = sorted(terms, key=len, reverse=True)
    either = "|".join(map(re.escape, longest_first))
    return re.compile(f"({either})" if group else either, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SessionMatches:
    """The ids of the matching messages of one session, in order. `more` is True if older matches were left out.

    `counts` has how often each stored message contains the text. The page counts in the rendered messages itself.
    """

    ids: list[str]
    counts: list[int]
    more: bool


def find_in_session(session: Session, query: str) -> SessionMatches:
    """Find the messages of a session's conversation that contain the query as a whole, ignoring case."""
    query = query.strip()[:MAX_FIND_LENGTH]
    if not query or "\0" in query:
        return SessionMatches([], [], more=False)
    rows = ChatMessage.objects.in_conversation(session.pk).filter(_contains(query))
    shown = rows.exclude(type__in=(MessageType.TURN_START, MessageType.TURN_DONE))
    newest = shown.order_by("-sequence").values_list("pk", _occurrences(query))
    found = list(newest[: MAX_FOUND_MESSAGES + 1])
    kept = found[:MAX_FOUND_MESSAGES][::-1]
    # Not every spelling is counted (see below), but each found message has the text at least once.
    counts = [max(1, count) for _id, count in kept]
    return SessionMatches([pk for pk, _count in kept], counts, more=len(found) > MAX_FOUND_MESSAGES)


def _occurrences(text: str) -> Combinable:
    """Return an expression for how often a message has a text, from how much shorter the message is without it."""
    total: Combinable = Value(0)
    for column in (F("text"), F("result"), F("tool_name"), Cast("arguments", TextField())):
        lower = Lower(Coalesce(column, Value("")))
        total += Length(lower) - Length(Replace(lower, Value(text.lower())))
    return total / Value(len(text.lower()))


def _contains(text: str) -> Q:
    """Return a condition for messages that contain a text.

    SQLite ignores case for ASCII only, so other texts are searched in their usual spellings. JSON can have the text in
    its escaped form.
    """
    condition = Q()
    for form in {text} if text.isascii() else {text, text.lower(), text.upper(), text.capitalize()}:
        for column in ("text", "result", "tool_name", "arguments"):
            condition |= Q(**{f"{column}__icontains": form})
        if (escaped := json.dumps(form)[1:-1]) != form:
            condition |= Q(arguments__icontains=escaped)
    return condition
