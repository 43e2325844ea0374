"""The limits of a request for images and PDF pages: the newest files are sent, the others become text."""

from __future__ import annotations

from typing import Any

import pytest

from agents.loop import Agent
from agents.messages import File, Part, Text
from agents.model_facts import BOTH
from agents.providers.scripted import ScriptedProvider
from chat.models import Attachment, ChatMessage, Session, User
from chat.queries.attachments import fetch_attachments
from chat.runner.attached_files import load_file_parts
from chat.services.sessions.lifecycle import create_session
from tests.projections.test_attached import image, said

pytestmark = pytest.mark.django_db
HUNDRED = "a request can have 100 images and pages, which newer files use up"


@pytest.fixture
def session(ana: User) -> Session:
    return create_session(owner=ana)


def pdf(name: str, pages: int, text: str = "Words") -> dict[str, Any]:
    return {"name": name, "kind": "pdf", "pages": pages, "text": text}


def loaded(session: Session, window: int | None = 200_000) -> dict[str, tuple[Part, ...]]:
    """Return the parts of all files of a session by the names of the files."""
    agent = Agent("agent", "one", ScriptedProvider([]), context_window=window, capabilities=BOTH)
    rows = list(ChatMessage.objects.filter(session=session))
    fetch_attachments(rows)
    parts = load_file_parts(rows, agent, lambda each, _form: ("", each.size))
    names = dict(Attachment.objects.values_list("pk", "name"))
    return {names[key]: each for key, each in parts.items()}


def sent(parts: dict[str, tuple[Part, ...]]) -> list[str]:
    """Return the names of the files that are sent as files."""
    return sorted(name for name, each in parts.items() if isinstance(each[-1], File))


def test_pages_of_all_files_count_together(session: Session) -> None:
    """CTX-01: an older PDF file that no longer fits is replaced by its text, and the model reads why."""
    said(session, "Read", pdf("old.pdf", 60))
    said(session, "And this", pdf("new.pdf", 60), sequence=2)
    parts = loaded(session)
    assert sent(parts) == ["new.pdf"]
    label = f"[PDF old.pdf, 60 pages, only its text: {HUNDRED}]"
    assert parts["old.pdf"] == (Text(f"{label}\n```\nWords\n```", foreign=True),)


def test_images_and_pages_count_together(session: Session) -> None:
    """CTX-01: of the images beside a PDF file, the newest ones are sent."""
    for number in range(1, 43):
        said(session, "Look", image(f"{number:02}.png"), sequence=number)
    said(session, "Read", pdf("new.pdf", 60), sequence=50)
    parts = loaded(session)
    assert sent(parts) == [*(f"{number:02}.png" for number in range(3, 43)), "new.pdf"]
    assert parts["02.png"] == (Text(f"[Image 02.png, 800×600, not shown: {HUNDRED}]"),)


def test_models_with_large_windows_get_more(session: Session) -> None:
    """CTX-01: vendors allow more images and pages for models with a large context window."""
    for number in range(1, 7):
        said(session, "Read", pdf(f"{number}.pdf", 90), sequence=number)
    assert sent(loaded(session, 1_000_000)) == ["2.pdf", "3.pdf", "4.pdf", "5.pdf", "6.pdf"]
    assert sent(loaded(session, None)) == ["6.pdf"]


def test_a_file_with_too_many_pages_is_sent_as_text(session: Session) -> None:
    """CTX-01: a file that does not fit a request alone leaves the room to older files."""
    said(session, "Read", pdf("old.pdf", 100))
    said(session, "And this", pdf("long.pdf", 101, ""), sequence=2)
    parts = loaded(session)
    assert sent(parts) == ["old.pdf"]
    assert parts["long.pdf"] == (Text("[PDF long.pdf, 101 pages, not shown: it has more than 100 pages]"),)
