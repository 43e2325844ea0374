"""Render the rows of the session list.

A change in a session makes the pages of all its users reload their lists. Nearly all rows have not changed, so they are
cached and not rendered again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from chat.caches import cached_unless_debug
from chat.queries.session_list import Listed

# The number of rows that are cached. A row takes about 2 KB.
KEPT = 4_000


class Owner(NamedTuple):
    """The owner of a session, as shown to another user. A plain value, so that rows are compared by it."""

    pk: int
    sender: str


def row_html(listed: Listed, current: str) -> SafeString:
    """Return the HTML of a session's row. `current` is the id of the session that the page shows."""
    # User objects with the same id are equal even if their names differ, so the row is cached by the name, too.
    owner = Owner(listed.owner.pk, listed.owner.sender) if listed.owner else None
    return _row(replace(listed, owner=None), owner, listed.id == current, get_language())


@partial(cached_unless_debug, size=KEPT)
def _row(listed: Listed, owner: Owner | None, is_current: bool, language: str | None) -> SafeString:
    values = {"item": listed, "owner": owner, "is_current": is_current}
    return mark_safe(render_to_string("chat/session_row.html", values))  # noqa: S308  # a template escapes its values
