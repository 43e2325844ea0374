"""Files in the context, in the forms for models."""

from __future__ import annotations

from typing import Any

import pytest

from agents.messages import File, Message, Text
from chat.models import Attachment, ChatMessage, Session, User
from chat.projections.attached import as_file, as_text
from chat.projections.context import context
from chat.services.sessions.lifecycle import create_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana)


def said(session: Session, text: str, *files: dict[str, Any], sequence: int = 1, **fields: Any) -> ChatMessage:
    row = ChatMessage.objects.create(session=session, role="user", text=text, sequence=sequence, **fields)
    for place, file in enumerate(files):
        values = {"session": session, "media_type": "x/y", "size": 1, "file": "f", **file}
        Attachment.objects.create(id=f"a_{sequence}{place}", message=row, position=place, **values)
    return row


def image(name: str) -> dict[str, Any]:
    return {"name": name, "kind": "image", "width": 800, "height": 600}


def user_message(text: str) -> Message:
    return Message("user", (Text(text),))


def test_a_text_file_comes_in_fences_before_the_text_of_the_message(session: Session) -> None:
    """CTX-01: the fences are longer than those in the file."""
    row = said(session, "Read it.", {"name": "a.md", "kind": "text", "text": "x\n````\ny"})
    file = Text("[File a.md]\n`````\nx\n````\ny\n`````", foreign=True)
    assert context([row]) == [Message("user", (file, Text("Read it.")))]


def test_what_the_model_does_not_take_is_named(session: Session) -> None:
    """CTX-01: the text has the file's size and why it is not included."""
    pdf = {"name": "b.pdf", "kind": "pdf", "pages": 12}
    row = said(session, "", image("a [1].png"), pdf, {**pdf, "text": "Hello", "pages": 1})
    assert context([row]) == [
        Message(
            "user",
            (
                Text("[Image a (1).png, 800×600, not shown: this model takes no images]"),
                Text("[PDF b.pdf, 12 pages, not shown: no text could be read from it]"),
                Text("[PDF b.pdf, 1 page]\n```\nHello\n```", foreign=True),
            ),
        )
    ]


def test_a_file_that_is_shown_comes_behind_its_label(session: Session) -> None:
    """A file in the context follows its label (CTX-01, CTX-02)."""
    row = said(session, "Look", image("a.png"))
    picture = as_file(row.attachments.get(), "image/png", "abcd")
    assert picture == (Text("[Image a.png, 800×600]"), File("image", "a.png", "image/png", "abcd", "800×600"))
    assert context([row], {"a_10": picture}) == [Message("user", (*picture, Text("Look")))]


def test_the_sender_s_name_comes_first(session: Session) -> None:
    """CTX-06: the name comes before the files, also in a message without text."""
    rows = [
        said(session, "", image("a.png"), sender="Ana", user_id=None),
        said(session, "Yes", image("b.png"), sequence=2, sender="Bo"),
    ]
    no_images = "not shown: this model takes no images"
    assert context(rows) == [
        user_message(f"[Ana] [Image a.png, 800×600, {no_images}]"),
        Message("user", (Text(f"[Bo] [Image b.png, 800×600, {no_images}]"), Text("Yes"))),
    ]


def test_the_label_says_why_a_file_is_not_shown(session: Session) -> None:
    """The context says why a file is not included (CTX-01)."""
    row = said(session, "", image("a.png"))
    assert as_text(row.attachments.get(), "the file is lost") == (
        Text("[Image a.png, 800×600, not shown: the file is lost]"),
    )
