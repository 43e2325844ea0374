"""Files from the composer to the model, with the real services, runner and loop."""

from __future__ import annotations

from base64 import b64decode
from io import BytesIO
from typing import Any

import pytest
from django.core.files.base import File as StoredFile
from django.core.files.storage import FileSystemStorage
from PIL import Image
from pytest_django.fixtures import Settings

from agents.messages import File, Message
from agents.providers.demo.provider import DemoProvider
from agents.providers.scripted import Gate, ScriptedProvider
from chat import agents_setup
from chat.errors import FilesUnavailable
from chat.models import Attachment, ChatMessage, Session, User
from chat.runner import attached_files
from chat.runner.agent_input import NO_FILES
from chat.services.messages import attachments, sending
from chat.services.runs.control import retry
from chat.services.sessions import lifecycle
from tests.support import files
from tests.support.testing_node import CONFIG, ScriptedRegistry, TestNode

pytestmark = [pytest.mark.usefixtures("own_files"), pytest.mark.each_storage]
SEEING = {"scripted": {"type": "demo", "models": {"one": {"vision": True, "pdf": True}, "two": {}}}}


class FilesAway(FileSystemStorage):
    """A storage that does not respond."""

    def _open(self, name: str, mode: str = "rb") -> Any:
        raise FilesUnavailable


async def uploaded(node: TestNode, session: Session, author: User, data: bytes, name: str) -> str:
    file = StoredFile(BytesIO(data))
    row = await node.do(attachments.upload, session=session, author=author, name=name, size=len(data), file=file)
    return row.pk


async def sent(node: TestNode, session: Session, author: User, text: str, *ids: str) -> None:
    await node.do(sending.send_message, session=session, author=author, text=text, attachment_ids=ids)
    await node.idle(session)


def shown(message: Message) -> list[str]:
    """Return the names of the files, and the texts."""
    return [part.name if isinstance(part, File) else getattr(part, "text", "") for part in message.parts]


def script(node: TestNode, *replies: Any) -> ScriptedProvider:
    return node.script([*replies], {**CONFIG, "providers": SEEING})


async def test_a_model_that_takes_them_gets_the_files_themselves(node: TestNode, ana: User) -> None:
    """CTX-01, CTX-02: a model that accepts the files gets their bytes.

    Large pictures are reduced, and unusual formats converted.
    """
    provider = script(node, ["I see."])
    session = await node.session(ana)
    small, large, paper = files.picture("PNG"), files.picture("WEBP", (4000, 2000)), files.pdf("Hello")
    given = [(small, "small.png"), (large, "large.webp"), (paper, "b.pdf"), (b"words", "c.txt")]
    ids = [await uploaded(node, session, ana, data, name) for data, name in given]
    await sent(node, session, ana, "Look", *ids)
    (message,) = provider.requests[0].messages
    assert shown(message) == [
        "[Image small.png, 80×60]", "small.png", "[Image large.webp, 4000×2000]", "large.webp",
        "[PDF b.pdf, 1 page]", "b.pdf", "[File c.txt]\n```\nwords\n```", "Look",
    ]  # fmt: skip
    picture, smaller, document = (part for part in message.parts if isinstance(part, File))
    assert b64decode(document.data) == paper
    assert (picture.media_type, smaller.media_type) == ("image/png", "image/jpeg")
    assert Image.open(BytesIO(b64decode(smaller.data))).size == (1568, 784)


async def test_a_model_that_accepts_no_files_gets_them_as_text(node: TestNode, ana: User) -> None:
    """RUN-16, CTX-01: a model that does not accept the files gets them as text."""
    provider = script(node, ["I see."], ["I read."])
    session = await node.session(ana)
    ids = [
        await uploaded(node, session, ana, data, name)
        for data, name in ((files.picture(), "a.png"), (files.pdf("Hello"), "b.pdf"))
    ]
    await sent(node, session, ana, "Look", *ids)
    await node.do(lifecycle.set_model, session=session, author=ana, provider="scripted", model="two")
    await sent(node, session, ana, "And you?")
    assert shown(provider.requests[1].messages[0]) == [
        "[Image a.png, 80×60, not shown: this model takes no images]",
        "[PDF b.pdf, 1 page]\n```\n[Page 1]\nHello\n```",
        "Look",
    ]


