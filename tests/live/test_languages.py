"""One session, watched in several languages at the same time."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import translation

from agents.providers.scripted import Gate
from chat.languages import of_header
from chat.models import Session, User
from chat.rendering.messages.frames import session_parts
from tests.live.conftest import LANGUAGES
from tests.live.states import assert_shows, is_at
from tests.support.client import EventsClient
from tests.support.page_client import PageClient
from tests.support.socket import Socket, path_of
from tests.support.testing_node import TestNode
from tests.support.viewer import SocketViewer

pytestmark = pytest.mark.usefixtures("translated", "no_beacon")
EMPTY = {"en": "The message is empty.", "zh-hans": "消息为空。", "zh-hant": "繁消息为空。"}
THINKING = {"en": "Thinking…", "zh-hans": "思考中…", "zh-hant": "繁思考中…"}


async def pages(session: Session, person: User) -> list[SocketViewer[PageClient]]:
    """Return a page in each language, after its first sync."""
    viewers = [await SocketViewer(PageClient(), session, person, language=language).open() for language in LANGUAGES]
    for viewer in viewers:
        await viewer.until(lambda: viewer.client.caught_up)  # noqa: B023  # waits within the round
    return viewers


async def test_each_page_gets_frames_in_its_own_language(node: TestNode, ana: User) -> None:
    """UI-13, LIVE-01: a push equals what a reload in the page's language shows: messages, status, figures and title."""
    gate = Gate()
    node.script([["Hello", gate]])
    session = await node.session(ana)
    viewers = await pages(session, ana)
    await node.send(session, ana, "Go")
    await gate.reached()
    await node.send(session, ana, "And then?")
    for viewer in viewers:
        await viewer.until(lambda: THINKING[viewer.language] in viewer.client.parts["status"])  # noqa: B023
    await node.cancel(session, ana)
    await node.idle(session)
    truth = await node.snapshot(session)
    for viewer in viewers:
        await viewer.until(lambda: is_at(viewer.client, truth))  # noqa: B023
        assert_shows(viewer.client, truth, viewer.language)
        with translation.override(viewer.language):
            assert viewer.client.parts["title"] == session_parts(truth.session)["title"]
        await viewer.leave()


async def test_text_is_drawn_once_for_all_languages(node: TestNode, ana: User) -> None:
    """UI-13: streaming text contains no interface texts, so it is rendered once for all languages."""
    gate = Gate()
    node.script([["```py\nprint(1)\n```\n\nText ", gate, "grows"]])
    session = await node.session(ana)
    viewers = await pages(session, ana)
    await node.send(session, ana, "Go")
    await gate.reached()
    gate.open()
    await node.idle(session)
    truth = await node.snapshot(session)
    streams = []
    for viewer in viewers:
        await viewer.until(lambda: is_at(viewer.client, truth))  # noqa: B023
        streams.append([frame for frame in viewer.frames if frame.get("op") in ("snap", "delta")])
        await viewer.leave()
    assert streams[0]
    assert streams == [streams[0]] * 3


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("protocol", ["events", "page"])
async def test_refusals_are_in_the_socket_s_language(node: TestNode, ana: User, protocol: str, language: str) -> None:
    """UI-13: refusals are in the socket's language, even if the hub's thread served another user before."""
    session = await node.session(ana)
    accepted = [(b"accept-language", language.encode())]
    foreign = Socket(path_of(session, protocol), ana, query="lang=zh-hant", headers=[(b"accept-language", b"zh-hant")])
    async with foreign, Socket(path_of(session, protocol), ana, query=f"lang={language}", headers=accepted) as socket:
        for _ in range(5):
            assert (await foreign.ask(type="send", text=" "))["message"] == EMPTY["zh-hant"]
            assert (await socket.ask(type="send", text=" "))["message"] == EMPTY[language]
    assert await node.do(translation.get_language) == "en"


@pytest.mark.parametrize("query", ["", "lang=", "lang=xx", "lang=%ff", "lang=../en", "lang=" + "z" * 9000, "lang=fr"])
async def test_unknown_language_is_english(node: TestNode, ana: User, query: str) -> None:
    """An unknown language falls back to English (UI-13)."""
    session = await node.session(ana)
    async with Socket(path_of(session, "page"), ana, query=query) as socket:
        assert (await socket.ask(type="send", text=" "))["message"] == EMPTY["en"]


@pytest.mark.parametrize(
    ("header", "language"),
    [("", "en"), ("*", "en"), ("fr, de;q=0.5", "en"), ("zh", "zh-hans"), ("zh-CN,en;q=0.5", "zh-hans"),
     ("zh-TW", "zh-hant"), ("zh-HK;q=0.9,en;q=0.1", "zh-hant"), ("en-GB,zh", "en"), (";;,=\0", "en"),
     ("x" * 9000, "en")],
)  # fmt: skip
def test_browser_s_language_is_understood(header: str, language: str) -> None:
    """The language of the browser is used (UI-13)."""
    assert of_header(header) == language


@pytest.mark.parametrize(
    ("chosen", "cookie", "header", "language"),
    [
        ("", "", "", "en"),
        ("", "", "zh-TW", "zh-hant"),
        ("", "zh-hans", "zh-TW", "zh-hans"),
        ("en", "zh-hans", "zh-TW", "en"),
        ("zh-hant", "", "en", "zh-hant"),
        ("tlh", "", "zh", "zh-hans"),
    ],
)
def test_page_is_in_the_chosen_language(
    ana: User, client: Client, chosen: str, cookie: str, header: str, language: str
) -> None:
    """UI-13: a page's language is the user's choice, else the cookie's, else the browser's.

    The next request is not affected.
    """
    ana.language = chosen
    ana.save()
    client.force_login(ana)
    client.cookies["django_language"] = cookie
    response = client.post("/sessions/new", headers={"accept-language": header}, follow=True)
    assert response["Content-Language"] == language
    assert f'<html lang="{language}"' in response.text
    assert f"/page?lang={language}" in response.text
    assert translation.get_language() == "en"


async def test_events_contain_no_interface_texts(node: TestNode, ana: User) -> None:
    """LIVE-01: programs get values instead of interface texts, whatever languages other viewers have."""
    session = await node.session(ana)
    events = await SocketViewer(EventsClient(), session, ana, language="zh-hans").open()
    await events.until(lambda: events.client.caught_up)
    await node.send(session, ana, "Go")
    await node.idle(session)
    truth = await node.snapshot(session)
    await events.until(lambda: is_at(events.client, truth))
    assert_shows(events.client, truth)
    await events.leave()
