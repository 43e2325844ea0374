"""Erasing a session while its agent works."""

from __future__ import annotations

import logging

import pytest

from agents.providers.scripted import Gate
from chat.models import ChatMessage, MessageDelta, Session, SessionRun, User
from chat.runner import runtime
from chat.services.deletion import requests
from tests.support.testing_node import TestNode

pytestmark = pytest.mark.both_databases


async def test_erasing_ends_the_run(node: TestNode, ana: User, caplog: pytest.LogCaptureFixture) -> None:
    """RUN-15: the run ends without an error and writes nothing more, and no row stays."""
    gate = Gate()
    node.script([["Some ", gate, "more"]])
    session = await node.session(ana)
    await node.send(session, ana, "Hi")
    await gate.reached()
    await node.until(lambda: ChatMessage.objects.filter(status="streaming").exists())
    with caplog.at_level(logging.ERROR):
        erasure = await node.do(requests.request_session, session_id=session.pk, author=None)
        assert await node.do(requests.carry_out, erasure)
        gate.open()
        own = runtime._runtime
        assert own is not None
        assert own.runner is not None
        running = own.runner._running
        await node.until(lambda: session.pk not in running)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    for model in (Session, SessionRun, ChatMessage, MessageDelta):
        assert not await node.do(model.objects.exists)
