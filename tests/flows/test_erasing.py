"""A session that is erased while its agent works."""

from __future__ import annotations

import logging

import pytest

from agents.providers.scripted import Gate
from chat.models import ChatMessage, MessageDelta, Session, SessionRun, User
from chat.runner import runtime
from chat.services.deletion import requests
from tests.support.house import House

pytestmark = pytest.mark.both_databases


async def test_erasing_ends_the_run(house: House, ana: User, caplog: pytest.LogCaptureFixture) -> None:
    """RUN-15: the run writes nothing more, ends, and is no error; nothing of it is left."""
    gate = Gate()
    house.script([["Some ", gate, "more"]])
    session = await house.session(ana)
    await house.send(session, ana, "Hi")
    await gate.reached()
    await house.until(lambda: ChatMessage.objects.filter(status="streaming").exists())
    with caplog.at_level(logging.ERROR):
        erasure = await house.do(requests.request_session, session_id=session.pk, author=None)
        assert await house.do(requests.carry_out, erasure)
        gate.open()
        node = runtime._runtime
        assert node is not None
        assert node.runner is not None
        running = node.runner._running
        await house.until(lambda: session.pk not in running)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    for model in (Session, SessionRun, ChatMessage, MessageDelta):
        assert not await house.do(model.objects.exists)
