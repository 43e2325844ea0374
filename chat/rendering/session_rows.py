"""Render the rows of the session list.

A change in a session makes the pages of all its users load their list. Nearly all of its rows are as they were, and are
not rendered again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from chat.caches import kept_unless_debug
from chat.queries.session_list import Listed

# Rows of 2 KB.
KEPT = 4_000


class Owner(NamedTuple):
    """The user whose session another user sees."""

    pk: int
    sender: str


def row_html(listed: Listed, current: str) -> SafeString:
    """Return a session's row; `current` is the id of the session that the page shows."""
    # Users are equal by their ids, whatever their names are.
    owner = Owner(listed.owner.pk, listed.owner.sender) if listed.owner else None
    return _row(replace(listed, owner=None), owner, listed.id == current, get_language())


@partial(kept_unless_debug, size=KEPT)
def _row(listed: Listed, owner: Owner | None, is_current: bool, language: str | None) -> SafeString:
    values = {"item": listed, "owner": owner, "is_current": is_current}
    return mark_safe(render_to_string("chat/rail_row.html", values))  # noqa: S308  # a template escapes its values
