"""Quotas of users and the minimum of free disk space: counted from rows, and changed by settings."""

from __future__ import annotations

import shutil
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings

from agents.events import Usage
from agents.providers.scripted import Gate
from chat.files.contents import Contents
from chat.files.user_locks import UserLocks
from chat.limits import quotas
from chat.limits.quotas import DiskFull, QuotaExceeded, usage_of
from chat.models import Attachment, ChatMessage, DailyUsage, Session, SessionRun, User
from chat.services.messages import attachments, sending
from chat.services.runs import control
from chat.services.sessions import forking, lifecycle
from tests.api.asking import Asker, code, token_of
from tests.support.filled import ANSWER, DONE, HI, START, TOOL, fill, live
from tests.support.socket import Socket, path_of
from tests.support.testing_node import TestNode

Disk = namedtuple("Disk", "total used free")


@pytest.fixture
def session(ana: User) -> Session:
    return lifecycle.create_session(owner=ana)


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Disk(100, 100, 0))


@pytest.mark.sqlite
def test_disk_of_the_database_counts_if_it_is_another_one(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The disk of the database is that of the file in DATABASE_URL, which need not be in PARLEY_DATA."""
    full, other = tmp_path / "full", tmp_path / "other"
    full.mkdir()
    other.mkdir()
    settings.DATA_DIR, settings.MEDIA_ROOT = other, other / "files"
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Disk(100, 100, 0 if folder == full else 1 << 40))
    monkeypatch.setitem(connection.settings_dict, "NAME", str(full / "parley.sqlite3"))
    with pytest.raises(DiskFull):
        quotas.require_disk()
    settings.DATA_DIR, other_database = full, str(other / "parley.sqlite3")
    monkeypatch.setitem(connection.settings_dict, "NAME", other_database)
    quotas.require_disk()


def upload(session: Session, user: User, data: bytes, name: str = "a.txt") -> Attachment:
    return attachments.upload(session=session, author=user, name=name, size=len(data), file=ContentFile(data))


# --- tokens --------------------------------------------------------------------------------------------------------


async def test_tokens_count_for_the_user_who_started_the_turn(node: TestNode, ana: User, bo: User) -> None:
    """Tokens count for the user who started the turn, not the session's owner.

    Every response counts, including retries.
    """
    usage = Usage(input_tokens=70, output_tokens=30)
    node.script([["One", usage], ["Two", usage]])
    session = await node.session(ana)
    await node.send(session, bo, "Go")
    await node.idle(session)
    rows = await node.rows(session)
    await node.do(control.retry, session=session, author=ana, message_id=rows[1].pk)
    await node.idle(session)
    tokens = await node.do(lambda: dict(DailyUsage.objects.values_list("user", "tokens")))
    assert tokens == {bo.pk: 100, ana.pk: 100}
    total = await node.do(lambda: Session.objects.get(pk=session.pk).total_tokens)
    assert sum(tokens.values()) == total


async def test_turn_that_has_begun_ends_and_the_next_is_refused(
    node: TestNode, ana: User, bo: User, settings: Settings
) -> None:
    """A turn ends even if it exceeds the quota. The next one is refused with a message on the socket, and as a problem
    of the API. Other users are not affected."""
    settings.QUOTAS = "tokens_per_day=100"
    node.script([["One", Usage(input_tokens=5_000, output_tokens=30)], ["Two"]])
    session = await node.session(ana)
    async with Socket(path_of(session), ana) as socket:
        assert (await socket.ask(type="send", text="Go"))["type"] == "ack"
        await node.idle(session)
        refused = await socket.ask(type="send", text="More")
    assert (refused["code"], refused["quota"]) == ("quota_exceeded", "tokens_per_day")
    assert 0 < refused["retry_after"] <= limits_day()
    asker = Asker(await node.do(token_of, ana))
    answer = await node.do(asker.post, f"/api/sessions/{session.pk}/messages", {"text": "More"})
    assert code(answer) == (429, "quota_exceeded")
    assert answer["Retry-After"]
    await node.send(session, bo, "Mine")
    await node.idle(session)
    assert [row.text for row in await node.rows(session) if row.text] == ["Go", "One", "Mine", "Two"]


def limits_day() -> int:
    return int(timedelta(days=1).total_seconds()) + 1


@pytest.mark.django_db
def test_tokens_of_yesterday_are_over(ana: User, session: Session, settings: Settings) -> None:
    settings.QUOTAS = "tokens_per_day=100"
    yesterday = timezone.now().date() - timedelta(days=1)
    DailyUsage.objects.create(user=ana, day=yesterday, tokens=10**9)
    sending.send_message(session=session, author=ana, text="Hi")
    assert usage_of(ana).tokens_today == 0


@pytest.mark.django_db
def test_last_token_of_the_day_is_the_last(ana: User, session: Session, settings: Settings) -> None:
    """A user can use exactly the number of tokens in the quota."""
    settings.QUOTAS = "tokens_per_day=100"
    quotas.record_tokens([(ana.pk, 99)])
    quotas.require_turn(ana)
    quotas.record_tokens([(ana.pk, 1)])
    with pytest.raises(QuotaExceeded):
        quotas.require_turn(ana)


@pytest.mark.django_db
def test_every_way_to_begin_a_turn_is_bounded(ana: User, session: Session, settings: Settings) -> None:
    """RUN-06, RUN-12: sending, sending held messages and retries are refused, and a refusal changes nothing."""
    rows = fill(session, START, HI, ANSWER, TOOL, DONE)
    held = ChatMessage.objects.create(session=session, role="user", text="Wait", user=ana, status="queued", held=True)
    settings.QUOTAS = "tokens_per_day=100"
    quotas.record_tokens([(ana.pk, 100)])
    about: dict[str, Any] = {"session": session, "author": ana}
    ways: list[Callable[[], object]] = [
        lambda: sending.send_message(**about, text="Hi"),
        lambda: sending.send_now(**about, message_id=held.pk),
        lambda: sending.send_now(**about),
        lambda: control.retry(**about, message_id=rows[2].pk),
        lambda: control.run_tools(**about, message_id=rows[3].pk),
    ]
    for begin in ways:
        with pytest.raises(QuotaExceeded):
            begin()
    assert live(session) == rows
    assert SessionRun.objects.get(pk=session.pk).state == "idle"


# --- turns ---------------------------------------------------------------------------------------------------------


async def test_running_turns_of_a_user_are_limited_and_queued_messages_do_not_count(
    node: TestNode, ana: User, settings: Settings
) -> None:
    """Queued messages do not count as turns. When a turn ends, another one can begin."""
    settings.QUOTAS = "running_turns=1"
    end = Gate()
    node.script([["One ", end, "two"], ["Three"], ["Four"]])
    first, second = await node.session(ana), await node.session(ana)
    await node.send(first, ana, "Go")
    await end.reached()
    await node.send(first, ana, "And this")
    with pytest.raises(QuotaExceeded) as refused:
        await node.send(second, ana, "Me too")
    assert "1 agent working" in refused.value.message
    assert (await node.do(usage_of, ana)).running_turns == 1
    end.open()
    await node.idle(first)
    await node.send(second, ana, "Me too")
    await node.idle(second)
    assert await node.do(lambda: set(SessionRun.objects.values_list("started_by", flat=True))) == {ana.pk}


# --- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.usefixtures("own_files")
def test_stored_files_are_bounded_and_forks_share_them(ana: User, session: Session, settings: Settings) -> None:
    """Files shared by forks count once, and removing a file frees its bytes."""
    settings.QUOTAS = "stored_megabytes=1"
    half = b"words " * 100_000
    file = upload(session, ana, half)
    sent = sending.send_message(session=session, author=ana, text="Look", attachment_ids=[file.pk])
    SessionRun.objects.update(state="idle", turn_id="")
    forking.fork(session=session, author=ana, message_id=sent.id)
    assert Attachment.objects.count() == 2
    assert usage_of(ana).stored_bytes == len(half)
    with pytest.raises(QuotaExceeded) as refused:
        upload(session, ana, half)
    assert refused.value.details["quota"] == "stored_megabytes"
    small = upload(session, ana, b"words")
    attachments.remove(user=ana, attachment_id=small.pk)
    assert usage_of(ana).stored_bytes == len(half)


# --- the disk ------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.usefixtures("full_disk", "own_files")
def test_almost_full_disk_takes_short_messages_only(ana: User, session: Session, settings: Settings) -> None:
    """If the disk is almost full, only short messages are accepted, and nothing of a refused one is stored."""
    sent = sending.send_message(session=session, author=ana, text="Short")
    SessionRun.objects.update(state="idle", turn_id="")
    refused: list[Any] = [
        lambda: sending.send_message(session=session, author=ana, text="x" * 50_000),
        lambda: upload(session, ana, b"words"),
        lambda: forking.fork(session=session, author=ana, message_id=sent.id),
    ]
    for each in refused:
        with pytest.raises(DiskFull):
            each()
    assert (Attachment.objects.count(), Session.objects.count()) == (0, 1)
    answer = Asker(token_of(ana)).post(f"/api/sessions/{session.pk}/messages", {"text": "x" * 50_000})
    assert code(answer) == (507, "disk_full")
    settings.MIN_FREE_DISK_MB = 0
    upload(session, ana, b"words")


# --- what users see ------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_usage_is_shown(ana: User, settings: Settings) -> None:
    settings.QUOTAS = "tokens_per_day = 5000, running_turns=0"
    quotas.record_tokens([(ana.pk, 40)])
    quotas.record_tokens([(ana.pk, 2)])
    usage_today = Asker(token_of(ana)).get("/api/me/usage").json()
    assert (usage_today["tokens_today"], usage_today["responses_today"], usage_today["stored_bytes"]) == (42, 2, 0)
    assert usage_today["quotas"] == {"stored_megabytes": 20_000, "running_turns": 0, "tokens_per_day": 5_000}


@pytest.mark.parametrize("written", ["tokens=5", "tokens_per_day", "tokens_per_day=-1", "tokens_per_day=1e9"])
def test_unreadable_quotas_are_refused(settings: Settings, written: str) -> None:
    settings.QUOTAS = written
    with pytest.raises(ValueError):
        quotas.quotas()


@pytest.mark.django_db
def test_files_that_are_uploaded_together_share_the_quota(
    session: Session, ana: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parallel uploads of a user are checked one after another, so that each one counts those before it."""
    settings.QUOTAS = "stored_megabytes=1"
    megabyte = b"a" * quotas.MEGABYTE

    class Crowded(UserLocks):
        @contextmanager
        def hold(self, person: int, *, most: int | None = None) -> Iterator[None]:
            attachments._keep(session, ana, "first.txt", Contents("text", "text/plain", megabyte))
            with super().hold(person, most=most):
                yield

    monkeypatch.setattr(attachments, "_locks", Crowded())
    with pytest.raises(QuotaExceeded):
        upload(session, ana, megabyte, "second.txt")
    assert list(Attachment.objects.values_list("name", flat=True)) == ["first.txt"]
