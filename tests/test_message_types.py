"""Each place that lists the types of messages lists all of them."""

from __future__ import annotations

from typing import get_args

import pytest

from chat.admin.session_page import label_of
from chat.api import message_schemas
from chat.models import TURN_MARKERS, ChatMessage, MessageType
from chat.rendering.messages.frames import message_html
from chat.snapshots import MessageSnapshot
from tests.protocol import document
from tests.support.agreement import agree


def test_each_type_is_described() -> None:
    """MSG-03: by the description of the API, and by docs/protocol.md."""
    agree(
        get_args(message_schemas.MessageType),
        MessageType.values,
        missing="Add {} to MessageType in chat/api/message_schemas.py.",
        extra="Remove {} from MessageType in chat/api/message_schemas.py: no message has that type.",
    )
    [described] = [row[1] for row in document.rows("A message") if row[0] == "`type`"]
    agree(
        document.WORD.findall(described),
        MessageType.values,
        missing='Add `{}` to the row `type` in the table of "A message" in docs/protocol.md.',
        extra='Remove `{}` from the row `type` in the table of "A message" in docs/protocol.md: there is no such type.',
    )


@pytest.mark.parametrize("kind", MessageType)
def test_each_type_has_a_name_in_the_admin(kind: MessageType) -> None:
    """ADM-01: a list with a message of an unknown type would be an error page."""
    try:
        assert label_of(ChatMessage(type=kind))
    except KeyError:
        pytest.fail(f"Give {kind.value} a name in label_of of chat/admin/session_page.py.", pytrace=False)


@pytest.mark.parametrize("kind", [each for each in MessageType if each not in (*TURN_MARKERS, MessageType.ERROR)])
def test_each_type_has_a_template(kind: MessageType) -> None:
    """MSG-10: a type without a template is shown as an error."""
    row = ChatMessage(type=kind, session_id="s_1", sequence=1, role="assistant", text="Hi", tool_name="calculator")
    html = message_html(MessageSnapshot.from_row(row))
    assert f'class="message {kind.value if kind != MessageType.TEXT else "assistant"}' in html, (
        f"{kind.value} is shown as an error, or by the template of another type: "
        "add its case to _message_html in chat/rendering/messages/frames.py."
    )
