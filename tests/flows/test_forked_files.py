"""Forks with files that take long to copy, during which sockets stay responsive."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from agents.sandbox.duplicating import Copied, duplicate
from chat.agents_setup import sandbox
from chat.models import Session, User
from chat.services.sessions import forked_files
from tests.support.filled import ANSWER, DONE, HI, START, fill
from tests.support.socket import Socket, path_of
from tests.support.testing_node import TestNode


async def test_commands_do_not_wait_for_files(
    node: TestNode, ana: User, monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
) -> None:
    """RUN-13, LIVE-02: while a fork is copied, its user can rename the original. A second fork waits for the first."""
    settings.WORKSPACES = str(tmp_path)
    session = await node.session(ana)
    rows = await node.do(fill, session, START, HI, ANSWER, DONE)
    folder = sandbox(session.pk).workspace
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    goes_on = threading.Event()

    def copy_slowly(*paths: Path, **values: Any) -> Copied:
        assert goes_on.wait(20)
        return duplicate(*paths, **values)

    monkeypatch.setattr(forked_files, "duplicate", copy_slowly)
    async with Socket(path_of(session), ana) as socket:
        try:
            socket.send(type="fork", id=rows[2].pk, ref="fork")
            assert (await socket.ask(type="rename", title="New"))["type"] == "ack"
            socket.send(type="fork", id=rows[2].pk, ref="second")
            assert not [frame for frame in socket.frames if frame.get("ref") in ("fork", "second")]
        finally:
            goes_on.set()
        made = [await socket.next(type="ack", ref=ref) for ref in ("fork", "second")]
    assert all("may be newer than the messages" in each["notice"] for each in made)
    for each in made:
        assert (sandbox(each["session"]).workspace / "a.txt").read_text() == "a"
        assert await node.do(Session.objects.filter(pk=each["session"], status="active").exists)