async def test_the_oldest_files_are_replaced_by_a_note_if_a_request_is_too_large(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CTX-01: if the files exceed a request, the oldest ones are replaced by a note, because users refer to the newest
    ones."""
    provider = script(node, ["1"], ["2"])
    session = await node.session(ana)
    picture = files.picture()
    monkeypatch.setattr(attached_files, "MAX_BYTES", len(picture))
    for name in ("old.png", "new.png"):
        await sent(node, session, ana, "Look", await uploaded(node, session, ana, picture, name))
    assert [shown(message) for message in provider.requests[1].messages] == [
        ["[Image old.png, 80×60, not shown: with newer files, it is too large for one request]", "Look"],
        ["1"],
        ["[Image new.png, 80×60]", "new.png", "Look"],
    ]


async def test_answer_waits_for_files_that_are_away(node: TestNode, ana: User, settings: Settings) -> None:
    """RUN-10: if files cannot be read, the turn fails instead of answering without them, and Retry works when they are
    back."""
    provider = script(node, ["I see."])
    session = await node.session(ana)
    file = await uploaded(node, session, ana, files.picture(), "a.png")
    present = settings.STORAGES
    settings.STORAGES = {**present, "default": {"BACKEND": f"{__name__}.{FilesAway.__qualname__}"}}
    await sent(node, session, ana, "Look", file)
    error = await node.do(lambda: ChatMessage.objects.get(session=session, type="error"))
    assert (error.text, provider.requests) == (str(NO_FILES), [])
    settings.STORAGES = present
    await node.do(retry, session=session, author=ana, message_id=error.pk)
    await node.idle(session)
    assert shown(provider.requests[0].messages[0]) == ["[Image a.png, 80×60]", "a.png", "Look"]


async def test_a_lost_file_ends_no_conversation(node: TestNode, ana: User) -> None:
    """MSG-10: a lost file does not fail the turn: the model gets a note in its place."""
    provider = script(node, ["1"])
    session = await node.session(ana)
    ids = [await uploaded(node, session, ana, files.picture(), "a.png")]
    await node.do(lambda: Attachment.objects.get(pk=ids[0]).file.delete(save=False))
    await node.do(lambda: Attachment.objects.update(file="gone"))
    await sent(node, session, ana, "Look", *ids)
    assert shown(provider.requests[0].messages[0])[0] == "[Image a.png, 80×60, not shown: the file is lost]"


async def test_queued_files_are_delivered_with_their_message(node: TestNode, ana: User) -> None:
    """Files of a queued message are delivered with it (RUN-06)."""
    gate = Gate()
    provider = script(node, ["Working", gate], ["Seen"])
    session = await node.session(ana)
    await node.send(session, ana, "Work!")
    await gate.reached()
    picture = await uploaded(node, session, ana, files.picture(), "a.png")
    await node.do(sending.send_message, session=session, author=ana, text="", attachment_ids=[picture])
    gate.open()
    await node.idle(session)
    assert shown(provider.requests[1].messages[-1]) == ["[Image a.png, 80×60]", "a.png"]
    snapshot = await node.snapshot(session)
    assert [each.name for message in snapshot.messages for each in message.attachments] == ["a.png"]


async def test_the_demo_agent_says_what_reached_it(node: TestNode, ana: User) -> None:
    """UI-09: the demo agent lists the files that it got, so that a user who tries Parley sees that they arrive."""
    agents_setup.install(ScriptedRegistry(DemoProvider("scripted", 0), {**CONFIG, "providers": SEEING}))
    session = await node.session(ana)
    ids = [
        await uploaded(node, session, ana, data, name)
        for data, name in ((files.picture(), "error.png"), (b"three little words", "think.txt"))
    ]
    await sent(node, session, ana, "", *ids)
    answer = (await node.shown(session))[2]
    assert "**error.png** (80×60)" in answer[2]
    assert "**think.txt** (3 words)" in answer[2]
