"""The state of the rows in the forms of the reference clients."""

from __future__ import annotations

from collections.abc import Iterable

from agents.messages import Json
from chat.languages import in_language
from chat.queries.messages import Changes
from chat.rendering.markdown.render import direction_of
from chat.rendering.messages.frames import message_html
from tests.support.client import EventsClient
from tests.support.page_client import PageClient


def rows_state(changes: Changes) -> Json:
    rows = [message.to_json() for message in changes.messages]
    rows.sort(key=lambda row: (row["sequence"] is None, row["sequence"] or 0, row["id"]))
    return {"messages": rows, "session": changes.session.to_json()}


def drawn_rows(changes: Changes, language: str = "en") -> dict[str, str]:
    drawn = {message.id: str(in_language(language, message_html, message)).strip() for message in changes.messages}
    return {message_id: html for message_id, html in drawn.items() if html}


def as_body(blocks: Iterable[str]) -> str:
    return "".join(f'<div class="block" dir="{direction_of(block)}">{block}</div>' for block in blocks)


def assert_shows(client: EventsClient | PageClient, changes: Changes, language: str = "en") -> None:
    """Check that the client's state equals the rows: full messages, or the articles of a page load."""
    if isinstance(client, EventsClient):
        assert client.state() == rows_state(changes)
        return
    assert {id: article.html for id, article in client.articles.items()} == drawn_rows(changes, language)
    for streamed, ended in client.drawn:
        assert f"data-body>{as_body(streamed)}</div>" in ended
    assert (client.revision, client.status) == (changes.revision, changes.session.agent_status)


def is_at(client: EventsClient | PageClient, changes: Changes) -> bool:
    """Return whether the client has received all changes and the end of the run, and has no open sync."""
    if client.wants_sync or client.asking:
        return False
    status = client.session.get("agent_status") if isinstance(client, EventsClient) else client.status
    return client.revision == changes.revision and status == changes.session.agent_status
