"""Rows of the session list, which are rendered again only when their contents change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from django.test.signals import template_rendered
from django.utils import translation

from chat.models import User
from chat.queries.session_list import Listed
from chat.rendering.session_rows import row_html

LISTED = Listed(
    id="s_1",
    title="A title of this test alone",
    owner=None,
    workspace=1,
    workspace_name="Home",
    archived=False,
    pinned=False,
    unread=False,
    working=False,
    waiting=False,
    updated_at=datetime(2026, 11, 20, tzinfo=UTC),
)


@contextmanager
def renderings() -> Iterator[list[str]]:
    """Collect the names of the rendered templates in a list."""
    seen = list[str]()

    def note(template: object, **_: object) -> None:
        seen.append(str(getattr(template, "name", "")))

    template_rendered.connect(note)
    try:
        yield seen
    finally:
        template_rendered.disconnect(note)


def test_row_that_has_not_changed_is_not_rendered_again() -> None:
    with renderings() as seen:
        first = row_html(LISTED, "s_2")
        assert seen.count("chat/session_row.html") == 1
        assert row_html(replace(LISTED), "s_3") == first
        assert seen.count("chat/session_row.html") == 1


def test_row_changes_with_what_it_shows() -> None:
    """UI-11: a row depends on its state, the page that shows it, and the language."""
    rows = {row_html(each, "") for each in (LISTED, replace(LISTED, working=True), replace(LISTED, title="Other"))}
    assert len(rows) == 3
    assert 'aria-current="page"' in row_html(LISTED, "s_1")
    assert 'aria-current="page"' not in row_html(LISTED, "s_2")
    with translation.override("zh-hans"):
        assert "选择" in row_html(LISTED, "")


def test_row_has_the_present_name_of_its_owner() -> None:
    """A row shows a changed name, although users with the same id are equal."""
    ana, renamed = User(pk=7, username="ana", display_name="Ana"), User(pk=7, username="ana", display_name="Anastasia")
    assert "Shared by Ana<" in row_html(replace(LISTED, owner=ana), "")
    assert "Shared by Anastasia<" in row_html(replace(LISTED, owner=renamed), "")


def test_title_is_escaped() -> None:
    assert "<b>&" not in row_html(replace(LISTED, title="<b>&"), "")
    assert "&lt;b&gt;&amp;" in row_html(replace(LISTED, title="<b>&"), "")
